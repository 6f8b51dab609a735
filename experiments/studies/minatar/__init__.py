"""Studies of networks in the MinAtar games."""
