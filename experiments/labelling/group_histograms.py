"""The columns of a group as small histograms, in the form in which the template draws them."""

from dataclasses import dataclass

from selectenv.labelling.group_summary import ColumnSummary, GroupSummary

HEIGHT = 30.0


@dataclass(frozen=True)
class Bar:
    """One interval: a bar of the group in front of one of the whole data."""

    x: int
    top: float
    height: float
    data_top: float
    data_height: float


@dataclass(frozen=True)
class ColumnView:
    """A column of a group."""

    name: str
    range: str
    """Smallest and largest value in the group."""
    data_range: str
    """The same in the whole data."""
    bars: list[Bar]

    @property
    def width(self) -> int:
        """Width of the drawing: one unit per bar."""
        return len(self.bars)


def column_views(group: GroupSummary | None) -> list[ColumnView]:
    """Return the columns of a group; none if there is no group."""
    return [] if group is None else [_view(column) for column in group.columns]


def short(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:.3g}"


def _view(column: ColumnSummary) -> ColumnView:
    tallest, data_tallest = max(column.bars), max(column.data_bars)
    bars = []
    for x, (share, data_share) in enumerate(zip(column.bars, column.data_bars, strict=True)):
        height, data_height = (round(HEIGHT * part, 2) for part in (share / tallest, data_share / data_tallest))
        bars.append(Bar(x, round(HEIGHT - height, 2), height, round(HEIGHT - data_height, 2), data_height))
    return ColumnView(
        column.name,
        f"{short(column.low)} to {short(column.high)}",
        f"{short(column.data_low)} to {short(column.data_high)}",
        bars,
    )
