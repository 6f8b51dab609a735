"""Labelling by people: in the terminal, on a page, and with files of labels and tasks for other tools."""
