"""The study whether the benchmark of tables predicts rankings where networks learn, and the two learners it adds."""
