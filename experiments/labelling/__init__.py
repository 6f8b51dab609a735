"""The labelling page: a local web server over a labelling session."""
