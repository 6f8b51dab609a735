"""Steps are announced, and announced again while they take long."""

import io
import threading
import time

import pytest

from experiments.cli import narration


class Terminal(io.StringIO):
    def isatty(self):
        return True


def wait_for(stream, text):
    deadline = time.monotonic() + 60
    while text not in stream.getvalue():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_long_steps_are_mentioned_again(stream, monkeypatch):
    monkeypatch.setattr(narration, "HEARTBEAT", 0.02)
    monkeypatch.setattr("sys.stderr", stream)
    with narration.narration(2) as announce:
        announce("collecting")
        wait_for(stream, "collecting")
        announce("playing")
        said = stream.getvalue().count("playing")
        deadline = time.monotonic() + 60
        while stream.getvalue().count("playing") < said + 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert "narration" not in [thread.name for thread in threading.enumerate()]


def test_in_a_log_every_step_is_a_line(capsys):
    with narration.narration(2) as announce:
        announce("collecting")
        announce("playing")
    assert capsys.readouterr().err == "[1/2] collecting\n[2/2] playing\n"
