"""The studies: demo, benchmark, tables and figures."""
