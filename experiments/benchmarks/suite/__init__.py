"""`selectenv benchmark`: a fixed suite of selection problems that scores any strategy."""
