"""The order in which queries are handed out: as the strategy chooses them, and skipped ones after all others."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from selectenv.checks import shown
from selectenv.errors import QueryError
from selectenv.labelling.label_store import LabelStore
from selectenv.labelling.next_queries import ChoiceState, NextQueries


class QueryQueue:
    """The queries of a session.

    A query that was skipped does not count towards the budget: another state is asked about in its place. It comes back
    once there is no state left that was not asked about.
    """

    def __init__(self, store: LabelStore, chooser: NextQueries, owner: str) -> None:
        """Begin with the queries of a file.

        Args:
            store: the file.
            chooser: chooses the states of further queries.
            owner: name of this session object in the leases that it makes.
        """
        self._store, self._chooser, self._settings, self._owner = store, chooser, chooser.settings, owner
        self._n_states = int(chooser.problem.dataset.labelable.sum())

    def available(self, annotator: str, wanted: int) -> tuple[list[tuple[int, int]], bool]:
        """Return up to ``wanted`` queries for an annotator, with the numbers of their states.

        Returns:
            Query numbers and state numbers, and whether these are all that can be handed out now: if not, `choose`
            adds more.
        """
        store, answers = self._store, self._settings.answers_per_query
        found = store.available(annotator, answers, wanted, skipped=False)
        chosen, skipped = store.queries(), store.skipped()
        missing = self._settings.budget - (len(chosen) - len(skipped))
        if len(found) == wanted or missing <= 0:
            return found, True
        if len(chosen) < self._n_states:
            return found, False
        missing -= len(skipped & {lease.query for lease in store.leases()})
        if missing > 0:
            found += store.available(annotator, answers, min(wanted - len(found), missing), skipped=True)
        return found, True

    def choose(self, wanted: int) -> None:
        """Let the strategy choose at least ``wanted`` more queries, unless another process does so at the same time."""
        number, passed_on = self._store.last_choice()
        chosen = np.array(self._store.queries(), np.int64)
        skipped = np.isin(np.arange(1, len(chosen) + 1), list(self._store.skipped()))
        if self._settings.budget > len(chosen) - skipped.sum() and len(chosen) < self._n_states:
            states, after = self._chooser.choose(chosen, wanted, ChoiceState(**passed_on), skipped)
            self._store.add_choice(number + 1, states.tolist(), after.as_text())

    def check_answer(self, id: Any, number: int, who: str) -> bool:
        """Check that an annotator may answer a query, and return whether this answer completes the label.

        Raises:
            QueryError: the query has all its answers or one of this annotator, or the answers that it lacks are those
                of others to whom it is handed out.
        """
        needed, present = self._settings.answers_per_query, self._store.annotators_of(number)
        if who in present or len(present) >= needed:
            by = f" by {', '.join(map(repr, present))}" if any(present) else ""
            raise QueryError(
                f"the state {shown(id)} has been answered already{by}: retract the answer first to change it"
            )
        holders = self._store.holders(number, self._owner)
        if who not in holders and len(present) + len(holders) >= needed:
            raise QueryError(f"the state {shown(id)} is handed out to {_listed(holders)}: only they can answer it now")
        return len(present) + 1 == needed

    def release(self, id: Any, number: int, who: str) -> None:
        """Give back a query.

        Raises:
            QueryError: it is handed out to others only.
        """
        holders = self._store.holders(number, self._owner)
        if holders and who not in holders:
            raise QueryError(f"the state {shown(id)} is handed out to {_listed(holders)}, not to {_listed([who])}")
        self._store.release(number, who)

    def orders(self, numbers: Iterable[int]) -> list[int]:
        """Return which label of the budget each query is, counted from 1; a skipped one would be the last."""
        skipped = np.array(sorted(self._store.skipped()), np.int64)
        last = len(self._store.queries()) + 1
        counted = np.array([last if one in skipped else one for one in numbers], np.int64)
        return [int(one) for one in counted - np.searchsorted(skipped, counted)]


def _listed(annotators: list[str]) -> str:
    return " and ".join(repr(name) if name else "somebody without a name" for name in annotators)
