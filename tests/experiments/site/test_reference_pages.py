"""The generated reference has all environments, agents, commands and public names, and says what the code says."""

import argparse
import re
from dataclasses import fields

import gymnasium as gym
import pytest

import agents
import selectenv
from experiments.cli import main as cli
from experiments.site.agent_pages import agents_page
from experiments.site.api_pages import PAGES, api_pages, names_of, public_names
from experiments.site.command_pages import commands_page
from experiments.site.environment_pages import (
    SMALL,
    WORLDS,
    _descriptions,
    effective_defaults,
    environment_page,
)
from experiments.site.field_docs import field_docs
from experiments.site.result_pages import published_results, result_pages
from experiments.site.world_pictures import draw_world
from selectenv.options import GROUPS, TrainingOptions
from selectenv.worlds import CONTROL, GAMES, RANDOM
from tests.agreement_counts import results
from tests.markdown_pages import ROOT

IDS = [name for name in gym.registry if name.startswith("RewardSelection-")]
RESULTS = ROOT / "docs" / "results.csv"


def option_rows(text):
    """Return the tables of options of a page: option -> default and meaning."""
    return {
        name: (default, meaning)
        for name, default, meaning in re.findall(r"^\| `(\w+)` \| `(.*)` \| (.*) \|$", text, re.M)
    }


def test_every_id_has_a_page():
    assert sorted(IDS) == sorted(selectenv.env_id(world) for world in (*WORLDS, RANDOM))
    assert list(_descriptions()) == [*WORLDS, RANDOM]


@pytest.mark.parametrize("world", [*WORLDS, RANDOM])
def test_the_page_of_an_environment(world):
    text = environment_page(world, _descriptions()[world])
    env = gym.make(selectenv.env_id(world), **SMALL.get(world, {}))
    assert text.startswith(f"# {selectenv.env_id(world)}\n")
    for key, space in env.observation_space.items():
        shape = "n" if world in GAMES and space.shape[0] > 1 else space.shape[0]
        assert f"| `{key}` | [{shape}] |" in text
    shown = option_rows(text)
    if world != RANDOM:
        groups = [group for group in GROUPS if group is not TrainingOptions or world in {**GAMES, **CONTROL}]
        wanted = {option.name for group in groups for option in fields(group)} | set(WORLDS[world].parameters)
        assert set(shown) == wanted
        assert all(meaning for _, meaning in shown.values())
    env.close()
    assert ("## Published numbers" in text) == any(row["world"] == world for row in published_results(RESULTS))


@pytest.mark.parametrize("world", WORLDS)
def test_the_shown_defaults_are_those_that_a_problem_has(world):
    shown, small = effective_defaults(world), SMALL.get(world, {})
    env = selectenv.make_env(world, **{key: value for key, value in small.items() if key != "learner"})
    spec, learner = env.problem.dataset.spec, env.problem.learner
    share = shown["expert_share"]
    assert spec["expert_share"] == (list(share) if isinstance(share, tuple) else share)
    assert spec["mixture"] == shown["mixture"]
    assert small or spec["size"] == shown["dataset_size"]
    assert spec.get("groups") == shown.get("groups")
    assert ("exact" in type(env.problem.evaluator.engine).__name__.lower()) == (shown["evaluator"] == "exact")
    assert ("iql" in type(learner).__name__.lower()) == (shown["learner"] == "iql")
    if "labels_per_refit" in shown:
        share = shown["labels_per_refit"]
        assert env._terms.refit_every == (share if share >= 1 else int(share * env.problem.n_states))
    if shown["learner"] == "uds":
        assert (learner.expectile or "max") == shown["expectile"]


def test_pictures_of_every_family(tmp_path):
    for world in ("Graph", "Sparse", "Breakout", "CartPole", RANDOM):
        draw_world(world, tmp_path / f"{world}.png")
        assert (tmp_path / f"{world}.png").stat().st_size > 1_500


def test_every_agent_and_all_of_its_options_are_described():
    text = agents_page()
    sections = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(agents.AGENTS)
    for name, section in sections.items():
        agent = agents.make(name)
        shown = option_rows(section)
        assert list(shown) == [option.name for option in fields(agent) if option.init]
        for option, (default, meaning) in shown.items():
            assert meaning, (name, option)
            assert default in (repr(getattr(agent, option)), f"{type(getattr(agent, option)).__name__}()"), (
                name,
                option,
            )


def parsers(top):
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from parsers(command)


def test_every_command_and_every_option_is_described():
    text = commands_page()
    sections = dict(re.findall(r"^##+ (selectenv [\w -]+)\n(.*?)(?=^##+ |\Z)", text, flags=re.MULTILINE | re.DOTALL))
    every = list(parsers(cli.parser()))
    assert list(sections) == [command.prog for command in every]
    for command in every:
        for action in command._actions:
            for option in action.option_strings if action.dest != "help" else ():
                assert f"`{option}" in sections[command.prog], (command.prog, option)


def test_every_public_name_is_on_one_page():
    documented = [name for page in PAGES.values() for name in names_of(page)]
    assert len(documented) == len(set(documented))
    for name, home in public_names().items():
        assert (name in documented) + (f"{home}.{name.rpartition('.')[2]}" in documented) == 1, name
    for module in ("selectenv.wrappers.OneShot", "selectenv.errors.BudgetError", "agents.errors.SavedAgentError"):
        assert module in documented
    pages = dict(api_pages())
    assert len(pages) == len(PAGES) + 1
    assert ".. autofunction:: selectenv.make_env\n" in pages["reference/api/environments.md"]


def test_published_numbers_stand_beside_ours():
    pages = dict(result_pages(RESULTS))
    rows = [row for row in results() if row["published"]]
    assert len(pages) == 1 + len({row["study"] for row in rows})
    for row in rows:
        published = row["published"] + (f" ±\u00a0{row['its error']}" if row["its error"] else "")
        assert published in pages[f"reference/results/{row['study']}.md"]
    table = pages["reference/results/heuristics-uds.md"]
    line = next(
        lines for lines in zip(table.splitlines(), table.splitlines()[1:], strict=False) if "| `guided` |" in lines[0]
    )
    graph = [
        row for row in rows if (row["study"], row["world"], row["strategy"]) == ("heuristics-uds", "Graph", "guided")
    ]
    marks = {"agrees": "", "differs": "**", "cannot be told": "*"}
    for row, published, ours in zip(graph, line[0].split("|")[3:], line[1].split("|")[3:], strict=False):
        mark = marks[row["verdict"].partition(":")[0]]
        assert published.strip().startswith(row["published"])
        assert ours.strip() == f"{mark}{row['ours']} ±\u00a0{row['std. error']}{mark}"


def test_docs_of_fields_come_from_docstrings_and_strings():
    class Base:
        """A class.

        Attributes:
            first: one line
                that continues.
        """

        first: int = 1
        second: int = 2
        """The second."""

    class Derived(Base):
        second: int = 3
        """Another second."""

    assert field_docs(Base) == {"first": "one line that continues.", "second": "The second."}
    assert field_docs(Derived) == {"first": "one line that continues.", "second": "Another second."}
