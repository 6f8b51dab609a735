"""Studies of Breakout, most of them with tabular learners."""
