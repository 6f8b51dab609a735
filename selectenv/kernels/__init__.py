"""Compiled loops over flat arrays; private to the modules above them."""
