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


def test_no_line_is_longer_than_the_width():
    rows = [("n" * 70, f"RewardSelection-{'n' * 70}-v0", "uds", "word " * 30), ("short", "id", "", "")]
    lines = table(("world", "environment", "learner", "description"), rows, width=100).splitlines()
    assert max(map(len, lines)) <= 100
    text = "".join(lines[2:]).replace(" ", "")
    assert text.count("word") == 30
    assert text.count("n") == 70 + 70 + 1
    assert lines[-1].split() == ["short", "id"]
