"""Tables of the terminal are aligned, and wrapped if a width is given."""

from experiments.cli.tables import table


def test_columns_are_aligned():
    assert table(("name", "n"), [("a", 1), ("long", 20)]).splitlines() == [
        "name   n",
        "----  --",
        "a      1",
        "long  20",
    ]


def test_the_last_column_is_wrapped():
    lines = table(("name", "text"), [("a", "word " * 30), ("b", "")], width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[3].startswith("      word")  # continuation lines leave the name empty
    assert sum(line.count("word") for line in lines) == 30
    assert lines[-1] == "b"
