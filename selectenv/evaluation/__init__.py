"""Evaluators: policy -> expected return in the true world."""
