"""The server of the labelling page: it binds an address, prints the link and runs until it is stopped."""

import html
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from selectenv.errors import FileError, MissingExtraError
from selectenv.session import LabellingSession

HOST = "127.0.0.1"
LARGEST_HEAD = 1 << 14
"""Most bytes of the head of a request."""


def serve(
    path: Path,
    host: str = HOST,
    port: int = 0,
    *,
    browser: bool = True,
    annotator: str = "",
    choices: Sequence[float] | None = None,
) -> None:
    """Serve the page of a session until Ctrl-C.

    Args:
        path: the file of the session.
        host: the address to bind to. Others than the default can be reached from other machines.
        port: the port, 0 for any that is free.
        browser: whether to open the page in a browser.
        annotator: the name of annotators who do not give one.
        choices: the answers of the number keys; by default steps over the range of the rewards.

    Raises:
        FileError: the address cannot be bound to.
        MissingExtraError: the packages of the extra `label` are not installed.
        SessionError: the session cannot be opened.
    """
    try:
        import python_multipart  # noqa: F401 - reads the forms
        import uvicorn

        from experiments.labelling.page_app import page_app
        from experiments.labelling.page_guard import new_token
    except ImportError:
        raise MissingExtraError("the labelling page needs the packages of: pip install 'selectenv[label]'") from None
    token = new_token()
    with LabellingSession.open(path) as session, _listen(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        link = f"http://{shown}:{listener.getsockname()[1]}/{token}/"
        config = uvicorn.Config(
            page_app(session, token, host, annotator, choices),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,  # addresses contain the token
            server_header=False,
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )
        print(f"The page is at {link}", flush=True)
        print("Whoever knows the link can answer. Ctrl-C stops the page; every answer is stored.", flush=True)
        with _opened(link) if browser else nullcontext():
            uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise FileError(f"cannot serve at {host}, port {port}: {error}; choose others with --host and --port") from None


@contextmanager
def _opened(link: str) -> Iterator[None]:
    """Open the link in a browser by way of a file, since other users can read the arguments of a process."""
    handle, path = tempfile.mkstemp(prefix="selectenv-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">')
    try:
        if not webbrowser.open(Path(path).as_uri()):
            print("No browser was found: open the link in one.", file=sys.stderr)
        yield
    finally:
        Path(path).unlink(missing_ok=True)
