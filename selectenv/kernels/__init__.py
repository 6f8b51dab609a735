"""Compiled loops over flat arrays: pure functions that know nothing of worlds, datasets or environments."""
