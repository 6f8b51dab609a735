"""Studies of the MinAtar games with neural learners."""
