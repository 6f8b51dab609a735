"""Studies of the tabular worlds."""
