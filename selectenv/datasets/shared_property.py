"""Properties that a dataset shares with its reward-free copy."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from selectenv.datasets.dataset import OfflineDataset

T = TypeVar("T")


class shared_property(Generic[T]):  # noqa: N801 - used as a decorator, like functools.cached_property
    """A property that is computed once for a dataset and its reward-free copy together; it must not read rewards."""

    def __init__(self, compute: "Callable[[OfflineDataset], T]") -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, dataset: "OfflineDataset | None", owner: type) -> T:
        if dataset is None:
            return self  # type: ignore[return-value]  # documentation tools inspect the descriptor itself
        shared = dataset._shared
        if self._name not in shared:
            shared[self._name] = self._compute(dataset)
        value: T = shared[self._name]
        dataset.__dict__[self._name] = value  # found there next time, without this call
        return value
