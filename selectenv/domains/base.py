"""What every world has, and the absence of one."""

from typing import Protocol

from selectenv.domains.layout import Layout


class World(Protocol):
    """A world that data come from and policies are evaluated in."""

    @property
    def name(self) -> str:
        """The world's name."""

    @property
    def family(self) -> str:
        """The key of the `WorldFamily` that collects data from the world and evaluates policies in it."""

    @property
    def layout(self) -> Layout | None:
        """Where its states are drawn; None if they have no positions."""


class NoWorld:
    """Data without a world: performance cannot be computed; everything else works."""

    name = "data without a world"
    family = "none"
    layout = None
