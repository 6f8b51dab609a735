"""Studies of learned selectors."""
