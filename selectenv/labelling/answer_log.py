"""The answers of a session as one process knows them."""

from collections import defaultdict

import numpy as np

from selectenv.labelling.answers import averaged
from selectenv.labelling.label_store import LabelStore, StoredAnswer
from selectenv.typing import FloatArray


class AnswerLog:
    """Follows the answers in the file, which other processes add to, without reading any of them twice."""

    def __init__(self, store: LabelStore, answers_per_query: int) -> None:
        """Start without answers; `catch_up` reads them.

        Args:
            store: the file.
            answers_per_query: number of answers that make a label.
        """
        self._store, self._needed = store, answers_per_query
        self._given: dict[int, StoredAnswer] = {}
        self._withdrawn: set[int] = set()
        self.states: list[int] = []
        """Numbers of the states that were asked about: query i + 1 is about entry i."""
        self.labels: dict[int, tuple[int, ...]] = {}
        """Queries with all their answers, in the order in which they were completed, and the numbers of the answers."""

    def catch_up(self) -> list[tuple[int, FloatArray | None]]:
        """Read what is new.

        Returns:
            State numbers and their rewards, one per distinct transition and averaged over answers, of labels that are
            new or have changed; None for the rewards of states that are no longer labelled.
        """
        version = self._store.version()
        known = version == (len(self._given), len(self._withdrawn))
        if not known:
            self._given |= {answer.number: answer for answer in self._store.answers(len(self._given))}
            self._withdrawn = self._store.withdrawn()
        self.states = self._store.queries()
        if known:
            return []
        answers: dict[int, tuple[int, ...]] = defaultdict(tuple)
        for answer in self.valid():
            answers[answer.query] += (answer.number,)
        complete = {query: numbers for query, numbers in answers.items() if len(numbers) >= self._needed}
        before, self.labels = self.labels, dict(sorted(complete.items(), key=lambda item: item[1][-1]))
        return [
            (self.states[query - 1], self.told(query)[0] if query in self.labels else None)
            for query in {**before, **self.labels}
            if before.get(query) != self.labels.get(query)
        ]

    def valid(self) -> list[StoredAnswer]:
        """Return the answers that were not withdrawn, in the order in which they were told."""
        return [answer for number, answer in self._given.items() if number not in self._withdrawn]

    def told(self, query: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the spread of the answers to a query, per distinct transition of its state."""
        return averaged([np.array(self._given[number].rewards) for number in self.labels[query]])
