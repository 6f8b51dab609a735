"""Cells of a study in a user-defined world or with a user-defined strategy: named as "module:name", or by a file."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import agents
import selectenv
from agents.registry import SAVED
from experiments.engine.agent_versions import with_agent_version
from experiments.engine.cell import Cell
from experiments.engine.problems import problem
from experiments.errors import UnreplaceableError
from experiments.protocol.budgets import BUDGETS, FEEDBACK
from selectenv.budget import number_of_labels
from selectenv.checks import check_name
from selectenv.references import is_reference
from selectenv.worlds import CONTROL, GAMES

OF_ONE_STRATEGY = ("agent", "search", "weights", "steps")
"""Settings that belong to one strategy, so that another one cannot take its place."""


def is_own_world(name: str) -> bool:
    """Return whether a name stands for a world that is not among the published ones."""
    return is_reference(name) or (
        name in list(selectenv.WORLDS) and name not in {**selectenv.TABULAR, **GAMES, **CONTROL}
    )


def is_own_strategy(name: str) -> bool:
    """Return whether a name stands for a strategy that does not come with this package, or for the file of one."""
    if is_reference(name) or name.endswith(SAVED):
        return True
    return name in list(agents.AGENTS) and not agents.AGENTS[name].kind.__module__.startswith("agents.")


def own_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells of user-defined worlds and strategies."""
    return [cell for cell in cells if is_own_world(cell.world) or is_own_strategy(cell.strategy)]


def budgets_of(world: str) -> tuple[int, ...]:
    """Return the published budgets of a world, or the numbers of labels of the same shares in another world."""
    if world in BUDGETS:
        return BUDGETS[world]
    n = problem(world).n_states
    return tuple(sorted({number_of_labels(share, n) for share in FEEDBACK}))


def chosen_cells(cells: list[Cell], only: str, *, must_have: bool = True) -> list[Cell]:
    """Return the cells of one world, or of one strategy in it.

    A user-defined world or strategy takes the place of one of the study, with its seeds and settings; the budgets of
    a user-defined world are the same shares of its states.

    Args:
        cells: all cells of a study.
        only: "WORLD" or "WORLD/STRATEGY".
        must_have: whether it is an error if the study does not have this strategy.

    Raises:
        UnknownNameError: there is no such world or strategy.
        UnreplaceableError: nothing in this study can be replaced by it.
    """
    world, _, strategy = only.partition("/")
    if is_own_world(world):
        cells = _in_own_world(cells, world)
    else:
        check_name("world", world, dict.fromkeys([*selectenv.WORLDS, *(cell.world for cell in cells)]))
        cells = [cell for cell in cells if cell.world == world]
    if not strategy:
        return cells
    if is_own_strategy(strategy) and strategy not in {cell.strategy for cell in cells}:
        return _with_own_strategy(cells, strategy)
    if must_have:
        check_name("strategy", strategy, sorted({cell.strategy for cell in cells}))
    return [cell for cell in cells if cell.strategy == strategy]


def chosen_or_none(cells: list[Cell], only: str) -> list[Cell]:
    """Return the same as `chosen_cells`, and nothing where the study does not have or take what was chosen."""
    world, _, strategy = only.partition("/")
    if is_own_world(world):
        selectenv.WORLDS.find(world)
    if strategy and is_own_strategy(strategy):
        agents.make(strategy)
    try:
        return chosen_cells(cells, only, must_have=False)
    except UnreplaceableError:
        return []


def _in_own_world(cells: list[Cell], world: str) -> list[Cell]:
    budgets, n = budgets_of(world), problem(world).n_states
    model = next((cell.world for cell in cells if cell.world in BUDGETS and _plays_an_agent(cell)), None)
    if model is None:
        raise UnreplaceableError(
            f"this study plays no strategies in tabular worlds, so that {world} cannot take the place of one"
        )
    found = {}
    for cell in cells:
        if cell.world != model:
            continue
        settings = dict(cell.settings)
        if "budgets" in settings:
            settings["budgets"] = budgets
        if "budget" in settings:
            place = BUDGETS[model].index(settings["budget"]) if settings["budget"] in BUDGETS[model] else len(budgets)
            settings["budget"] = budgets[min(place, len(budgets) - 1)]
            if settings["budget"] <= math.floor(settings.get("env", {}).get("initial_ratio", 0.0) * n + 1e-9):
                continue  # nothing would be left to choose
        own = replace(cell, world=world, settings=settings)
        found[own.key] = own
    return list(found.values())


def _with_own_strategy(cells: list[Cell], strategy: str) -> list[Cell]:
    agents.make(strategy)  # raises now if there is no such strategy, rather than in the first cell
    free = [cell for cell in cells if _plays_an_agent(cell) and not set(OF_ONE_STRATEGY) & cell.settings.keys()]
    if not free:
        if cells:
            raise UnreplaceableError(f"this study has no strategy that {strategy} can take the place of")
        return []
    ((model, _),) = Counter(cell.strategy for cell in free).most_common(1)  # a strategy with all seeds
    return [with_agent_version(replace(cell, strategy=strategy)) for cell in free if cell.strategy == model]


def _plays_an_agent(cell: Cell) -> bool:
    """Return whether the strategy of a cell is an agent rather than, say, the best known set."""
    return cell.strategy in list(agents.AGENTS) or cell.strategy.startswith("es-")
