"""Progress bars: on terminals only."""

import io
import sys

from selectenv.io.progress import progress, progress_bar, seconds, show


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_for_terminals(monkeypatch, capsys):
    assert list(progress(range(5), 5, "counting")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress(range(5), 5, "counting")) == [0, 1, 2, 3, 4]
    assert "counting: 100%" in sys.stderr.getvalue()
    assert "5/5" in sys.stderr.getvalue()


def test_a_bar_shows_at_once(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(3, "waiting"):
        assert "waiting:   0%" in sys.stderr.getvalue()


def test_work_that_ends_early_closes_its_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    for number in progress(range(5), 5, "searching"):
        if number == 2:
            break
    assert "searching" in sys.stderr.getvalue()


def test_messages_go_to_stderr(capsys):
    show("a word")
    assert capsys.readouterr() == ("", "a word\n")


def test_durations():
    assert [seconds(value) for value in (0.2, 30, 600, 3 * 86_400)] == [
        "less than a second",
        "about 30 seconds",
        "about 10 minutes",
        "about 3 days",
    ]
