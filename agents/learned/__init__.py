"""A selector trained on random worlds."""
