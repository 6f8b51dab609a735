"""The guard in front of the labelling page: it refuses requests that do not come from the page or its link."""

import hmac
import secrets
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1 << 16
"""Largest size of the body of a request in bytes; an answer with a number for each of 1,000 transitions is smaller."""
LARGEST_HEAD = 1 << 14
"""Largest size of the query string and the headers of a request in bytes."""
LONGEST_PATH = 200
"""Largest number of characters of a path; those of the page are shorter."""
READS = ("GET", "HEAD")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every response."""
BAD_LINK = "This link is not valid. Use the link that `selectenv label serve` printed when it was started last."


def new_token() -> str:
    """Return a random token for the link."""
    return secrets.token_urlsafe(24)


class PageGuard:
    """Lets requests through to the page if they carry its token; writes must also come from the page itself.

    The token is the first part of every path and is removed before the page sees the path.
    """

    def __init__(self, app: ASGIApp, token: str, host: str) -> None:
        """Guard ``app``.

        Args:
            app: the page.
            token: what the first part of every path must be.
            host: the address that the server is bound to. If it is a loopback address, requests must be addressed to
                one too, which prevents DNS rebinding.
        """
        self._app, self._token, self._local = app, token.encode(), host in LOOPBACK

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        refusal, path = self._refusal(scope)
        body = b"" if refusal else await _body(receive)
        if body is None:
            refusal = PlainTextResponse(f"A request may have at most {LARGEST_BODY} bytes.", 413)
        if refusal:
            await refusal(scope, receive, send_with_headers)
            return
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive_again() -> Message:
            return next(given, None) or await receive()

        inner = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(inner, receive_again, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[Response | None, str]:
        """Return the response to a request that must not pass, and the path without the token."""
        token, _, path = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._token):
            return PlainTextResponse(BAD_LINK, 403), ""
        if len(path) > LONGEST_PATH:
            return PlainTextResponse("There is no such page.", 404), ""
        if len(scope["query_string"]) + sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
            return PlainTextResponse(f"Address and headers may have at most {LARGEST_HEAD} bytes.", 431), ""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self._local and _name(host) not in LOOPBACK:
            return PlainTextResponse("This page is served to this machine only.", 403), ""
        if scope["method"] not in READS and not _same_origin(headers, host):
            return PlainTextResponse("Only the page itself may change anything here.", 403), ""
        return None, f"/{path}"


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _same_origin(headers: dict[str, str], host: str) -> bool:
    """Return whether a browser says that a page of this server sent the request."""
    origin = headers.get("origin", "")
    site = headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and origin.partition("://")[2] == host != ""


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)  # absent if the client has disconnected
        if len(body) > LARGEST_BODY:
            return None
    return body
