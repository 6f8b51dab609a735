"""The settings of a session: everything, besides the dataset and the answers, that its queries depend on."""

import json
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from selectenv.budget import cap_to_labelable, number_of_labels
from selectenv.checks import check_instance, check_int, check_name, check_real, did_you_mean, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.naming import unit
from selectenv.errors import (
    DatasetError,
    OptionError,
    OptionTypeError,
    SessionError,
    SessionFileError,
    UnknownNameError,
)
from selectenv.labelling.strategy import Strategy, described, find_strategy
from selectenv.learners.base import Learner
from selectenv.learners.registry import LEARNERS, make_learner
from selectenv.options import OCCUPANCIES, LearnerOptions, TrainingOptions, names
from selectenv.references import is_reference

DEFAULT_LEARNER = "uds"
ARGUMENTS = ("answers_per_query", "lease", "labels_per_refit", "occupancy", "reward_range")
"""Keyword arguments of a session that are not options of its learner."""
ELSEWHERE = {
    "annotator": "pass it to ask(annotator=...) and tell(..., annotator=...); ",
    "groups": "group the states first: LabellingSession(selectenv.group_states(dataset, groups), ...); ",
}
"""What to do with options that belong elsewhere."""
SAVED = (".zip", ".json")
"""File name extensions of saved strategies."""
LONGEST_NAME = 200
"""Largest number of characters in the name of an annotator."""


@dataclass(frozen=True)
class SessionSettings:
    """Settings as the file stores them."""

    fingerprint: str
    """Of the dataset."""
    data: str
    """The dataset in words, for error messages."""
    strategy: dict[str, Any]
    """Name and options."""
    budget: int
    seed: int
    answers_per_query: int
    lease: float
    labels_per_refit: int
    occupancy: str
    options: dict[str, Any]
    """Options of the learner, its name included."""

    @classmethod
    def of(
        cls,
        dataset: OfflineDataset,
        strategy: Strategy,
        budget: Any,
        *,
        seed: int,
        answers_per_query: int,
        lease: float,
        labels_per_refit: Any,
        occupancy: str,
        options: dict[str, Any],
    ) -> "SessionSettings":
        """Return the settings after checking them; a fractional budget and omitted options are resolved."""
        _check_options(options)
        n = dataset.n_states
        labels = cap_to_labelable(number_of_labels(budget, n), int(dataset.labelable.sum()))
        if options.get("learner") is None:
            options = {**options, "learner": DEFAULT_LEARNER}
        if options.get("warm_start"):
            raise OptionError(
                "a session learns from scratch after each answer, so that it can be resumed: leave out warm_start"
            )
        if labels_per_refit is None:
            refits = LEARNERS.find(options["learner"]).fast_refits
            slow = refits is not None and options.get("scale") != "paper"
            labels_per_refit = -(-labels // refits) if slow and refits else 1
        try:
            options = json.loads(json.dumps(options))
        except (TypeError, ValueError):
            raise OptionError(
                "the options of a session are stored in its file: they must be numbers, text, True, False or None"
            ) from None
        return cls(
            fingerprint=dataset.fingerprint,
            data=_in_words(dataset),
            strategy=described(strategy),
            budget=labels,
            seed=check_int("seed", seed, 0),
            answers_per_query=check_int("answers_per_query", answers_per_query),
            lease=check_real("lease", lease, "(0, inf)"),
            labels_per_refit=min(
                number_of_labels(labels_per_refit, n, "labels_per_refit", OptionError, math.inf), labels
            ),
            occupancy=check_name("occupancy", occupancy, OCCUPANCIES),
            options=options,
        )

    @classmethod
    def read(cls, stored: dict[str, Any], name: str) -> "SessionSettings":
        """Return the settings of a file.

        Raises:
            SessionFileError: they are not those of a session.
        """
        try:
            return cls(**stored)
        except TypeError:
            raise SessionFileError(f"{name} is damaged: its settings are not those of a session") from None

    def stored(self) -> dict[str, Any]:
        """Return the settings as the file stores them."""
        return asdict(self)

    def check_same(self, given: "SessionSettings", dataset: OfflineDataset, name: str) -> None:
        """Check that these settings, of the file ``name``, are the given ones.

        Raises:
            SessionError: they are not; the message says what differs.
        """
        self.check_dataset(dataset, name)
        mine, theirs = self._flat(), given._flat()
        for setting in {**mine, **theirs}:
            if mine.get(setting) != theirs.get(setting):
                raise SessionError(
                    f"{name} is a session with {setting}={shown(mine.get(setting))}, not {shown(theirs.get(setting))}: "
                    "resume it with the settings that it was made with, or choose another file for a new session"
                )

    def _flat(self) -> dict[str, Any]:
        """Return every setting by name, options of the strategy and the learner included."""
        found = self.stored() | {"strategy": self.strategy["name"]}
        found |= {f"strategy option {name}": value for name, value in (self.strategy["options"] or {}).items()}
        return {**found, "options": None, **self.options}

    def check_dataset(self, dataset: OfflineDataset, name: str) -> None:
        """Check that a dataset is that of the session in the file ``name``.

        Raises:
            SessionError: it is another one.
        """
        if dataset.fingerprint != self.fingerprint:
            raise SessionError(
                f"{name} is a session of another dataset: {self.data} (fingerprint {self.fingerprint[:8]}), not "
                f"{_in_words(dataset)} (fingerprint {dataset.fingerprint[:8]})"
            )

    def find_strategy(self, given: Any, name: str) -> Strategy:
        """Return the strategy of the session in the file ``name``.

        Args:
            given: the strategy as the caller gives it; None to make it from the settings.
            name: the file, for error messages.

        Raises:
            SessionError: the settings do not suffice, or the caller gives another one.
        """
        wanted, options = self.strategy["name"], self.strategy["options"]
        if given is not None:
            found = find_strategy(given)
            if described(found) != self.strategy:
                raise SessionError(f"{name} is a session of the strategy {wanted!r} with the options {options}")
            return found
        if options is not None and not is_reference(wanted) and not wanted.endswith(SAVED):
            with suppress(UnknownNameError):
                return find_strategy(wanted, **options)
        raise SessionError(
            f"{name} is a session of the strategy {wanted!r}, which no installed package registers: pass it again "
            "(strategy=, or --strategy on the command line), since a file must not decide which code is run"
        )

    def find_learner(self, dataset: OfflineDataset, given: str | None, name: str) -> Learner:
        """Return the learner of the session in the file ``name``.

        Args:
            dataset: the data.
            given: the name of the learner as the caller gives it, if at all.
            name: the file, for error messages.

        Raises:
            SessionError: the learner is not registered and the caller does not name it: a file must not decide which
                modules are imported.
            OptionError: the options are not those of the learner.
        """
        learner = self.options["learner"]
        if given is not None:
            check_instance("learner", given, str)
        if (given is None and is_reference(learner)) or given not in (None, learner):
            raise SessionError(
                f"{name} is a session of the learner {learner!r}: pass this again (learner=, or --learner on the "
                "command line), since a file must not decide which code is run"
            )
        row = LEARNERS.find(learner)
        row.check(dataset)
        scale = self.options.get("scale")
        if scale is not None and not row.uses_scale:
            raise OptionError(f"the learner {learner!r} does not use scale: leave this option out")
        rest = {option: value for option, value in self.options.items() if option not in ("learner", "scale")}
        return make_learner(learner, scale=scale, **rest)


def _check_options(options: dict[str, Any]) -> None:
    """Check the names of the options that go to the learner.

    Raises:
        UnknownNameError: there is no such option; the message also lists those of the session itself.
    """
    learner = options.get("learner")
    own = () if learner is None else LEARNERS.find(learner).parameters
    known = {*names(LearnerOptions, TrainingOptions), *own, "scale", *ARGUMENTS}
    for name in options:
        if name not in known:
            raise UnknownNameError(
                f"unknown option {name!r} of a session; {ELSEWHERE.get(name, '')}{did_you_mean(name, sorted(known))}"
            )


def check_unlabelled(dataset: Any) -> OfflineDataset:
    """Return the dataset of a new session.

    Raises:
        OptionTypeError: it is something else; the message says how to make one.
        DatasetError: it has rewards.
    """
    if not isinstance(dataset, OfflineDataset):
        raise OptionTypeError(
            f"dataset must be an OfflineDataset, not of type {type(dataset).__name__}: read a log with "
            "selectenv.from_csv, a data frame with selectenv.from_dataframe, and a saved dataset with "
            "selectenv.datasets.load"
        )
    if dataset.has_rewards:
        raise DatasetError(
            "the dataset has rewards, so a person is not needed: use it in an environment, or pass "
            "dataset.without_rewards"
        )
    return dataset


def _in_words(dataset: OfflineDataset) -> str:
    return f"{len(dataset):,} transitions, {dataset.n_states:,} {unit(dataset)}s, {dataset.n_actions} actions"


def check_annotator(name: Any) -> str:
    """Return the name of an annotator.

    Raises:
        OptionError: it is not printable text, or too long.
    """
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise OptionError(f"annotator must be printable text of at most {LONGEST_NAME} characters, not {shown(name)}")
    return str(name)
