"""Training of experts and selectors, and hyperparameter search."""
