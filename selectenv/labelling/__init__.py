"""The parts of a labelling session: queries, answers, the strategy's side, and the file."""
