"""Selectors trained with Stable-Baselines3."""
