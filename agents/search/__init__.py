"""Strategies that search for a label set with the evaluator."""
