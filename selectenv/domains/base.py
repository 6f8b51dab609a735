"""The protocol that every world implements, and the placeholder for data without a world."""

from typing import Protocol

from selectenv.domains.layout import Layout


class World(Protocol):
    """A world that datasets are collected from and policies are evaluated in."""

    @property
    def name(self) -> str:
        """The world's name."""

    @property
    def family(self) -> str:
        """The key of the `WorldFamily` that collects data from the world and evaluates policies in it."""

    @property
    def layout(self) -> Layout | None:
        """Positions of its states in drawings; None if they have no positions."""


class NoWorld:
    """Placeholder for data without a world: performance cannot be computed; all other methods work."""

    name = "data without a world"
    family = "none"
    layout = None
