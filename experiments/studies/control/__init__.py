"""Studies of the control worlds, whose states are vectors."""
