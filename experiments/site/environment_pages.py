"""The pages about environments, one per registered id: spaces, options, a picture and published numbers."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

import selectenv
from experiments.site.field_docs import field_docs, parameter_docs
from experiments.site.markdown_text import table
from experiments.site.result_pages import LEGEND, published_results, tables
from experiments.site.world_pictures import draw_world
from selectenv.learners import LEARNERS
from selectenv.options import GROUPS, EnvironmentOptions, TrainingOptions
from selectenv.random_problems import RandomProblems
from selectenv.worlds import CONTROL, GAMES, RANDOM, SCALING, TABULAR, WorldRow

DOCS = Path(__file__).parents[2] / "docs"
SMALL: dict[str, dict[str, Any]] = {
    **{world: {"dataset_size": 1_000, "learner": "uds"} for world in GAMES},
    **{world: {"dataset_size": 2_000} for world in CONTROL},
}
"""Options that make an environment in a moment, with the default spaces except for the number of states of games."""
USAGE = """import gymnasium as gym
import selectenv

env = gym.make("{name}")
obs, info = env.reset(seed=0)
"""
LEFT_OUT = ("es-iterations", "es-population", "initial-sample")
"""Studies whose many published numbers are only on the pages of the studies."""
FAMILY_PAGES = {"minatar": "[MinAtar](../../minatar.md)", "gym": "[Control worlds](../../control.md)"}
WORLDS = {**TABULAR, **SCALING, **GAMES, **CONTROL}


def environment_pages(images: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every page, and of the list of them; pictures are written to ``images``."""
    images.mkdir(parents=True, exist_ok=True)
    described = _descriptions()
    for world in (*WORLDS, RANDOM):
        draw_world(world, images / f"{world}.png")
        yield f"reference/environments/{world}.md", environment_page(world, described[world])
    links = [(f"[`{selectenv.env_id(world)}`]({world}.md)", described[world]["description"]) for world in described]
    parts = [
        "# All environments",
        "One page per registered id, generated from the code. [Environments](../../environments.md) explains what they "
        "have in common.",
        table(("id", "description"), links),
        "\n".join(["```{toctree}", ":hidden:", "", *(f"{world} <{world}>" for world in described), "```"]),
    ]
    yield "reference/environments/index.md", "\n\n".join(parts) + "\n"


def environment_page(world: str, described: dict[str, str]) -> str:
    """Return the page of one id; ``described`` is its row in the table of the README."""
    name = selectenv.env_id(world)
    picture = f"![{world}]({world}.png)"
    facts = {key: value for key, value in described.items() if key not in ("id", "description")}
    parts = [
        f"# {name}",
        f"{described['description'][:1].upper()}{described['description'][1:]}.",
        picture,
        _dynamics(world),
        table(list(facts), [list(facts.values())]),
        f"```python\n{USAGE.format(name=name)}```",
        "## Spaces",
        _spaces(world, described["states"]),
        "## Options",
        "Keywords of `gym.make`, with the defaults of this environment. [Options](../api/options.md) has the "
        "dataclasses behind them.",
        *_options(world),
    ]
    rows = [row for row in published_results(DOCS / "results.csv") if row["world"] == world]
    if rows:
        parts += ["## Published numbers", LEGEND]
        for study in dict.fromkeys(row["study"] for row in rows):
            if study not in LEFT_OUT:
                own = [row for row in rows if row["study"] == study]
                parts += [f"### [{study}](../results/{study}.md)", *tables(own)]
    return "\n\n".join(parts) + "\n"


def _descriptions() -> dict[str, dict[str, str]]:
    """Return the rows of the table of environments in the README, by world."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    header, *rows = re.findall(r"^\| (?:`RewardSelection-|id ).*\|$", readme, flags=re.MULTILINE)
    names, *lines = ([cell.strip() for cell in row.strip("|").split("|")] for row in (header, *rows))
    return {line[0].split("-")[1]: dict(zip(names, line, strict=True)) for line in lines}


def _dynamics(world: str) -> str:
    """Return what the module of a world says about its dynamics, and where more is to be found."""
    if world == RANDOM:
        return f"{inspect.getdoc(RandomProblems)}\n\nSee [random worlds](../../environments.md#random-worlds)."
    made = WORLDS[world].make
    kind = made.func if isinstance(made, partial) else made
    page = FAMILY_PAGES.get(getattr(kind, "family", ""))
    if world in CONTROL:
        return f"{inspect.getdoc(kind)} {page} describes {world} and its family."
    text = (inspect.getmodule(kind).__doc__ or "").strip().partition("\n\n")[2]
    return f"{text}\n\n{page} describes {world} and its family." if page else text


def _spaces(world: str, states: str) -> str:
    env = gym.make(selectenv.env_id(world), **SMALL.get(world, {}))
    space, n = env.observation_space, int(env.action_space.n)  # type: ignore[attr-defined]
    assert isinstance(space, gym.spaces.Dict)
    fixed = world not in GAMES
    action = f"`Discrete({n})`" if fixed else "`Discrete(n)`"
    what = "group of states" if world in CONTROL else "state"
    count = "" if fixed else f", where n is the number of unique states in the data ({states} by default)"
    meanings = _meanings()
    rows = []
    for key, box in space.items():
        shape = tuple("n" if not fixed and size == n else size for size in box.shape or ())
        low, high = (f"{end.min():g}" for end in (box.low, box.high))  # type: ignore[attr-defined]
        rows.append((f"`{key}`", f"[{', '.join(map(str, shape))}]", f"{low} to {high}", meanings[key]))
    env.close()
    actions = f"**Actions.** {action}{count}: the number of the {what} to label."
    observations = table(("key", "shape", "range", "meaning"), rows)
    return f"{actions}\n\n**Observations.** A `Dict` of float32 arrays:\n\n{observations}"


def _meanings() -> dict[str, str]:
    """Return what the parts of an observation mean, from the table of docs/environments.md."""
    page = (DOCS / "environments.md").read_text(encoding="utf-8")
    rows = re.search(r"^\| key \| meaning \|\n.*?\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", rows[1] if rows else "", flags=re.MULTILINE))


def _options(world: str) -> Iterator[str]:
    header = ("option", "default", "meaning")
    if world == RANDOM:
        yield from ("### Random worlds", table(header, _rows(RandomProblems, {})))
        yield from ("### Environment", table(header, _rows(EnvironmentOptions, {})))
        return
    row = WORLDS[world]
    own = [(f"`{name}`", f"`{default!r}`", meaning) for name, default, meaning in _own_options(row)]
    if own:
        yield from (f"### {world}", table(header, own))
    for group in GROUPS:
        if group is TrainingOptions and world not in {**GAMES, **CONTROL}:
            continue  # networks need images or vectors
        yield f"### {group.__name__.removesuffix('Options')}"
        yield table(header, _rows(group, effective_defaults(world)))


def _own_options(row: WorldRow) -> Iterator[tuple[str, Any, str]]:
    kind = row.make.func if isinstance(row.make, partial) else row.make
    docs = {**parameter_docs(kind), **(field_docs(kind) if inspect.isclass(kind) else {})}
    for name, parameter in inspect.signature(row.make).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield name, parameter.default, docs.get(name, "")


def _rows(group: type, known: dict[str, Any]) -> list[tuple[str, str, str]]:
    docs = field_docs(group)
    return [
        (f"`{option.name}`", f"`{known.get(option.name, option.default)!r}`", docs.get(option.name, ""))
        for option in fields(group)
    ]


def effective_defaults(world: str) -> dict[str, Any]:
    """Return the defaults of options that depend on the world."""
    row, game = WORLDS[world], world in GAMES
    defaults, learning = row.defaults, row.defaults.learning
    found = {
        "dataset_size": 100_000 if not game else learning.fast.transitions,
        "expert_share": defaults.expert_share,
        "mixture": defaults.mixture,
        "learner": defaults.learner,
        "passes": learning.passes,
        "evaluator": defaults.evaluator,
        "rollouts": defaults.rollouts,
        "exploit": "pooled" if game else "best",
        "updates": learning.fast.updates,
    }
    if LEARNERS.find(defaults.learner).fast_refits is None:
        found["labels_per_refit"] = defaults.labels_per_refit
    if defaults.groups is not None:
        found["groups"] = defaults.groups
    if defaults.learner != "iql":
        found["expectile"] = learning.expectile
    return found | ({"scale": "fast"} if game else {})
