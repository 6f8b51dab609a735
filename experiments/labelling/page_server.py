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
EVERY_ADDRESS = ("0.0.0.0", "::")
"""Hosts that stand for all addresses of the machine, and that browsers on other machines do not know."""


def serve(
    session: LabellingSession,
    host: str = HOST,
    port: int = 0,
    *,
    browser: bool = True,
    annotator: str = "",
    choices: Sequence[float] | None = None,
) -> None:
    """Serve the page of a session until Ctrl-C; see `PageServer`.

    Args:
        session: the session.
        host: the address to bind to.
        port: the port.
        browser: whether to open the page in a browser.
        annotator: the name of annotators who do not give one.
        choices: the answers of the number keys.
    """
    server = PageServer(session, host, port, annotator=annotator, choices=choices)
    print(f"The page is at {server.link}", flush=True)
    if host in EVERY_ADDRESS:
        print(f"On other machines, write the name or the address of this one in place of {host}.", flush=True)
    print("Whoever knows the link can answer. Ctrl-C stops the page; every answer is stored.", flush=True)
    with _opened(server.link) if browser else nullcontext():
        server.run()


class PageServer:
    """Serves the page of a session at an address of its own."""

    def __init__(
        self,
        session: LabellingSession,
        host: str = HOST,
        port: int = 0,
        *,
        annotator: str = "",
        choices: Sequence[float] | None = None,
    ) -> None:
        """Bind the address; requests are answered once the server runs.

        Args:
            session: the session, which stays open as long as the server runs.
            host: the address to bind to. Unlike the default, other addresses can be reached from other machines.
            port: the port, 0 for any that is free.
            annotator: the name of annotators who do not give one.
            choices: the answers of the number keys; by default steps over the range of the rewards.

        Raises:
            FileError: the address cannot be bound to.
            MissingExtraError: the packages of the extra `label` are not installed.
        """
        try:
            import python_multipart  # noqa: F401 - reads the forms
            import uvicorn

            from experiments.labelling.page_app import page_app
            from experiments.labelling.page_guard import LARGEST_HEAD, new_token
        except ImportError:
            raise MissingExtraError("the labelling page needs more packages: pip install 'selectenv[label]'") from None
        token = new_token()
        self._listener = _listen(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.link = f"http://{shown}:{self._listener.getsockname()[1]}/{token}/"
        """The address of the page, with the token that every request must carry."""
        config = uvicorn.Config(
            page_app(session, token, host, annotator, choices),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,  # addresses contain the token
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Answer requests until Ctrl-C or `stop`."""
        with self._listener:
            self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """Stop the server; call this from another thread."""
        self._server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise FileError(f"cannot serve at {host}, port {port}: {error}; choose others with --host and --port") from None


@contextmanager
def _opened(link: str) -> Iterator[None]:
    """Open the link in a browser through a file, because other users can read the arguments of a process."""
    handle, path = tempfile.mkstemp(prefix="selectenv-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">')
    try:
        if not webbrowser.open(Path(path).as_uri()):
            print("No browser was found: open the link in one.", file=sys.stderr)
        yield
    finally:
        Path(path).unlink(missing_ok=True)
