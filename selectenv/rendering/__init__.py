"""Text and image renderings of a selection."""
