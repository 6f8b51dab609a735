"""Drawings of a selection."""
