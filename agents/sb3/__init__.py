"""Meta-learners of Stable-Baselines3 and sb3-contrib, and the vector environment in their form."""

from typing import Any

__all__ = ["VecSelection"]


def __getattr__(name: str) -> Any:
    """Import `VecSelection` at its first use: it needs Stable-Baselines3, which is optional."""
    if name == "VecSelection":
        from agents.sb3.vec_selection import VecSelection

        return VecSelection
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
