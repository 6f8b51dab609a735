"""The players: selection strategies against one interface."""
