"""Files, logs and progress bars."""
