"""Announces the steps of a command on stderr, and repeats the current one during long waits."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

HEARTBEAT = 1.5
"""Seconds after which a step that is still running is mentioned again."""


@contextmanager
def narration(steps: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next of ``steps`` steps.

    On a terminal the steps are a progress bar; elsewhere, as in a log, they are lines of text.
    """
    terminal = sys.stderr.isatty()
    bar = tqdm(
        total=steps, disable=not terminal, leave=False, bar_format="{desc} |{bar:30}| {n_fmt}/{total_fmt} {elapsed}"
    )
    current, began, started = "", time.monotonic(), 0
    finished = threading.Event()

    def announce(text: str) -> None:
        nonlocal current, began, started
        current, began, started = text, time.monotonic(), started + 1
        if terminal:
            bar.update(started - 1 - bar.n)
            bar.set_description_str(text)
        else:
            print(f"[{started}/{steps}] {text}", file=sys.stderr, flush=True)

    def repeat() -> None:
        while not finished.wait(HEARTBEAT):
            if terminal:
                bar.refresh()
            elif time.monotonic() - began >= HEARTBEAT:
                print(f"  ... still {current}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    heartbeat = threading.Thread(target=repeat, name="narration", daemon=True)
    heartbeat.start()
    try:
        yield announce
    finally:
        finished.set()
        heartbeat.join()
        bar.close()
