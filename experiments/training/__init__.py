"""Training of experts and selectors, and tuning."""
