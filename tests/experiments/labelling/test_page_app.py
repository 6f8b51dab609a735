"""What the labelling page shows, and what its forms do to the session."""

import csv
import io
import re

import numpy as np
import pytest

import selectenv
from experiments.labelling.page_app import answer_text, field_text, number_text
from experiments.labelling.typed_numbers import typed_number
from selectenv.errors import AnswerError
from tests.experiments.labelling.served_page import expert_answer, robot_log, served, words
from tests.selectenv.labelling.teller import town

LabellingSession = selectenv.LabellingSession


@pytest.fixture(scope="module")
def log():
    return robot_log()


@pytest.fixture
def session(log):
    with LabellingSession(log, "terminal", 4) as made:
        yield made


@pytest.fixture
def page(session):
    with served(session) as made:
        yield made


def fields(text):
    """Return the names of the number fields of a page, and what is in them."""
    found = re.findall(r'<input[^>]*name="([^"]+)"[^>]*type="number"[^>]*value="([^"]*)"', text)
    return {name: value for name, value in found if name not in ("low", "high")}


def test_the_first_page_says_what_is_wanted(page):
    status, headers, text = page.get()
    assert (status, headers.get_content_type()) == (200, "text/html")
    said = words(text)
    assert "4 labels to go" in said
    assert "4,926 transitions, 45 states" in said
    assert "0 of 4 labels" in said
    assert said.startswith("Labelling session")


def test_a_question_shows_the_state_its_actions_and_what_was_around_it(page, session, log):
    text = page.get(f"state/{page.ask()}")[2]
    (handed,) = session.handed_out()
    query, said = session.query(handed.id), words(text)
    assert "Question 1 of 4" in said
    assert "place ward B load meals" in said
    assert f"seen {query.visits} times" in said
    for action in query.actions:
        assert f"{action.action} {action.count:,} of {query.visits}" in said
    assert "open tray" in said
    assert "→ the episode ended 100%" in said
    assert text.count('<ol class="episode"') == len(query.episodes) == 3
    assert text.count('aria-current="step"') == 3


def test_labels_for_screen_readers(page):
    page.post("range", low="-20", high="10")
    for path in ("", f"state/{page.ask()}"):
        text = page.get(path)[2]
        assert 'lang="en"' in text
        assert text.count("<h1") == 1
        named = set(re.findall(r'<label[^>]*for="([^"]+)"', text))
        for field in re.findall(r"<input(?![^>]*type=\"hidden\")[^>]*>", text):
            id = re.search(r'id="([^"]+)"', field)
            before = text[: text.index(field)]
            in_label = before.count("<label") > before.count("</label")
            assert "aria-label=" in field or in_label or (id and id[1] in named), field
        for drawing in re.findall(r"<svg[^>]*>", text):
            assert "aria-label=" in drawing or "aria-hidden" in drawing
        pointed = re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', text)
        assert {f'id="{id}"' in text for id in pointed} == {True}


def test_one_number_for_the_state(page, session):
    state = page.ask()
    _, _, text = page.post(f"state/{state}/answer", reward="-1.5")
    (given,) = session.answers()
    assert (given.answer, given.annotator) == (-1.5, "")
    assert "Saved \N{MINUS SIGN}1.5 for ward B · meals" in words(text)
    assert "1 of 4 labels" in words(text)
    assert "Question 2 of 4" in words(text)


def test_one_number_for_each_action(page, session):
    state = page.ask()
    query = session.query(session.handed_out()[0].id)
    said = expert_answer(query)
    form = {f"action-{i}": str(said[action.action]) for i, action in enumerate(query.actions)}
    response = page.post(f"state/{state}/answer", follow=False, mode="action", **form)
    assert "mode=action" in response[1]["location"]  # the next state is asked about in the same way
    assert session.answers()[0].answer == said
    text = page.get(f"state/{page.state_of(response)}?saved={state}")[2]
    assert "Saved north \N{MINUS SIGN}20, open tray 10, others 0 for ward B · meals" in words(text)


def test_one_number_for_each_outcome(page, session):
    state = page.ask()
    query = session.query(session.handed_out()[0].id)
    assert len(query.transitions) > len(query.actions)
    numbers = [float(i) for i in range(len(query.transitions))]
    page.post(f"state/{state}/answer", mode="transition", **{f"transition-{i}": str(x) for i, x in enumerate(numbers)})
    assert session.answers()[0].answer == numbers


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "a number is missing; write it like 0.5 or -3"),
        ({"reward": " "}, "a number is missing"),
        ({"reward": "0,5"}, "'0,5' is not a number"),
        ({"reward": "nan"}, "finite number"),
        ({"reward": "1e400"}, "finite number"),
        ({"mode": "action", "action-0": "1"}, "a number is missing"),
        ({"mode": "transition", "transition-0": "x"}, "'x' is not a number"),
    ],
)
def test_wrong_answers_are_explained_and_kept_in_the_form(page, session, form, message):
    state = page.ask()
    status, headers, _ = page.post(f"state/{state}/answer", follow=False, **form)
    assert status == 303, "the browser must not send the form again when it goes back"
    status, _, text = page.request("GET", headers["location"])
    assert status == 200
    assert message in words(text)
    assert re.search(r'role="alert">[^<]*number', text)
    shown = fields(text)
    assert {name: shown[name] for name in form if name != "mode"} == {n: v for n, v in form.items() if n != "mode"}
    mode = form.get("mode", "state")
    assert re.search(rf'value="{mode}" checked', text)
    assert session.answers() == []


def test_only_the_last_refused_forms_are_remembered(page, session):
    state = page.ask()
    locations = [page.post(f"state/{state}/answer", follow=False, reward=f"x{i}")[1]["location"] for i in range(101)]
    remembered = [fields(page.request("GET", one)[2])["reward"] for one in (locations[0], locations[1], locations[100])]
    assert remembered == ["", "x1", "x100"]
    assert fields(page.get(f"state/{state}?refused=7x")[2])["reward"] == ""


def test_skip_puts_a_state_off(page, session):
    first = page.ask()
    response = page.post(f"state/{first}/skip", follow=False)
    second = page.state_of(response)
    assert second != first
    assert "Skipped" in words(page.get(f"state/{second}?notice=skipped")[2])
    assert session.status().skipped == 1
    asked = [second]
    while asked[-1] is not None:
        asked.append(page.state_of(page.post(f"state/{asked[-1]}/answer", follow=False, reward="1")))
    assert first not in asked
    assert (len(asked), session.status().done) == (5, True)


@pytest.mark.parametrize(
    ("form", "kept"),
    [
        ({"reward": "0.123456789"}, {"reward": "0.123456789"}),
        ({"mode": "action", "action-0": "1", "action-1": "2"}, {"action-0": "1", "action-1": "2"}),
        ({"mode": "transition", **{f"transition-{i}": str(-i) for i in range(3)}}, {"transition-2": "-2"}),
    ],
)
def test_undo_goes_back_to_the_state_with_what_was_answered(form, kept):
    data = selectenv.from_arrays(
        states=["a", "b", "a", "a"], actions=[0, 0, 0, 1], next_states=["b", "a", "a", "a"], terminated=[False] * 4
    )
    session = LabellingSession(data, "visitation", 2)
    with served(session) as page:
        first = page.ask()
        while session.dataset.ids[first] != "a":
            first = page.state_of(page.post(f"state/{first}/skip", follow=False))
        second = page.state_of(page.post(f"state/{first}/answer", follow=False, **form))
        response = page.post("undo", follow=False, instead=str(second))
        assert page.state_of(response) == first
        text = page.request("GET", response[1]["location"])[2]
        assert "withdrawn" in words(text)
        assert fields(text).items() >= kept.items()
        assert [one.id for one in session.handed_out()] == ["a"]  # the other state is given back
        assert session.answers() == []
        assert "no answer of yours" in words(page.post("undo")[2])


def test_an_answer_can_be_changed_later(page, session):
    first = page.ask()
    second = page.state_of(page.post(f"state/{first}/answer", follow=False, reward="1"))
    text = page.get(f"state/{first}")[2]
    assert "Answered 1 Next question Change the answer" in words(text)
    page.post(f"state/{first}/retract")
    page.post(f"state/{first}/answer", reward="2")
    assert [answer.answer for answer in session.answers()] == [2.0]
    status, _, text = page.post(f"state/{second}/retract")
    assert (status, "no answer about the state" in words(text)) == (409, True)


def test_a_state_that_was_answered_elsewhere_leads_to_the_next_one(page, session):
    state = page.ask()
    session.tell(session.handed_out()[0].id, 5)
    for word in ("answer", "skip"):
        _, _, text = page.post(f"state/{state}/{word}", reward="1")
        assert "Somebody else is working on that state, or has answered it" in words(text)
    assert [answer.answer for answer in session.answers()] == [5.0]


def test_what_was_not_asked_about_is_not_shown(page):
    for path in ("state/3", "state/99", "state/99999999999999999999", "image/0", "table/x.csv", "static/x", "else"):
        assert page.get(path)[0] == 404
    assert page.get("table/curve.csv")[0] == 409  # the range of the rewards is not known
    for word in ("answer", "retract", "take", "release", "skip"):
        assert page.post(f"state/99/{word}", reward="1", view="None")[0] == 404


def test_the_range_of_the_rewards_gives_bounds(page, session):
    assert "Say between which numbers all rewards lie" in words(page.get()[2])
    for low, high, message in (
        ("1", "0", "low must not exceed high"),
        ("x", "1", "is not a number"),
        ("", "", "missing"),
    ):
        status, _, text = page.post("range", low=low, high=high)
        assert (status, message in words(text)) == (200, True)
    text = page.post("range", low="-20", high="10")[2]
    bounds = session.bounds()
    assert f"{bounds.regret:.4g} The policy so far earns at most this much less" in words(text)
    assert f"no policy earns more than {bounds.upper:.4g}" in words(text)
    assert "hold in the model of the log" in words(text)
    state = page.ask()
    choices = re.findall(r'data-choice="([^"]+)"', page.get(f"state/{state}")[2])
    assert choices == ["-20", "-10", "0", "5", "10"]
    text = page.post(f"state/{state}/answer", reward="11")[2]
    assert "11 is outside the range of the rewards of" in words(text)
    assert (fields(text)["reward"], session.answers()) == ("11", [])
    page.post("range", low="-20", high="11")
    page.post(f"state/{state}/answer", reward="11")
    session._store.set_note("reward_range", [[0.0], [1.0]])  # as in files of earlier releases
    assert "There is no bound: the range of rewards in state" in words(page.get()[2])


def test_two_people_answer_each_question(log):
    with LabellingSession(log, "terminal", 1, answers_per_query=2) as session:
        with served(session, annotator="nobody") as page:
            assert "answered by 2 people" in words(page.get()[2])
            page.post("name", annotator="Ada Ä")
            state = page.ask()
            page.post(f"state/{state}/answer", reward="1")
            page.post("name", annotator="  Bea ")
            assert page.ask() == state
            page.post(f"state/{state}/answer", reward="2")
            text = page.get(f"state/{state}")[2]
            assert "1 by Ada Ä 2 by Bea" in words(text)
            page.post("name", annotator="")
            assert "nobody" in words(page.get()[2])
        assert session.status().annotators == {"Ada Ä": 1, "Bea": 1}
        assert session.labels()[0].spread == 1.0


def test_names_become_printable(page, session):
    page.cookie = "annotator=a%0Ab%00" + "c" * 300
    page.post(f"state/{page.ask()}/answer", reward="1")
    assert session.answers()[0].annotator == "ab" + "c" * 98


def test_a_tab_keeps_its_state_and_gives_it_back(page, session):
    state = page.ask()
    until = session.handed_out()[0].until
    view = re.search(r'data-view="(\d+)" data-leased', page.get(f"state/{state}")[2])[1]
    assert page.post(f"state/{state}/take")[0] == 200
    assert session.handed_out()[0].until > until
    page.get(f"state/{state}")  # reloaded before the old page is gone
    assert page.post(f"state/{state}/release", view=view)[0] == 204
    assert len(session.handed_out()) == 1
    view = re.search(r'data-view="(\d+)"', page.get(f"state/{state}")[2])[1]
    page.post(f"state/{state}/release", view=view)
    assert session.handed_out() == []
    assert f'data-view="{int(view) + 1}">' in page.get(f"state/{state}")[2]  # the script asks for it again
    session.ask(annotator="somebody else")
    assert page.post(f"state/{state}/take")[0] == 409


def test_what_is_open_in_other_tabs_can_be_taken_over(session):
    with served(session) as page:
        states = [page.ask() for _ in range(5)]
        assert len(set(states)) == 5
        assert states[4] is None
        text = page.get()[2]
        assert "4 questions are open in other tabs" in words(text)
        assert len(re.findall("Answer it here", text)) == 4
        assert "Question 1 of 4" in words(page.post(f"state/{states[0]}/take")[2])


def test_the_end_and_the_files(page, session):
    page.post("range", low="-20", high="10")
    state = page.ask()
    while state is not None:
        state = page.state_of(page.post(f"state/{state}/answer", follow=False, reward="0"))
    text = page.get()[2]
    assert "All 4 labels are there" in words(text)
    assert re.findall(r'table/(\w+\.csv)" download', text) == ["labels.csv", "policy.csv", "curve.csv"]
    _, headers, labels = page.get("table/labels.csv")
    assert headers["content-disposition"] == 'attachment; filename="labels.csv"'
    assert headers.get_content_type() == "text/csv"
    rows = list(csv.DictReader(io.StringIO(labels)))
    assert {row["state"] for row in rows} == {label.id for label in session.labels()}
    policy = list(csv.DictReader(io.StringIO(page.get("table/policy.csv")[2])))
    assert len(policy) == 45 * 5
    assert len(list(csv.DictReader(io.StringIO(page.get("table/curve.csv")[2])))) == 5
    assert page.state_of(page.post("undo", follow=False)) is not None


def test_the_policy_on_the_page_is_that_of_the_session(page, session):
    for _ in range(4):
        query = session.ask()
        session.tell(query.id, expert_answer(query))
    policy = session.policy()
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td[^>]*>(.*?)</td><td class="value">(.*?)</td>', page.get()[2])
    assert len(rows) == 30
    assert "The 30 most visited of 45 states" in words(page.get()[2])
    columns = session.dataset.state_columns
    names = {" · ".join(entries): i for i, entries in enumerate(zip(*columns.values(), strict=True))}
    for shown, action, value in rows:
        number = names[words(shown).removesuffix(" •")]
        table = policy.table[number]
        if action == "no preference":
            assert np.ptp(table) < 1e-9
        else:
            assert action.split(" or ")[0] == policy.action(policy.ids[number].item())
        assert value.replace("\N{MINUS SIGN}", "-") == f"{policy.values[number]:.4g}"
        assert ("•" in shown) == policy.labelled[number]


def test_states_that_are_numbers_are_shown_in_their_world():
    data = selectenv.make_problem("CliffWalk", dataset_size=2_000, cache=False).dataset.without_rewards
    with served(LabellingSession(data, "visitation", 2)) as page:
        text = page.get(f"state/{page.ask()}")[2]
    assert 'aria-label="Place of the state in CliffWalk' in text
    assert text.count('class="here"') == 1
    assert text.count('class="trap"') == 10


def test_states_that_are_images_are_shown_as_images():
    data = selectenv.make_problem("Breakout", dataset_size=300, cache=False).dataset.without_rewards
    with served(LabellingSession(data, "visitation", 2)) as page:
        state = page.ask()
        text = page.get(f"state/{state}")[2]
        assert f'<img class="picture" src="{page.base}/image/{state}"' in text
        assert text.count('class="thumb"') > 5
        status, headers, image = page.get(f"image/{state}")
    assert (status, headers.get_content_type()) == (200, "image/png")
    assert image.startswith(b"\x89PNG")


def test_many_outcomes_are_counted_and_not_listed():
    after = [1 + i // 2 if i < 180 else 500 for i in range(200)]
    data = selectenv.from_arrays(
        states=[state for following in after for state in (0, following)],
        actions=[0] * 400,
        next_states=[state for following in after for state in (following, 0)],
        terminated=[False] * 400,
    )
    session = LabellingSession(data, "visitation", 91)
    with served(session) as page:
        state = page.ask()
        while state != 0:
            state = page.state_of(page.post(f"state/{state}/skip", follow=False))
        text = page.get("state/0")[2]
        assert "→ 500 10% → 1 1%" in words(text)
        assert "and 85 others" in words(text)
        assert "each outcome" not in words(text)
        assert 'type="radio"' not in page.get("state/0?mode=transition")[2]


def test_an_answer_that_is_too_long_for_an_address_can_be_undone():
    after = np.arange(1, 1_001)
    data = selectenv.from_arrays(
        states=np.stack([0 * after, after], 1).ravel(),
        actions=np.zeros(2_000, int),
        next_states=np.stack([after, 0 * after], 1).ravel(),
        terminated=np.zeros(2_000, bool),
    )
    session = LabellingSession(data, "terminal", 1_001)
    session.ask(1_001)
    session.tell(0, np.linspace(0, 1, 1_000))
    with served(session) as page:
        status, _, text = page.post("undo")
        assert (status, "The answer is withdrawn" in text) == (200, True)
        assert set(fields(text).values()) == {""}


def test_a_session_in_a_file_and_own_choices(tmp_path):
    session = LabellingSession(town(), "terminal", 1, tmp_path / "labels.sqlite")
    with session, served(session, choices=[0.25, 3.0]) as page:
        text = page.get(f"state/{page.ask()}")[2]
        assert words(text).startswith("shop - labels.sqlite")
        assert re.findall(r'data-choice="([^"]+)"', text) == ["0.25", "3"]


def test_texts_of_numbers_and_answers():
    assert [number_text(x) for x in (0, -20.0, 1744.351, 1e-7)] == [
        "0",
        "\N{MINUS SIGN}20",
        "1744",
        "1e\N{MINUS SIGN}07",
    ]
    assert [field_text(x) for x in (0, -20.0, 0.1, 1e300)] == ["0", "-20", "0.1", "1e+300"]
    assert answer_text({"a": 1.0, "b": 2.0}) == "a 1, b 2"
    assert answer_text({"a": 1.0, "b": 0.0, "c": 0.0}) == "a 1, others 0"
    assert answer_text({"a": 1.0, "b": 1.0}) == "1"
    assert answer_text([1.0, 2.5]) == "1, 2.5"
    with pytest.raises(AnswerError, match="is not a number"):
        typed_number("x" * 1000)
