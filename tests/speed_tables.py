"""Checks of the tables on the page about speed: limits are those of the benchmarks, and ratios follow from rates."""

import ast
import re

import pytest

from experiments.benchmarks import bench_scaling, bench_selectors, bench_vector
from tests.markdown_pages import ROOT, Table, tables


def check_speed(table: Table) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "experiments" / "benchmarks").glob("*.py")]
    (released,) = re.findall(r"^RELEASED_SECONDS = (\{.*?\})", "\n".join(sources), flags=re.DOTALL | re.MULTILINE)
    assert {row[0]: float(row[2].removesuffix(" s")) for row in table.rows} == ast.literal_eval(released)


def number(cell: str) -> float:
    """Return the number of a cell: without commas, per cent signs and units."""
    return float(cell.partition(" ")[0].replace(",", ""))


def check_vector(table: Table) -> None:
    """The shares follow from the rates, and the rates of label sets are those of the first table."""
    first = next(
        table for table in tables() if table.header[1:3] == ("label sets per second", "one call of the released code")
    )
    assert [row[:2] for row in table.rows] == [row[:2] for row in first.rows]
    for _, sets, steps, share, step, *parts, limit in table.rows:
        assert number(share) == pytest.approx(100 * number(steps) / number(sets), abs=1.5)
        assert number(share) >= bench_vector.LEAST
        assert number(step) == pytest.approx(1e6 * bench_vector.NUM_ENVS / number(steps), rel=0.02)
        assert sum(map(number, parts)) == pytest.approx(100, abs=1)
        assert limit


def check_single(table: Table) -> None:
    assert {row[0]: number(row[2]) for row in table.rows} == bench_vector.EARLIER
    for _, steps, earlier, times in table.rows:
        assert number(times) == pytest.approx(number(steps) / number(earlier), abs=0.06)
        assert number(times) >= bench_vector.LEAST_TIMES


def check_training(table: Table) -> None:
    assert [(row[0].strip("`"), row[1]) for row in table.rows] == [run[:2] for run in bench_selectors.RUNS]
    sync = {row[0]: row for row in table.rows if row[1] == bench_selectors.SYNC}
    for name, environments, *cells in table.rows:
        steps, times, rollout, rollout_times, updates = map(number, cells)
        assert times == pytest.approx(steps / number(sync[name][2]), abs=0.06)
        assert rollout_times == pytest.approx(rollout / number(sync[name][4]), abs=0.06)
        assert updates == pytest.approx(100 * (1 - steps / rollout), abs=1)
        if name == "`maskable-ppo`" and environments == "256, native":
            assert times >= bench_selectors.LEAST_TRAINING
            assert rollout_times >= bench_selectors.LEAST_ROLLOUT


def check_scaling(table: Table) -> None:
    limits = {int(row[0].replace(",", "")): float(row[5].removesuffix(" s")) for row in table.rows if row[5]}
    assert limits == bench_scaling.LIMITS
    assert all(int(row[0].replace(",", "")) in bench_scaling.SIZES for row in table.rows)
