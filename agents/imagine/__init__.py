"""imagine: labels what is worth most under reward functions that the data and the labels so far make plausible."""
