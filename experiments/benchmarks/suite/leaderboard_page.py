"""docs/leaderboard.md, from the committed result files: ``python -m experiments.benchmarks.suite.leaderboard_page``."""

import sys
from pathlib import Path
from typing import Any

from experiments.analysis.figures import new_figure, save
from experiments.benchmarks.suite.benchmark_scores import BASELINES, left_out, ranks
from experiments.benchmarks.suite.result_files import committed, summary
from experiments.benchmarks.suite.suite_references import suite_hash
from experiments.benchmarks.suite.suite_tasks import ALWAYS, VERSION, places_of

PAGE = Path("docs/leaderboard.md")
FIGURE = "leaderboard.png"
BEGIN, END = "<!-- generated: leaderboard -->", "<!-- end -->"
HEADER = ("rank", "strategy", "all", "tabular worlds", "random worlds", "UDS", "adapted")
GROUPS = ("all", "tabular", "random", "uds", "adapted")


def ranked(summaries: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (rank, strategy) by ascending gap; strategies with overlapping intervals share a rank."""
    order = sorted(summaries, key=lambda name: (summaries[name]["gaps"]["all"].value, name))
    return list(zip(ranks([summaries[name]["gaps"]["all"] for name in order]), order, strict=True))


def table_rows(summaries: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the leaderboard."""
    header = [*HEADER, *(f"P(better than {name})" for name in BASELINES), "calls per episode", "ms per label"]
    rows = []
    for rank, name in ranked(summaries):
        one = summaries[name]
        better = [str(one["improvement"][base]) if base in one["improvement"] else "" for base in BASELINES]
        gaps = [str(one["gaps"][group]) if group in one["gaps"] else "" for group in GROUPS]
        rows.append([rank, name, *gaps, *better, f"{one['calls']:,.0f}", f"{1000 * one['seconds']:.2f}"])
    return header, rows


def markdown(summaries: dict[str, dict[str, Any]]) -> str:
    """Return the generated part of the page."""
    header, rows = table_rows(summaries)
    rows = [[row[0], f"`{row[1]}`", *row[2:]] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
    hashes = ", ".join(f"{part} `{suite_hash((part,))}`" for part in ALWAYS)
    omitted = [f"- {place.name}: {'; '.join(cells)}" for place in places_of(ALWAYS) if (cells := left_out(place))]
    return "\n".join(
        [
            f"Suite {VERSION}, hashes: {hashes}.",
            "",
            *lines,
            "",
            "### Cells that are left out",
            "",
            "In these cells, the mean return of random label sets is within 1 % of the best return known:",
            "",
            *omitted,
        ]
    )


def draw(summaries: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the gaps of strategies with their intervals, one panel per part of the suite.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    names = [name for _, name in ranked(summaries)]
    groups = [group for group in next(iter(summaries.values()))["gaps"] if group not in ("uds", "adapted")]
    figure = new_figure(3.0 * len(groups) + 1.5, 0.32 * len(names) + 1.4)
    axes = None
    for i, group in enumerate(groups):
        axes = figure.add_subplot(1, len(groups), i + 1, sharey=axes)
        for height, name in enumerate(names):
            gap = summaries[name]["gaps"].get(group)
            if gap is not None:
                axes.plot([gap.low, gap.high], [height, height], color="C0", lw=2.5, solid_capstyle="butt")
                axes.plot(gap.value, height, "o", color="C0", ms=5)
        axes.axvline(1, color="#808080", lw=1, ls="--")
        axes.axvline(0, color="#808080", lw=1)
        axes.set_title(
            {"all": "all", "tabular": "tabular worlds", "random": "random worlds"}.get(group, group), fontsize=10
        )
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.tick_params(labelleft=i == 0)
        axes.grid(alpha=0.3, axis="x")
    if axes is not None:
        axes.invert_yaxis()
    figure.supxlabel("normalised gap: 0 best known, 1 uniform (interquartile mean, 95 % interval)", fontsize=9)
    save(figure, path)


def with_table(text: str, generated: str) -> str:
    """Return the page with its generated part replaced."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{generated}\n{END}{rest.partition(END)[2]}"


def write_page(page: Path = PAGE) -> None:
    """Rewrite the generated part of the page, and its figure."""
    summaries = {name: summary(result) for name, result in committed().items()}
    page.write_text(with_table(page.read_text("utf-8"), markdown(summaries)), "utf-8")
    draw(summaries, page.with_name(FIGURE))


if __name__ == "__main__":
    write_page(*map(Path, sys.argv[1:]))
