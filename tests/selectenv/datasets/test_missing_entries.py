"""Logs with missing entries of states."""

import pandas as pd
import polars as pl
import pytest

import selectenv
from selectenv.errors import LogError, OptionError


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_missing_entries_of_states_can_be_given_a_text(library):
    """As if the log had had the text in its place, for every kind of column."""
    gaps = {
        "e": [1, 1, 1, 2, 2],
        "text": ["x", None, "y", "x", "y"],
        "number": [1, 2, None, 1, 2],
        "part": [0.1, None, 0.9, 0.2, 0.8],
        "a": ["go", "stop", "go", "go", "stop"],
        "to_text": [None, "y", None, None, "x"],
        "to_number": [2, None, 1, None, 2],
    }
    filled = {
        **gaps,
        "text": ["x", "unknown", "y", "x", "y"],
        "number": ["1", "2", "unknown", "1", "2"],
        "part": ["below 0.5", "unknown", "0.5 or more", "below 0.5", "0.5 or more"],
        "to_text": ["unknown", "y", "unknown", None, "x"],
        "to_number": ["2", "unknown", "1", None, "2"],
    }
    roles = {"action": "a", "episode": "e"}
    for state in (["text"], ["number"], ["text", "number"]):
        wanted = selectenv.from_dataframe(library(filled), state, **roles)
        found = selectenv.from_dataframe(library(gaps), state, **roles, missing="unknown")
        assert found.fingerprint == wanted.fingerprint
        assert found.spec["missing"] == "unknown"
    both = {"state": ["text", "number"], "next_state": ["to_text", "to_number"], **roles}
    found = selectenv.from_dataframe(library(gaps), **both, missing="unknown")
    assert found.fingerprint == selectenv.from_dataframe(library(filled), **both).fingerprint
    cut = selectenv.from_dataframe(library(gaps), "part", **roles, bins={"part": [0.5]}, missing="unknown")
    assert cut.fingerprint == selectenv.from_dataframe(library(filled), "part", **roles).fingerprint
    with pytest.raises(LogError, match="row 1, column 'text': the entry is missing"):
        selectenv.from_dataframe(library(gaps), "text", **roles)
    for wrong in ("", "a\nb", 3):
        with pytest.raises(OptionError, match="missing"):
            selectenv.from_dataframe(library(gaps), "text", **roles, missing=wrong)
