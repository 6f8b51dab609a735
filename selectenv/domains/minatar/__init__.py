"""MinAtar games and the experts that ship with the package."""
