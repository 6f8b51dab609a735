"""How much of a study was run, in words and as the commands that run the same again."""

from collections.abc import Iterable, Sequence

from experiments.analysis.gathering import StudyResults
from experiments.engine.cell import Cell
from experiments.engine.own_cells import is_own_strategy, is_own_world
from experiments.engine.study import Study


def coverage_sentence(one: StudyResults) -> str:
    """Return the numbers of cells and seeds that were run and, where they are smaller, those of the whole study."""
    full = one.study.cells(one.study.seeds, "exact")
    cells, seeds = len(one.results), seeds_run(result.cell for result in one.results)
    default = _default_seeds(full, [result.cell for result in one.results])
    missing = len({cell.key for cell in full} - {result.cell.key for result in one.results})
    whole = f" ({missing:,} of the {len(full):,} cells of the study are not part of this report)" if missing else ""
    of = f" (default: {default:,})" if default > seeds else ""
    return f"{cells:,} cell{'s' * (cells != 1)}{whole}, {seeds:,} seed{'s' * (seeds != 1)}{of}"


def run_commands(one: StudyResults, name: str | None = None) -> list[str]:
    """Return commands that run the same cells again.

    Args:
        one: a study and what was run of it.
        name: what the command line calls the study; its name by default.
    """
    groups: dict[str, list[Cell]] = {}
    for result in one.results:
        groups.setdefault(_own_part(result.cell), []).append(result.cell)
    return [_run_command(one.study, name or one.study.name, own, cells) for own, cells in groups.items()]


def seeds_run(cells: Iterable[Cell]) -> int:
    """Return the number of different seeds."""
    return len({cell.seed for cell in cells})


def _own_part(cell: Cell) -> str:
    """Return the value of ``--only`` for a user-defined world or strategy, and nothing for the cells of a study."""
    if is_own_strategy(cell.strategy):
        return f"{cell.world}/{cell.strategy}"
    return cell.world if is_own_world(cell.world) else ""


def _run_command(study: Study, name: str, own: str, cells: Sequence[Cell]) -> str:
    full = study.cells(study.seeds, "exact")
    only, seeds = own or _only(full, cells), seeds_run(cells)
    words = ["selectenv run", name, f"--only {only}" if only else ""]
    return " ".join(filter(None, [*words, f"--seeds {seeds}" if seeds < _default_seeds(full, cells) else ""]))


def _default_seeds(full: Sequence[Cell], cells: Sequence[Cell]) -> int:
    """Return the number of seeds that the study has for the strategies that were run; for all of its own, the most."""
    played = {(cell.world, cell.strategy) for cell in cells}
    return seeds_run([cell for cell in full if (cell.world, cell.strategy) in played] or full)


def _only(full: Sequence[Cell], cells: Sequence[Cell]) -> str:
    """Return the value of ``--only`` if the cells are those of one world of several, or of one strategy in it."""
    worlds = {cell.world for cell in cells}
    if len(worlds) != 1:
        return ""
    (world,) = worlds
    strategies, all_strategies = ({c.strategy for c in some if c.world == world} for some in (cells, full))
    if len(strategies) == 1 < len(all_strategies):
        return f"{world}/{strategies.pop()}"
    return world if {cell.world for cell in full} - worlds else ""
