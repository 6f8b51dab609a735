"""The labelling page as a web application: its routes, and what they do with a session."""

import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import quote, unquote, urlencode

import jinja2
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from experiments.labelling.group_histograms import short
from experiments.labelling.label_tables import TABLES
from experiments.labelling.page_guard import PageGuard
from experiments.labelling.page_views import Question, choices_of, progress, question
from experiments.labelling.query_texts import end_text, state_text
from experiments.labelling.state_images import state_png
from experiments.labelling.typed_numbers import typed_number
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.naming import unit
from selectenv.errors import AnswerError, OptionError, QueryError, SelectEnvError
from selectenv.labelling.answers import rewards_of
from selectenv.labelling.session_reports import GivenAnswer
from selectenv.session import LabellingSession

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
FORM = "application/x-www-form-urlencoded"
NAME_COOKIE = "annotator"
LONGEST_NAME = 100
"""Largest number of characters in a name; the rest is cut off."""
LONGEST_BEFORE = 4_000
"""Largest number of characters of a withdrawn answer in an address; a longer one is not filled into the form again."""
LONGEST_NUMBER = 18
"""Largest number of digits of the number of a state."""
MOST_REFUSED = 100
"""Number of forms that were refused and whose content is remembered."""
RENEW_SECONDS = 60.0
"""Time between two renewals of the lease of an open page; shorter if the lease is short."""
MODES = ("state", "action", "transition")
"""What an answer has one number for."""
NOTICES = {
    "taken": "Somebody else is working on that state, or has answered it. Here is another one.",
    "nothing": "There is no answer of yours to undo.",
    "skipped": "Skipped. The state comes back after all others.",
    "undone": "The answer is withdrawn. Answer again, or skip the state.",
}
"""Messages of the page, by the value of `notice` in its address."""


@dataclass(frozen=True)
class Visit:
    """A request: who asks, about which state, and what the form says."""

    annotator: str
    number: int = -1
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The query parameters of the address."""
    form: Mapping[str, str] = field(default_factory=dict)
    file: str = ""

    @property
    def mode(self) -> str:
        """What an answer has one number for."""
        mode = self.form.get("mode", self.parameters.get("mode", ""))
        return mode if mode in MODES else MODES[0]


class LabelPages:
    """The pages of one session. Reading a page changes nothing; everything else is a form that the page sends."""

    def __init__(self, session: LabellingSession, base: str, choices: Sequence[float] | None = None) -> None:
        """Show a session.

        Args:
            session: the session, which several threads use.
            base: the path of the page, which begins with the token.
            choices: the answers of the number keys; by default steps over the range of the rewards.
        """
        self._session, self._base, self._choices = session, base, choices
        self._views: dict[int, int] = {}
        """How often the page of each state was shown; a tab that is closed gives back its state only if no other tab
        has shown it since."""
        self._refused: dict[int, tuple[int, Mapping[str, str], str]] = {}
        """The last forms that were refused: their numbers, what was typed, and why; by number modulo `MOST_REFUSED`."""
        self._refusals = itertools.count(1)
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("experiments.labelling"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["number"] = number_text
        self._templates.filters["plain"] = field_text
        self._templates.filters["answer"] = answer_text
        self._templates.filters["state"] = partial(self._shown, session.dataset)
        self._templates.filters["policy_state"] = partial(self._shown, session.dataset.cells)
        self._templates.filters["short"] = short
        self._templates.filters["end"] = end_text

    def _shown(self, dataset: OfflineDataset, id: Any) -> str:
        """Return a state in a list: its text or, where what is labelled are images, a small image."""
        text = state_text(dataset, id)
        if self._session.dataset.images is None:
            return text
        number = dataset.numbers([id])[0]
        return Markup('<img class="thumb" src="{}/image/{}" alt="{}">').format(self._base, number, text)

    def overview(self, visit: Visit) -> Response:
        """Show the progress of the session, and offer to begin."""
        _, error = self._refused_form(visit)
        waiting = [one for one in self._session.handed_out() if one.annotator == visit.annotator]
        numbers = self._session.dataset.numbers([one.id for one in waiting]).tolist()
        return self._page(
            "overview",
            visit,
            error=error,
            waiting=list(zip(numbers, waiting, strict=True)),
            settings=self._session.settings,
            size=len(self._session.dataset),
            n_states=int(self._session.dataset.labelable.sum()),
            unit=unit(self._session.dataset),
        )

    def state(self, visit: Visit) -> Response:
        """Show a state that was asked about: the question, or the answer that was given."""
        shown, (typed, error) = self._question(visit), self._refused_form(visit)
        self._views[visit.number] = self._views.get(visit.number, 0) + 1
        return self._page(
            "question",
            visit,
            question=shown,
            error=error,
            mode=visit.mode if visit.mode != "transition" or shown.by_transition else MODES[0],
            choices=choices_of(self._session) if self._choices is None else self._choices,
            values=typed or _values(shown, visit.parameters.get("before", "")),
            view=self._views[visit.number],
            renew=min(RENEW_SECONDS, self._session.settings.lease / 3),
            leased=any(
                (one.id, one.annotator) == (shown.query.id, visit.annotator) for one in self._session.handed_out()
            ),
        )

    def ask(self, visit: Visit, **parameters: str) -> Response:
        """Ask for the next state and go to its page."""
        query = self._session.ask(annotator=visit.annotator)
        if query is None:
            return self._go("", **parameters)
        number = int(self._session.dataset.numbers([query.id])[0])
        return self._go(f"state/{number}", **parameters, **({} if visit.mode == MODES[0] else {"mode": visit.mode}))

    def answer(self, visit: Visit) -> Response:
        """Store an answer and go to the next state."""
        shown = self._question(visit)
        try:
            self._session.tell(shown.query.id, _answer(shown, visit), annotator=visit.annotator)
        except AnswerError as error:
            return self._refuse(f"state/{visit.number}", visit, str(error))
        except QueryError:
            return self.ask(visit, notice="taken")
        return self.ask(visit, saved=str(visit.number))

    def skip(self, visit: Visit) -> Response:
        """Postpone a state and go to the next one."""
        try:
            self._session.skip(self._id(visit), annotator=visit.annotator)
        except QueryError:
            return self.ask(visit, notice="taken")
        return self.ask(visit, notice="skipped")

    def undo(self, visit: Visit) -> Response:
        """Withdraw the last answer of the annotator and go to its state."""
        last = next((a for a in reversed(self._session.answers()) if a.annotator == visit.annotator), None)
        id = self._session.undo(annotator=visit.annotator)
        if id is None:
            return self._go("", notice="nothing")
        return self._again(visit, id, last)

    def retract(self, visit: Visit) -> Response:
        """Withdraw the annotator's answer about a state, to answer it again."""
        id = self._id(visit)
        last = next((a for a in self._session.answers() if (a.id, a.annotator) == (id, visit.annotator)), None)
        self._session.retract(id, annotator=visit.annotator)
        return self._again(visit, id, last)

    def _again(self, visit: Visit, id: Any, last: GivenAnswer | None) -> Response:
        """Go back to a state whose answer was withdrawn; the state on the page, if there is one, is given back."""
        with suppress(HTTPException, QueryError):  # there is none, or it is no longer asked about
            self._give_back(_number(visit.form.get("instead", "")), visit.annotator)
        try:
            self._session.hand_out(id, annotator=visit.annotator)
        except QueryError:
            return self.ask(visit, notice="taken")
        number, given = int(self._session.dataset.numbers([id])[0]), None if last is None else last.answer
        mode = MODES[(dict, list).index(type(given)) + 1] if isinstance(given, dict | list) else ""
        before = json.dumps(given)
        return self._go(
            f"state/{number}", notice="undone", before=before if len(before) <= LONGEST_BEFORE else "", mode=mode
        )

    def take(self, visit: Visit) -> Response:
        """Hand out a state that is on the page: renew its lease, or take it over from a tab that was closed."""
        self._session.hand_out(self._id(visit), annotator=visit.annotator)
        return self._go(f"state/{visit.number}")

    def release(self, visit: Visit) -> Response:
        """Give back a state whose tab was closed."""
        if visit.form.get("view") == str(self._views.get(visit.number)):
            with suppress(QueryError):  # others are working on it by now
                self._give_back(visit.number, visit.annotator)
        return Response(status_code=204)

    def _give_back(self, number: int, annotator: str) -> None:
        self._session.release(self._id(Visit(annotator, number)), annotator=annotator)

    def reward_range(self, visit: Visit) -> Response:
        """Set the range of the unknown rewards, for the bounds."""
        try:
            low, high = (typed_number(visit.form.get(end, "")) for end in ("low", "high"))
            self._session.set_reward_range(low, high)
        except (AnswerError, OptionError) as error:
            return self._refuse("", visit, str(error))
        return self._go("")

    def name(self, visit: Visit) -> Response:
        """Set the name of the annotator, which a cookie keeps."""
        found = self._go("")
        name = visit.form.get("annotator", "")[:LONGEST_NAME]
        found.set_cookie(NAME_COOKIE, quote(name), path=self._base, httponly=True, samesite="lax")
        return found

    def table(self, visit: Visit) -> Response:
        """Return a CSV file."""
        if visit.file not in TABLES:
            raise HTTPException(404, "There is no such file.")
        try:
            text = TABLES[visit.file](self._session)
        except OptionError as error:
            raise HTTPException(409, str(error)) from None
        disposition = {"content-disposition": f'attachment; filename="{visit.file}"'}
        return Response(text, media_type="text/csv", headers=disposition)

    def image(self, visit: Visit) -> Response:
        """Return the image of a state."""
        images = self._session.dataset.images
        self._id(visit)
        if images is None:
            raise HTTPException(404, "The states of this session are not images.")
        return Response(state_png(images, visit.number), media_type="image/png")

    def asset(self, visit: Visit) -> Response:
        """Return a style sheet, script or image of the page."""
        if visit.file not in STATIC:
            raise HTTPException(404, "There is no such file.")
        content = files("experiments.labelling").joinpath("static", visit.file).read_bytes()
        return Response(content, media_type=STATIC[visit.file])

    def refusal(self, status: int, message: str) -> Response:
        """Show why a request failed."""
        text = self._templates.get_template("refusal.html.j2").render(base=self._base, message=message)
        return Response(text, status, media_type="text/html")

    def _refuse(self, path: str, visit: Visit, error: str) -> Response:
        """Go to the page of a form that was refused, which shows why and what was typed.

        The page is not the response to the form itself, which a browser would send again when it goes back.
        """
        number = next(self._refusals)
        self._refused[number % MOST_REFUSED] = number, visit.form, error
        return self._go(path, refused=str(number), mode="" if visit.mode == MODES[0] else visit.mode)

    def _refused_form(self, visit: Visit) -> tuple[Mapping[str, str], str]:
        """Return what was typed into the form that was refused, and why; empty if none was."""
        wanted = _number(visit.parameters.get("refused", ""))
        number, form, error = self._refused.get(wanted % MOST_REFUSED, (0, {}, ""))
        return (form, error) if number == wanted else ({}, "")

    def _page(self, template: str, visit: Visit, **context: Any) -> Response:
        text = self._templates.get_template(f"{template}.html.j2").render(
            base=self._base,
            images=self._session.dataset.images is not None,
            annotator=visit.annotator,
            notice=NOTICES.get(visit.parameters.get("notice", ""), ""),
            saved=self._answer_of(visit.parameters.get("saved", "")),
            progress=progress(self._session),
            title=self._session.path.name if self._session.path else "Labelling session",
            **context,
        )
        return Response(text, media_type="text/html")

    def _go(self, path: str, **parameters: str) -> RedirectResponse:
        given = {name: value for name, value in parameters.items() if value}
        return RedirectResponse(f"{self._base}/{path}{'?' if given else ''}{urlencode(given)}", 303)

    def _id(self, visit: Visit) -> Any:
        if not 0 <= visit.number < self._session.dataset.n_states:
            raise HTTPException(404, "There is no such state.")
        return self._session.dataset.ids[visit.number].item()

    def _question(self, visit: Visit) -> Question:
        self._id(visit)
        try:
            return question(self._session, visit.number, visit.annotator)
        except QueryError:
            raise HTTPException(404, "This state has not been asked about.") from None

    def _answer_of(self, number: str) -> GivenAnswer | None:
        """Return the last answer about the state of this number, None if there is none."""
        try:
            id = self._id(Visit("", _number(number)))
        except HTTPException:
            return None
        return next((answer for answer in reversed(self._session.answers()) if answer.id == id), None)


def page_app(
    session: LabellingSession, token: str, host: str, annotator: str = "", choices: Sequence[float] | None = None
) -> ASGIApp:
    """Return the application that serves the page.

    Args:
        session: the session, which stays open as long as the application runs.
        token: the first part of the path of every page.
        host: the address that the server is bound to.
        annotator: the name of annotators who do not give one.
        choices: the answers of the number keys.
    """
    pages = LabelPages(session, f"/{token}", choices)

    def endpoint(handle: Callable[[Visit], Response]) -> Callable[[Request], Any]:
        async def call(request: Request) -> Response:
            visit = await _visit(request, annotator)
            return await run_in_threadpool(handle, visit)

        return call

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return pages.refusal(error.status_code, error.detail)

    async def failed(_: Request, error: Exception) -> Response:
        if isinstance(error, QueryError):
            return pages.refusal(409, str(error))
        if isinstance(
            error, SelectEnvError
        ):  # printed only here, since it may name files; the server logs other errors
            print(f"error: {error}", file=sys.stderr)
        return pages.refusal(500, "This did not work. Earlier answers are stored; see the terminal for details.")

    reads = {
        "/": pages.overview,
        "/state/{number:int}": pages.state,
        "/image/{number:int}": pages.image,
        "/table/{file}": pages.table,
        "/static/{file}": pages.asset,
    }
    writes = {
        "/ask": pages.ask,
        "/undo": pages.undo,
        "/range": pages.reward_range,
        "/name": pages.name,
        **{
            f"/state/{{number:int}}/{name}": getattr(pages, name)
            for name in ("answer", "skip", "retract", "take", "release")
        },
    }
    app = Starlette(
        routes=[
            *(Route(path, endpoint(handle), methods=["GET"]) for path, handle in reads.items()),
            *(Route(path, endpoint(handle), methods=["POST"]) for path, handle in writes.items()),
        ],
        exception_handlers={HTTPException: refused, SelectEnvError: failed, Exception: failed},
    )
    app.router.redirect_slashes = False  # redirects would lack the token
    return PageGuard(app, token, host)


async def _visit(request: Request, annotator: str) -> Visit:
    """Return the contents of a request."""
    form: dict[str, str] = {}
    if request.method == "POST":
        if request.headers.get("content-type", "").partition(";")[0] not in ("", FORM):
            raise HTTPException(415, "Only forms are accepted here.")
        form = {name: value for name, value in (await request.form()).items() if isinstance(value, str)}
    name = "".join(filter(str.isprintable, unquote(request.cookies.get(NAME_COOKIE, "")).strip()))
    return Visit(
        annotator=name[:LONGEST_NAME] or annotator,
        number=request.path_params.get("number", -1),
        parameters=dict(request.query_params),
        form=form,
        file=request.path_params.get("file", ""),
    )


def _number(text: str) -> int:
    """Return the number of a state, as an address or a form has it; -1 if there is none."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else -1


def _answer(shown: Question, visit: Visit) -> Any:
    """Return the answer of a form.

    Raises:
        AnswerError: a field does not hold a finite number.
    """
    if visit.mode == "action":
        return {
            action.action: typed_number(visit.form.get(f"action-{i}", ""))
            for i, action in enumerate(shown.query.actions)
        }
    if visit.mode == "transition":
        return [typed_number(visit.form.get(f"transition-{i}", "")) for i in range(len(shown.query.transitions))]
    return typed_number(visit.form.get("reward", ""))


def _values(shown: Question, before: str) -> dict[str, str]:
    """Return the content of the form after the answer ``before``, as JSON, was withdrawn."""
    try:
        rewards = rewards_of(shown.query.id, shown.query.actions, json.loads(before))
    except (ValueError, RecursionError):
        return {}
    fields = {f"transition-{i}": field_text(reward) for i, reward in enumerate(rewards)}
    first = 0
    for i, action in enumerate(shown.query.actions):
        fields[f"action-{i}"] = fields[f"transition-{first}"]
        first += len(action.transitions)
    return {"reward": fields["transition-0"], **fields}


def number_text(value: float) -> str:
    """Return a number as people read it."""
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def field_text(value: float) -> str:
    """Return a number as a form holds it, without loss."""
    return repr(float(value)).removesuffix(".0")


def answer_text(answer: Any) -> str:
    """Return an answer in words; the number that most actions share is written once."""
    if not isinstance(answer, dict):
        return ", ".join(number_text(value) for value in answer) if isinstance(answer, list) else number_text(answer)
    common, times = Counter(answer.values()).most_common(1)[0]
    if times == len(answer):
        return number_text(common)
    several = times > 1
    texts = [f"{action} {number_text(value)}" for action, value in answer.items() if value != common or not several]
    return ", ".join([*texts, f"others {number_text(common)}"] if several else texts)
