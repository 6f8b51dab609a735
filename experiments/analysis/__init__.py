"""Statistics, verdicts, figures and the report."""
