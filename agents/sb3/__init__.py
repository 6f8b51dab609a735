"""Selectors trained by Stable-Baselines3."""
