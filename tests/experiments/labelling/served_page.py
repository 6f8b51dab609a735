"""Serve the page of a session in this process, and request it as a browser does."""

import http.client
import re
import threading
from contextlib import contextmanager
from html import unescape
from urllib.parse import urlencode, urlsplit

import selectenv
from experiments.labelling.page_server import PageServer
from selectenv.domains.tabular.delivery_robot import expert_answers

EXPERT = expert_answers()


def robot_log():
    return selectenv.from_csv(
        selectenv.example_log(), state=["place", "load"], action="action", episode="trip", time="time"
    )


def expert_answer(query):
    """Return what somebody who knows the hospital says."""
    return {action.action: EXPERT[query.id][action.action] for action in query.actions}


class Page:
    """Requests to a page."""

    def __init__(self, link):
        self.link = link
        parts = urlsplit(link)
        self.host, self.base = parts.netloc, parts.path.rstrip("/")
        self.cookie = ""

    def request(self, method, path, body=None, **headers):
        """Return status, headers and text of the response to a request; ``path`` begins with a slash."""
        connection = http.client.HTTPConnection(self.host, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        connection.request(method, path, body, sent, encode_chunked=sent.get("transfer-encoding") == "chunked")
        response = connection.getresponse()
        content = response.read()
        connection.close()
        text = content if response.headers.get_content_type() == "image/png" else content.decode()
        return response.status, response.headers, text

    def get(self, path=""):
        return self.request("GET", f"{self.base}/{path}", cookie=self.cookie or None)

    def post(self, path, follow=True, **form):
        """Send a form as the page does; follow the redirect."""
        status, headers, text = self.request(
            "POST",
            f"{self.base}/{path}",
            urlencode(form),
            origin=f"http://{self.host}",
            cookie=self.cookie or None,
            content_type="application/x-www-form-urlencoded",
        )
        self.cookie = headers.get("set-cookie", self.cookie).partition(";")[0]
        if status == 303 and follow:
            return self.request("GET", headers["location"], cookie=self.cookie or None)
        return status, headers, text

    def ask(self):
        """Ask for a state and return its number."""
        return self.state_of(self.post("ask", follow=False))

    def state_of(self, response):
        """Return the number of the state that a response leads to, None if it leads to the overview."""
        found = re.match(rf"{self.base}/state/(\d+)", response[1]["location"])
        return int(found[1]) if found else None


def words(text):
    """Return what a page says, without tags and with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


@contextmanager
def served(session, **options):
    """Run the server in a thread and yield its page."""
    server = PageServer(session, **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Page(server.link)
    finally:
        server.stop()
        thread.join()
