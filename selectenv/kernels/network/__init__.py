"""Compiled loops of the small convolutional network."""
