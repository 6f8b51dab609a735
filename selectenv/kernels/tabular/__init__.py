"""Compiled loops over tabular models."""
