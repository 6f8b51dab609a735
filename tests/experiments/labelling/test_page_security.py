"""The labelling page is reached only by its link, changed only by itself, and tells nothing about the machine."""

import hmac
import re
import socket
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest

import selectenv
from experiments.labelling import page_guard, page_server
from experiments.labelling.page_guard import HEADERS, LARGEST_BODY, LARGEST_HEAD
from experiments.labelling.page_server import PageServer
from selectenv.errors import FileError, SessionFileError
from tests.experiments.labelling.served_page import served
from tests.selectenv.labelling.teller import town

FORM = "application/x-www-form-urlencoded"
NASTY = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


@pytest.fixture
def session():
    with selectenv.LabellingSession(town(), "terminal", 3) as made:
        yield made


@pytest.fixture
def page(session):
    with served(session) as made:
        yield made


@pytest.fixture
def stored(tmp_path):
    """A session in a file."""
    with selectenv.LabellingSession(town(), "terminal", 3, tmp_path / "labels.sqlite") as made:
        yield made


def every_page(page):
    """Return the text of every kind of page of a session with answers and questions."""
    state = page.ask()
    wrong = page.post(f"state/{state}/answer", reward="much")
    page.post(f"state/{state}/answer", reward="1")
    page.post("range", low="-1", high="1")
    other = page.ask()
    paths = ["", f"state/{state}", f"state/{other}", "state/99", "nothing", "table/labels.csv", "table/none.csv"]
    paths += ["table/policy.csv", "table/curve.csv", "image/0", "static/page.js", "static/page.css", "static/../app.py"]
    return [wrong, *(page.get(path) for path in paths), page.post(f"state/{state}/retract", view="x"), page.post("ask")]


def test_the_server_binds_to_this_machine_only(session, monkeypatch):
    bound = []

    def listen(address, **options):
        bound.append((address, options["family"]))
        raise OSError("refused")

    monkeypatch.setattr(page_server.socket, "create_server", listen)
    with pytest.raises(FileError, match=r"cannot serve at 127\.0\.0\.1, port 0: refused"):
        PageServer(session)
    with pytest.raises(FileError, match="choose others with --host and --port"):
        PageServer(session, "::1", 80)
    assert bound == [(("127.0.0.1", 0), socket.AF_INET), (("::1", 80), socket.AF_INET6)]


def test_every_link_has_a_token_of_its_own(session):
    with served(session) as one, served(session) as other:
        tokens = [page.base.removeprefix("/") for page in (one, other)]
        assert tokens[0] != tokens[1]
        assert all(re.fullmatch(r"[\w-]{32}", token) for token in tokens)
        assert other.request("GET", f"{one.base}/")[0] == 403


def test_nothing_is_served_without_the_token(page):
    token = page.base[1:]
    wrong = ("", f"/{token[:-1]}", f"/{token}x", f"/{token.swapcase()}", "/%00", "/%C3%97", f"/x/{token}", f"//{token}")
    paths = ("", "state/0", "static/page.css", "table/labels.csv", "ask", "nothing")
    for method, prefix, path in product(("GET", "POST", "HEAD"), wrong, paths):
        status, _, text = page.request(method, f"{prefix}/{path}", origin=f"http://{page.host}")
        assert status == 403
        assert token not in text


def test_the_token_is_compared_in_constant_time(page, monkeypatch):
    compared, digests_agree = [], hmac.compare_digest

    def compare(given, token):
        compared.append((given, token))
        return digests_agree(given, token)

    monkeypatch.setattr(page_guard.hmac, "compare_digest", compare)
    token = page.base[1:].encode()
    for path in ("", "state/0", "static/page.css"):
        page.request("GET", f"/wrong/{path}")
        page.get(path)
    assert compared == [(b"wrong", token), (token, token)] * 3


def test_only_the_page_itself_changes_anything(page, session):
    state, own = page.ask(), f"http://{page.host}"
    paths = ["ask", "undo", "range", "name"]
    paths += [f"state/{state}/{word}" for word in ("answer", "skip", "retract", "take", "release")]
    foreign = (
        {},
        {"origin": "null"},
        {"origin": "https://elsewhere.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": f"{own}.elsewhere.example"},
        {"origin": own, "sec_fetch_site": "cross-site"},
        {"origin": own, "sec_fetch_site": "same-site"},
        {"referer": page.link},
    )
    for path, headers in product(paths, foreign):
        body = "reward=1&low=0&high=1&view=1"
        status, _, text = page.request("POST", f"{page.base}/{path}", body, content_type=FORM, **headers)
        assert (status, "page itself" in text) == (403, True)
    assert session.answers() == []
    assert session.reward_range is None
    assert len(session.handed_out()) == 1


def test_reading_changes_nothing(stored):
    def content():
        with closing(sqlite3.connect(stored.path)) as database:
            return list(database.iterdump())

    with served(stored) as page:
        state = page.ask()
        page.post(f"state/{state}/answer", reward="1")
        before = content()
        for path in ("", f"state/{state}", "table/labels.csv", "table/policy.csv", "state/99"):
            page.get(path)
        for path in ("ask", "undo", f"state/{state}/answer", f"state/{state}/skip", "range"):
            assert page.get(path)[0] == 405
        assert content() == before


def test_other_sites_cannot_take_the_name_of_this_machine(page):
    for host in ("elsewhere.example", f"elsewhere.example:{page.host.split(':')[1]}", "[", ""):
        assert page.request("GET", f"{page.base}/", host=host)[0] in (400, 403)
    for host in ("localhost", page.host, "[::1]:80"):
        assert page.request("GET", f"{page.base}/", host=host)[0] == 200


def test_a_page_for_other_machines_answers_to_any_name(session):
    guard = page_guard.PageGuard(None, "token", "0.0.0.0")
    scope = {"path": "/token/x", "method": "GET", "headers": [(b"host", b"lab.example")], "query_string": b""}
    assert guard._refusal(scope) == (None, "/x")


@pytest.mark.parametrize("chunked", [False, True])
def test_large_requests_are_refused(page, session, chunked):
    state = page.ask()
    path, origin = f"{page.base}/state/{state}/answer", f"http://{page.host}"
    body = b"reward=1&x=" + b"y" * (LARGEST_BODY - 11)
    for size, expected in ((LARGEST_BODY + 1, 413), (LARGEST_BODY, 303)):
        sent = (body + b"y")[:size]
        more = {"transfer_encoding": "chunked"} if chunked else {}
        given = iter([sent[:1000], sent[1000:]]) if chunked else sent
        status, _, text = page.request("POST", path, given, origin=origin, content_type=FORM, **more)
        assert status == expected, text
    assert len(session.answers()) == 1


def test_long_addresses_and_headers_are_refused(page):
    assert page.request("GET", f"{page.base}/?{'x' * (LARGEST_HEAD // 2)}")[0] == 200
    guard = page_guard.PageGuard(None, "token", "127.0.0.1")
    for query, cookie in ((LARGEST_HEAD, 0), (0, LARGEST_HEAD), (LARGEST_HEAD // 2, LARGEST_HEAD // 2)):
        headers = [(b"host", b"localhost"), (b"cookie", b"x" * cookie)]
        scope = {"path": "/token/", "method": "GET", "headers": headers, "query_string": b"x" * query}
        assert guard._refusal(scope)[0].status_code == 431


def test_long_numbers_are_not_those_of_states(page, session, capfd):
    """Python refuses to convert numbers of thousands of digits."""
    number = "9" * 5_000
    for path in (f"state/{number}", f"image/{number}", "state/9" + "9" * 150, "nothing/" * 100):
        assert page.get(path)[0] == 404
    assert page.get(f"?saved={number}")[0] == 200
    for instead in (number, "99", "1", "-1", "x", ""):
        state = page.ask()
        page.post(f"state/{state}/answer", reward="1")
        assert page.state_of(page.post("undo", follow=False, instead=instead)) == state
    assert session.answers() == []
    assert "Traceback" not in capfd.readouterr().err


def test_forms_with_many_fields_or_files_are_refused(page, session):
    state = page.ask()
    path, origin = f"{page.base}/state/{state}/answer", f"http://{page.host}"
    many = "&".join(f"{i}=" for i in range(1_500)) + "&reward=1"
    assert page.request("POST", path, many, origin=origin, content_type=FORM)[0] == 400
    upload = '--x\r\nContent-Disposition: form-data; name="reward"; filename="a"\r\n\r\n1\r\n--x--\r\n'
    status, _, _ = page.request("POST", path, upload, origin=origin, content_type="multipart/form-data; boundary=x")
    assert status == 415
    assert session.answers() == []


def test_every_response_has_the_security_headers(page):
    responses = [*every_page(page), page.request("GET", "/"), page.request("POST", f"{page.base}/ask")]
    assert {status for status, _, _ in responses} >= {200, 403, 404}
    for _, headers, _ in responses:
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert "server" not in headers
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", policy)


def test_pages_hold_no_scripts_styles_or_addresses_of_others(page):
    for _, headers, text in every_page(page):
        if headers.get_content_type() == "text/html":
            scripts = re.findall(r"<script[^>]*>", text)
            assert all("src=" in script for script in scripts)
            assert not re.search(r"\s(style|on\w+)=", text)
            addresses = re.findall(r'(?:src|href|action)="([^"]*)"', text)
            assert all(address.startswith((f"{page.base}/", "#")) for address in addresses)


def test_text_from_outside_is_escaped(tmp_path):
    data = selectenv.from_episodes([{"states": [NASTY, "b", NASTY, "b"], "actions": [f"go {NASTY}", "stay", "stay"]}])
    path = tmp_path / "a & <b>.sqlite"
    with selectenv.LabellingSession(data, "visitation", 2, path) as session, served(session) as page:
        page.post("name", annotator=NASTY)
        address = urlencode(dict.fromkeys(("saved", "notice", "mode", "before"), NASTY))
        state = page.ask()
        while state is not None:
            shown = page.get(f"state/{state}")[2]
            bad = page.post(f"state/{state}/answer", reward=NASTY)[2]
            after = page.post(f"state/{state}/answer", follow=False, mode="state", reward="1")
            answered = page.get(f"state/{state}?{address}")[2]
            for text in (shown, bad, answered, page.get()[2]):
                assert "&lt;script&gt;alert" in text
                assert "<script>alert" not in text
                assert "<img" not in text
                assert "\"'&<" not in text
            state = page.state_of(after)
        assert session.answers()[0].annotator == NASTY[:100]


def test_no_path_of_the_machine_reaches_the_page(stored, tmp_path, capfd, monkeypatch):
    def fail(*_, **__):
        raise SessionFileError(f"{str(stored.path)!r} cannot be used")

    with served(stored) as page:
        responses = every_page(page)
        monkeypatch.setattr(type(stored), "ask", fail)
        responses.append(page.post("ask"))
    assert responses[-1][0] == 500
    assert "This did not work" in responses[-1][2]
    for _, headers, text in responses:
        for path in (tmp_path, tmp_path.parent, Path(__file__).parents[3]):
            assert str(path) not in f"{headers}{text}"
    assert str(stored.path) in capfd.readouterr().err  # whoever started the server can read it


def test_unexpected_errors_are_not_shown(session, monkeypatch, capfd):
    monkeypatch.setattr(type(session), "status", lambda self: 1 / 0)
    with served(session) as page:
        status, _, text = page.get()
    assert status == 500
    assert "ZeroDivision" not in text
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_cookie_is_kept_from_scripts_and_other_pages(page):
    _, headers, _ = page.post("name", follow=False, annotator="Ada")
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite" in cookie
    assert f"path={page.base}".lower() in cookie
