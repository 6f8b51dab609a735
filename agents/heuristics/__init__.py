"""Strategies that need no training."""
