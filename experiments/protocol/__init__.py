"""The published protocol as data."""
