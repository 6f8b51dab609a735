"""Starting and stopping the labelling page, and its command."""

import http.client
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import selectenv
from experiments.cli import main as cli
from experiments.labelling import page_server
from experiments.labelling.page_server import PageServer
from selectenv.errors import MissingExtraError
from tests.selectenv.labelling.teller import town


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "labels.sqlite"
    selectenv.LabellingSession(town(), "terminal", 2, found).close()
    return found


def test_the_browser_is_opened_by_way_of_a_file_of_the_user(path, monkeypatch, capsys):
    opened = []

    def open_browser(address):
        file = Path(urlsplit(address).path)
        opened.append((file, file.read_text(), stat.S_IMODE(file.stat().st_mode)))
        return False

    monkeypatch.setattr(page_server.webbrowser, "open", open_browser)
    monkeypatch.setattr(PageServer, "run", lambda self: self._listener.close())
    assert cli.main(["label", "serve", str(path)]) == 0
    printed = capsys.readouterr()
    link = re.search(r"The page is at (http://127\.0\.0\.1:\d+/[\w-]{32}/)\n", printed.out)[1]
    ((file, text, mode),) = opened
    assert f"url={link}" in text
    assert mode == 0o600
    assert not file.exists()
    assert "No browser was found" in printed.err
    assert cli.main(["label", "serve", str(path), "--no-browser"]) == 0
    assert len(opened) == 1
    assert "On other machines" not in capsys.readouterr().out
    assert cli.main(["label", "serve", str(path), "--no-browser", "--host", "0.0.0.0"]) == 0
    assert "On other machines, write the name or the address of this one" in capsys.readouterr().out


def test_sigterm_and_a_port_that_is_taken(path, capsys):
    command = [sys.executable, "-m", "selectenv", "label", "serve", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        link = urlsplit(process.stdout.readline().split()[-1])
        connection = http.client.HTTPConnection(link.netloc, timeout=30)
        connection.request("POST", f"{link.path}ask", headers={"origin": f"http://{link.netloc}"})
        assert connection.getresponse().status == 303
        connection.close()
        assert cli.main(["label", "serve", str(path), "--no-browser", "--port", str(link.port)]) == 1
        assert f"cannot serve at 127.0.0.1, port {link.port}" in capsys.readouterr().err
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
        assert "repeat the command to resume" in process.stderr.read()
    with selectenv.LabellingSession.open(path) as session:
        assert session.handed_out() == []  # what was handed out is given back


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "--port must be"),
        (["--choices", *map(str, range(10))], "--choices takes up to 9 numbers"),
        (["--choices", "nan"], "--choices takes finite numbers"),
        (["--annotator", "a\nb"], "annotator must be printable"),
        (["--host", "256.0.0.1"], "cannot serve at 256.0.0.1"),
    ],
)
def test_wrong_options_are_named(path, capsys, options, message):
    assert cli.main(["label", "serve", str(path), "--no-browser", *options]) == 1
    assert message in capsys.readouterr().err


def test_a_missing_session_is_named(tmp_path, capsys):
    assert cli.main(["label", "serve", str(tmp_path / "none.sqlite"), "--no-browser"]) == 1
    assert "there is no session file" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["starlette.applications", "uvicorn", "python_multipart"])
def test_missing_packages_are_named(monkeypatch, missing):
    for module in [name for name in sys.modules if name.startswith("experiments.labelling.page_")]:
        if module != page_server.__name__:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    session = selectenv.LabellingSession(town(), "terminal", 1)
    with pytest.raises(MissingExtraError, match=r"pip install 'selectenv\[label\]'"):
        PageServer(session)


def test_ipv6_links_have_brackets():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    server = PageServer(selectenv.LabellingSession(town(), "terminal", 1), "::1")
    server._listener.close()
    assert re.fullmatch(r"http://\[::1\]:\d+/[\w-]{32}/", server.link)
