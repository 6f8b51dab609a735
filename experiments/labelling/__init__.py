"""Labelling by people: in the terminal, and with files of labels and tasks for other tools."""
