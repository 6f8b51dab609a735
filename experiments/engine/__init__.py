"""Cells, runner, store and study."""
