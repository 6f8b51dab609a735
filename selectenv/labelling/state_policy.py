"""The policy that a session returns: actions by the id of a state."""

import csv
import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_name, check_parent, check_path, is_int, shown
from selectenv.datasets.arrow_columns import require
from selectenv.datasets.dataframe_export import LIBRARIES
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.grouping import NearestState
from selectenv.datasets.naming import stored_columns, take_stored_columns, unknown_state
from selectenv.datasets.nearest_centre import NearestCentre
from selectenv.datasets.vector_observations import Vectors
from selectenv.errors import OptionError, UnknownStateError, WeightsFileError
from selectenv.io.atomic import whole_file
from selectenv.io.weights import load_weights, save_weights
from selectenv.labelling.acting_networks import ActingNetworks
from selectenv.labelling.queries import Action, action_names
from selectenv.learners.base import FitResult
from selectenv.typing import FloatArray

COLUMNS = ("state", "action", "probability", "value", "labelled")
"""Columns of the table of a policy, without those of states."""
REGIONS = ("mean", "scale", "centres")
"""Arrays of `NearestCentre` in the file of a policy."""
NEAREST = ("nearest_values", "nearest_group")
"""Arrays of `NearestState` in the file of a policy."""


@dataclass(frozen=True, eq=False)
class StatePolicy:
    """Action probabilities and values of the states of a dataset, by id."""

    ids: NDArray[Any]
    """[n] the ids of the states, sorted."""
    actions: Sequence[Action]
    """The actions: names where the data have them, else numbers."""
    table: FloatArray
    """[n, actions] action probabilities."""
    values: FloatArray
    """[n] learned state values."""
    labelled: NDArray[np.bool_]
    """[n] whether rewards of the state were told."""
    regions: NearestCentre | NearestState | None = None
    """Where vectors fall, if states are groups of them: a vector can then be given instead of the id of a state."""
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Column -> [n] its value in each state, if states were made of several columns of a log: a dict of one value per
    column can then be given instead of the id of a state."""
    networks: ActingNetworks | None = None
    """What acts if a vector is given, if the learner trains networks; the table has their means over each state."""

    def __repr__(self) -> str:
        """Return one line: the number of states, of those with labels, and of actions."""
        labelled = int(self.labelled.sum())
        return f"<StatePolicy: {len(self.ids):,} states ({labelled:,} labelled), {len(self.actions):,} actions>"

    @classmethod
    def of(cls, dataset: OfflineDataset, result: FitResult, labelled: NDArray[np.bool_]) -> "StatePolicy":
        """Return the policy that a learner found: over the states of its table if what is labelled are episodes."""
        regions = None if dataset.groups is None else dataset.groups.regions
        found = result.over_cells()
        return cls(
            dataset.cells.ids,
            action_names(dataset),
            found.table,
            found.values,
            dataset.labelled_cells(labelled).copy(),
            regions if isinstance(regions, NearestCentre | NearestState) else None,
            dataset.cells.state_columns,
            ActingNetworks.among(result.runs, dataset.base.vectors),
        )

    def probabilities(self, state: Any) -> dict[Action, float]:
        """Return the probability of each action in a state.

        Args:
            state: the id of a state; a dict of one value per column, if states are made of several; or a vector (or a
                dict of one number per column), if states are groups of vectors or the learner trains networks on them.

        Raises:
            UnknownStateError: the data have no state with this id.
            ObservationError: the vector has other columns than those of the data.
        """
        return dict(zip(self.actions, self._chances(state).tolist(), strict=True))

    def action(self, state: Any) -> Action:
        """Return the most probable action in a state, the first one of those that tie; see `probabilities`.

        Raises:
            UnknownStateError: the data have no state with this id.
            ObservationError: the vector has other columns than those of the data.
        """
        return self.actions[int(self._chances(state).argmax())]

    @property
    def header(self) -> list[str]:
        """The columns of the table of the policy: `COLUMNS`, with those of states after the first."""
        mine = [f"state_{name}" if name in COLUMNS else name for name in self.columns]
        return [COLUMNS[0], *mine, *COLUMNS[1:]]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the values of `header`, one row per state and action."""
        entries = zip(self.ids.tolist(), *(values.tolist() for values in self.columns.values()), strict=True)
        for i, state in enumerate(entries):
            for action, probability in zip(self.actions, self.table[i].tolist(), strict=True):
                yield *state, action, probability, float(self.values[i]), bool(self.labelled[i])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with the columns `header`, one row per state and action.

        Args:
            library: "pandas" or "polars".

        Raises:
            MissingExtraError: the library is not installed.
        """
        wanted = require(check_name("library", library, LIBRARIES))
        columns = zip(*self.rows(), strict=True)
        return wanted.DataFrame(dict(zip(self.header, map(list, columns), strict=True)))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the policy to a file: .npz, which `load` reads, or .csv, one row per state and action.

        Raises:
            OptionError: the name has another ending.
            FileError: the file cannot be written, for example since there is no such directory.
        """
        target = check_parent(check_path("path", path))
        if target.suffix == ".csv":
            text = io.StringIO(newline="")
            writer = csv.writer(text)
            writer.writerow(self.header)
            writer.writerows(self.rows())
            with whole_file(target) as file:
                file.write(text.getvalue().encode())
            return target
        if target.suffix != ".npz":
            raise OptionError(f"a policy is saved as .npz or .csv, not as {target.name!r}")
        arrays = {"ids": self.ids, "table": self.table, "values": self.values, "labelled": self.labelled}
        arrays |= stored_columns(self.columns)
        card: dict[str, Any] = {"policy": 1, "actions": list(self.actions)}
        if self.regions is not None:
            card["columns"] = list(self.regions.columns)
        if isinstance(self.regions, NearestCentre):
            arrays |= {name: getattr(self.regions, name) for name in REGIONS}
        if isinstance(self.regions, NearestState):
            arrays |= dict(zip(NEAREST, (self.regions.vectors.values, self.regions.group), strict=True))
        if self.networks is not None:
            more, entries = self.networks.stored()
            arrays, card = arrays | more, card | entries
        return save_weights(target, arrays, card)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "StatePolicy":
        """Read a policy from the .npz file that `save` wrote.

        Raises:
            WeightsFileError: the file is missing, damaged, or not a policy.
        """
        arrays, card = load_weights(path)
        if card.get("policy") != 1 or not {"ids", "table", "values", "labelled"} <= set(arrays):
            raise WeightsFileError(f"{os.fspath(path)!r} is not a policy that a labelling session saved")
        regions: NearestCentre | NearestState | None = None
        names = tuple(card.get("columns", ()))
        if names and {*REGIONS} <= set(arrays):
            regions = NearestCentre(names, *(arrays[name] for name in REGIONS))
        if names and {*NEAREST} <= set(arrays):
            regions = NearestState(Vectors(arrays[NEAREST[0]], names), arrays[NEAREST[1]])
        columns = take_stored_columns(arrays)
        try:
            networks = ActingNetworks.restored(arrays, card)
        except (KeyError, TypeError, ValueError):
            raise WeightsFileError(f"{os.fspath(path)!r} is not a policy: its networks are incomplete") from None
        table, values, labelled = (arrays[name] for name in ("table", "values", "labelled"))
        return cls(arrays["ids"], card["actions"], table, values, labelled, regions, columns, networks)

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The number of each id."""
        return {state: number for number, state in enumerate(self.ids.tolist())}

    def _chances(self, state: Any) -> FloatArray:
        """Return the action probabilities [actions] in a state."""
        vector = self._vector(state)
        if vector is None:
            return np.asarray(self.table[self._number(state)])
        cell = -1 if self.regions is None else int(self.regions.find(vector[None])[0])
        return np.asarray(self.table[cell]) if self.networks is None else self.networks.probabilities(vector, cell)

    def _vector(self, state: Any) -> NDArray[Any] | None:
        """Return the vector that is given in place of the id of a state; None if it is an id."""
        takes = self.regions or self.networks
        if isinstance(state, np.ndarray | list | tuple):
            if takes is None:
                raise UnknownStateError(
                    f"{unknown_state(state, self.ids)}; a policy takes vectors if the states of its session are groups "
                    "of them (selectenv.group_states), or if its learner trains networks"
                )
            return np.asarray(state)
        if takes is None or self.columns or not isinstance(state, Mapping):
            return None
        _check_columns(state, takes.columns)
        return np.asarray([state[name] for name in takes.columns])

    def _number(self, state: Any) -> int:
        if self.columns and isinstance(state, Mapping):
            return self._number_by_columns(state)
        number = self._places.get(state) if isinstance(state, str) or is_int(state) else None
        if number is None:
            raise UnknownStateError(unknown_state(state, self.ids))
        return number

    def _number_by_columns(self, state: Mapping[Any, Any]) -> int:
        """Return the number of the state with these values by column."""
        _check_columns(state, self.columns)
        found = np.logical_and.reduce([values == state[name] for name, values in self.columns.items()])
        if found.ndim != 1 or not found.any():
            raise UnknownStateError(unknown_state(dict(state), self.ids))
        return int(found.argmax())


def _check_columns(state: Mapping[Any, Any], columns: Collection[str]) -> None:
    """Raise unless a state has one value for each of the columns, and no others."""
    for name in state:
        check_name("column", name, columns)
    for name in columns:
        if name not in state:
            raise UnknownStateError(f"{shown(dict(state))} lacks a value for the column {name!r}")


def load_policy(path: str | os.PathLike[str]) -> StatePolicy:
    """Return the policy of a labelling session that `StatePolicy.save` wrote to an .npz file.

    Raises:
        WeightsFileError: the file is missing, damaged, or not a policy.
    """
    return StatePolicy.load(path)
