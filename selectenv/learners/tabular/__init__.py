"""Tabular learners: exact on the empirical model, or sampled as published."""
