"""Studies of Breakout with tables."""
