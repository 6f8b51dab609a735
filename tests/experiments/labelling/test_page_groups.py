"""Groups of vectors on the labelling page, in the terminal and in files of questions."""

import csv
import re

import pytest

import selectenv
from experiments.labelling.group_histograms import HEIGHT, column_views
from experiments.labelling.label_files import read_labels
from experiments.labelling.label_tables import questions_csv
from experiments.labelling.query_texts import query_text
from tests.experiments.labelling.served_page import served, words


@pytest.fixture(scope="module")
def data():
    return selectenv.make_problem("CartPole", dataset_size=1_500, groups=12, rollouts=1, cache=False).dataset


def test_a_question_shows_histograms_members_and_episodes(data):
    with selectenv.LabellingSession(data.without_rewards, "uniform", 2) as session, served(session) as page:
        text = page.get(f"state/{page.ask()}")[2]
        query = session.query(session.handed_out()[0].id)
        said = words(text)
        assert f"group {query.id}" in said
        assert "Its columns, beside the whole data" in said
        for column in query.group.columns:
            assert f"{column.name} {column.low:.3g} to {column.high:.3g}" in said
        assert text.count('30" preserveAspectRatio="none" role="img"') == 4  # one histogram per column
        assert f"which are from {query.group.episodes:,} episode" in said
        for member in query.group.members:
            assert f"{member.episode} {member.step} {member.values[0]:.3g}" in said
        assert "Around it in the log" in said
        page.post(f"state/{data.numbers([query.id])[0]}/answer", mode="state", reward="1")
        assert session.status().answered == 1
        assert re.search(r"group \d+", page.get("")[2]) is not None


def test_bars_fit_into_the_drawing(data):
    query = selectenv.LabellingSession(data.without_rewards, "uniform", 1).ask()
    for view in column_views(query.group):
        assert view.width == len(view.bars)
        assert max(bar.height for bar in view.bars) == max(bar.data_height for bar in view.bars) == HEIGHT
        assert all(bar.top + bar.height == pytest.approx(HEIGHT) for bar in view.bars)
    assert column_views(None) == []


def test_labels_on_episodes_show_the_policy_over_groups():
    data = selectenv.make_problem("CartPole", dataset_size=300, groups="episode", rollouts=1, cache=False).dataset
    with selectenv.LabellingSession(data.without_rewards, "uniform", 2) as session, served(session) as page:
        assert f"300 transitions, {data.n_states} episodes" in words(page.get()[2])
        text = page.get(f"state/{page.ask()}")[2]
        assert re.search(r"<h1[^>]*>episode \d+</h1>", text)
        assert "Around it in the log" not in text  # every state around it is the same episode
        assert "One number for the episode" in words(text)
        rows = re.findall(r'<tr><th scope="row">(.*?)</th>', text)
        assert len(rows) == 30
        assert all(re.fullmatch(r"group \d+", row) for row in rows)
        assert f"The 30 most visited of {data.cells.labelable.sum()} states" in words(text)


@pytest.mark.parametrize("groups", [12, "episode", "state"])
def test_files_of_questions_say_what_a_group_looks_like(data, groups, tmp_path):
    grouped = selectenv.group_states(data, groups).without_rewards
    session = selectenv.LabellingSession(grouped, "uniform", 2)
    queries = session.ask(2)
    path = tmp_path / "questions.csv"
    path.write_text(questions_csv(queries))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for query in queries:
        row = next(row for row in rows if row["state"] == str(query.id))
        if groups == "state":
            assert float(row["position (value)"]) == pytest.approx(query.columns["position"], rel=1e-3)
        else:
            column = query.group.columns[0]
            assert row["position (range)"] == f"{column.low:.4g} to {column.high:.4g}"
    filled = [{**row, "reward": "0.5"} for row in rows]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(filled)
    assert set(read_labels(session, path)) == {query.id for query in queries}


def test_groups_in_the_terminal_are_shown_by_ranges_and_members(data):
    for groups in (12, "episode"):
        session = selectenv.LabellingSession(selectenv.group_states(data, groups).without_rewards, "uniform", 1)
        query = session.ask()
        text, member = query_text(session, query), query.group.members[0]
        assert f"position: {query.group.columns[0].low:.3g} to" in text
        assert f"episode {member.episode}, step {member.step}: position {member.values[0]:.3g}, velocity" in text
        assert ("around it, in the log" in text) == (groups == 12)
