"""LabellingSession: the selection problem with rewards that a person supplies (ask and tell)."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, overload

from selectenv.checks import check_flag, check_instance, check_int, check_path, check_real, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import QueryError, SessionFileRemovedError
from selectenv.evaluation.value_bounds import ValueBounds
from selectenv.labelling.answer_log import AnswerLog
from selectenv.labelling.answers import as_text, rewards_of
from selectenv.labelling.bounds_curve import BoundsCurve
from selectenv.labelling.exclusive_use import ExclusiveUse, one_at_a_time
from selectenv.labelling.label_store import LabelStore
from selectenv.labelling.lease_owners import new_owner
from selectenv.labelling.next_queries import NextQueries
from selectenv.labelling.queries import Query, actions_taken, make_query, state_id
from selectenv.labelling.query_queue import QueryQueue
from selectenv.labelling.reward_range import RewardRange, checked_ends
from selectenv.labelling.session_files import dataset_of, make_or_resume
from selectenv.labelling.session_reports import CurvePoint, GivenAnswer, HandedOut, Label, SessionStatus
from selectenv.labelling.session_settings import SessionSettings, check_annotator, check_unlabelled
from selectenv.labelling.state_policy import StatePolicy
from selectenv.labelling.strategy import find_strategy
from selectenv.labelling.told_problem import ToldProblem
from selectenv.typing import FloatArray

LEASE_SECONDS = 600.0


class LabellingSession:
    """Asks a person about states of a dataset, in the order of a strategy, and learns from what it is told.

    The same strategy, seed and answers give the same queries as an episode of the environment on the same data, if each
    query is answered before the next one is asked for. The session is one file (large datasets are stored beside it),
    which several processes and threads may use at the same time; no answer is lost when a process is killed.
    """

    def __init__(
        self,
        dataset: OfflineDataset,
        strategy: Any = "auto",
        budget: Any = 0.3,
        path: str | os.PathLike[str] | None = None,
        seed: int = 0,
        *,
        answers_per_query: int = 1,
        lease: float = LEASE_SECONDS,
        labels_per_refit: float | None = None,
        occupancy: str = "normalised",
        reward_range: tuple[Any, Any] | None = None,
        **options: Any,
    ) -> None:
        """Start a session; if ``path`` is a session with the same arguments, resume it.

        Args:
            dataset: the data, without rewards.
            strategy: an agent that never asks the evaluator, or the name of one.
            budget: number of labels (int) or share of the states (float).
            path: the file of the session; None keeps it in memory.
            seed: seed of the strategy.
            answers_per_query: number of annotators who answer each query; their answers are averaged.
            lease: seconds for which a query that was handed out is not handed out again.
            labels_per_refit: as in the environment: labels between two refits of the learner.
            occupancy: as in the environment: how `on_policy_visitation` treats tied actions.
            reward_range: the ends of the range of unknown rewards, which is stored in the file; see `bounds`.
            **options: the fields of `LearnerOptions` (``learner``, ``gamma``, ``impute``, ...), ``scale``, and the
                options of a registered learner, as in `make_problem`.

        Raises:
            DatasetError: the dataset has rewards.
            StrategyError: the strategy asks the evaluator.
            SessionError: the file is a session of another dataset or with other settings.
            SessionFileError: the file is damaged or not a session.
        """
        check_unlabelled(dataset)
        agent = find_strategy(strategy)
        settings = SessionSettings.of(
            dataset,
            agent,
            budget,
            seed=seed,
            answers_per_query=answers_per_query,
            lease=lease,
            labels_per_refit=labels_per_refit,
            occupancy=occupancy,
            options=options,
        )
        learner = settings.find_learner(dataset, settings.options["learner"], "this")
        chooser = NextQueries(ToldProblem(dataset, learner), agent, settings)
        ends = None if reward_range is None else checked_ends(dataset, reward_range)
        store = make_or_resume(None if path is None else check_path("path", path), settings, dataset)
        try:
            self._begin(store, chooser)
            if ends is not None:
                self.set_reward_range(*ends)
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: OfflineDataset | None = None,
        strategy: Any = None,
        learner: str | None = None,
    ) -> "LabellingSession":
        """Resume a session.

        Args:
            path: the file of the session.
            dataset: the data, if already loaded; by default they are read from the file.
            strategy: needed only if the session was made with an agent that is not registered.
            learner: needed only if the session was made with a learner that is not registered.

        Raises:
            SessionError: the dataset, the strategy or the learner are not those of the session.
            SessionFileError: the file is missing, damaged or not a session.
        """
        file = check_path("path", path)
        name, store = repr(os.fspath(file)), LabelStore(file)
        try:
            settings = SessionSettings.read(store.settings(), name)
            data = dataset_of(store, file, settings, dataset)
            problem = ToldProblem(data, settings.find_learner(data, learner, name))
            session = cls.__new__(cls)
            session._begin(store, NextQueries(problem, settings.find_strategy(strategy, name), settings))
        except BaseException:
            store.close()
            raise
        return session

    def _begin(self, store: LabelStore, chooser: NextQueries) -> None:
        self.settings, self.strategy, self.problem = chooser.settings, chooser.strategy, chooser.problem
        self.dataset = chooser.problem.dataset
        self._store, self._owner, self._chooser, self._use = store, new_owner(), chooser, ExclusiveUse()
        self._queue = QueryQueue(store, chooser, self._owner)
        self._log, self._curve = AnswerLog(store, self.settings.answers_per_query), BoundsCurve(self.problem)
        self._range = RewardRange(self.dataset, store)
        store.release_ended()
        self._catch_up()

    @property
    def path(self) -> Path | None:
        """The file of the session; None if it is kept in memory."""
        return self._store.path

    @property
    def budget(self) -> int:
        """Number of labels."""
        return self.settings.budget

    def close(self) -> None:
        """Close the file; queries that this session handed out and that were not answered can be asked again."""
        if self._use.end():
            try:
                with suppress(SessionFileRemovedError):
                    self._store.release_of(self._owner)
            finally:
                self._store.close()

    def __enter__(self) -> "LabellingSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Return one line: the file, the strategy and the progress."""
        where = "in memory" if self.path is None else os.fspath(self.path)
        labels = "closed" if self._use.closed else f"{len(self._log.labels)} of {self.budget} labels"
        return f"<LabellingSession {where}: {self.strategy.name}, {labels}>"

    @overload
    def ask(
        self, k: None = None, *, annotator: str = "", lease: float | None = None, keep: bool = False
    ) -> Query | None: ...

    @overload
    def ask(self, k: int, *, annotator: str = "", lease: float | None = None, keep: bool = False) -> list[Query]: ...

    def ask(
        self, k: int | None = None, *, annotator: str = "", lease: float | None = None, keep: bool = False
    ) -> Query | list[Query] | None:
        """Hand out the next query, or the next ``k`` different ones.

        A query that was handed out is not handed out again before its lease ends or the session that handed it out is
        closed. Queries that were skipped come back once all states were asked about. A strategy that uses answers does
        not know those that are still missing: ask for one query at a time for the best choice.

        Args:
            k: number of queries; by default, a single query is returned instead of a list.
            annotator: who asks; with ``answers_per_query`` above 1, each query goes to that many different annotators.
            lease: duration of the lease in seconds; defaults to the session's.
            keep: whether the lease outlives this session object, for answers that are imported later; they may have
                the names of other annotators.

        Returns:
            The query, or None if there is none left to hand out: the budget is spent, or others are working on the
            last queries. With ``k``, a list of up to k queries.
        """
        seconds = self.settings.lease if lease is None else check_real("lease", lease, "(0, inf)")
        wanted = 1 if k is None else check_int("k", k)
        owner = "" if check_flag("keep", keep) else self._owner
        queries = self._hand_out(wanted, check_annotator(annotator), seconds, owner)
        return queries if k is not None else next(iter(queries), None)

    @one_at_a_time
    def _hand_out(self, wanted: int, annotator: str, seconds: float, owner: str) -> list[Query]:
        while True:
            self._catch_up()
            if len(self._log.labels) >= self.budget:
                return []
            with self._store.writing():
                (found, enough), until = self._queue.available(annotator, wanted), time.time() + seconds
                for number, _ in found if enough else ():
                    self._store.lease(number, annotator, until, owner)
            if enough:
                return self._made(found, annotator, until)
            self._queue.choose(wanted - len(found))

    def tell(self, id: Any, answer: Any, *, annotator: str = "") -> None:
        """Answer a query.

        Args:
            id: id of the state, ``query.id``.
            answer: one number for the state; a dict of one per action, for the actions that the data took; or a list of
                one per distinct transition, in the order of ``query.transitions``.
            annotator: who answers.

        Raises:
            UnknownStateError: there is no such state.
            QueryError: the state was not asked about, has all its answers or one of this annotator, or is handed out to
                others.
            AnswerError: the answer has another form, or a number that is not finite or outside the stored range.
        """
        self._tell([(id, answer)], check_annotator(annotator))

    def tell_many(self, answers: Mapping[Any, Any], *, annotator: str = "") -> None:
        """Answer several queries, all of them or none.

        Args:
            answers: id of the state -> answer; see `tell`.
            annotator: who answers.
        """
        given = check_instance("answers", answers, Mapping)  # type: ignore[type-abstract]
        self._tell(given.items(), check_annotator(annotator))

    @one_at_a_time
    def _tell(self, answers: Iterable[tuple[Any, Any]], who: str) -> None:
        with self._store.writing():
            self._catch_up()
            labels = len(self._log.labels)
            for id, answer in answers:
                state, number = self._query(id)
                rewards = rewards_of(id, actions_taken(self.dataset, state), answer)
                self._range.check(id, state, rewards)
                last = self._queue.check_answer(id, number, who)
                labels += last
                if labels > self.budget:  # only if a skipped query was answered, in whose place another one was asked
                    raise QueryError(
                        f"the budget of {self.budget} labels is spent, so {shown(id)} is not needed any more"
                    )
                self._store.add_answer(number, who, as_text(answer), rewards.tolist(), last=last)

    @one_at_a_time
    def skip(self, id: Any, *, annotator: str = "") -> None:
        """Postpone a query: this costs no budget, and another state is asked about in its place.

        The query comes back once there is no state left that was not asked about.

        Raises:
            UnknownStateError: there is no such state.
            QueryError: the state was not asked about, or has all its answers.
        """
        who = check_annotator(annotator)
        with self._store.writing():
            _, number = self._query(id)
            if len(self._store.annotators_of(number)) >= self.settings.answers_per_query:
                raise QueryError(f"the state {shown(id)} has been answered already")
            self._store.skip(number, who)

    @one_at_a_time
    def release(self, id: Any, *, annotator: str = "") -> None:
        """Give back a query that was handed out to ``annotator``: it is the next one to be asked.

        Raises:
            UnknownStateError: there is no such state.
            QueryError: the state was not asked about, or is handed out to others only.
        """
        self._queue.release(id, self._query(id)[1], check_annotator(annotator))

    @one_at_a_time
    def hand_out(self, id: Any, *, annotator: str = "") -> Query:
        """Hand out a query that was asked before: to renew its lease, or after its answer was withdrawn.

        Raises:
            UnknownStateError: there is no such state.
            QueryError: the state was not asked about, has all its answers, or others are working on it.
        """
        who, until = check_annotator(annotator), time.time() + self.settings.lease
        with self._store.writing():
            state, number = self._query(id)
            if not self._store.is_free(number, who, self.settings.answers_per_query):
                raise QueryError(f"the state {shown(id)} has been answered already, or others are working on it")
            self._store.lease(number, who, until, self._owner)
        return self._made([(number, state)], who, until)[0]

    @one_at_a_time
    def undo(self, *, annotator: str = "") -> Any:
        """Withdraw the last answer of an annotator; return the id of its state, or None if there is no answer."""
        who = check_annotator(annotator)
        with self._store.writing():
            self._catch_up()
            mine = [answer for answer in self._log.valid() if answer.annotator == who]
            if mine:
                self._store.withdraw(mine[-1].number)
            return self._id_of(mine[-1].query) if mine else None

    @one_at_a_time
    def retract(self, id: Any, *, annotator: str | None = None) -> None:
        """Withdraw the answers about a state, or only that of one annotator; the state is asked about again.

        Raises:
            UnknownStateError: there is no such state.
            QueryError: there is no answer to withdraw.
        """
        who = None if annotator is None else check_annotator(annotator)
        with self._store.writing():
            self._catch_up()
            _, number = self._query(id)
            found = [a for a in self._log.valid() if a.query == number and who in (None, a.annotator)]
            if not found:
                raise QueryError(f"there is no answer about the state {shown(id)} to withdraw")
            for answer in found:
                self._store.withdraw(answer.number)

    @one_at_a_time
    def query(self, id: Any) -> Query:
        """Return the query about a state that was asked about.

        Raises:
            UnknownStateError: there is no such state.
            QueryError: the state was not asked about.
        """
        state, number = self._query(id)
        return self._made([(number, state)])[0]

    @one_at_a_time
    def asked(self) -> list[Any]:
        """Return the ids of the states that were asked about, answered or not, in the order of choice."""
        return [state_id(self.dataset, state) for state in self._store.queries()]

    @one_at_a_time
    def status(self) -> SessionStatus:
        """Return the progress of the session."""
        self._catch_up()
        labelled = set(self._log.labels)
        return SessionStatus(
            budget=self.budget,
            answered=len(labelled),
            asked=len(self._log.states),
            handed_out=len({lease.query for lease in self._store.leases()} - labelled),
            skipped=len(self._store.skipped() - labelled),
            annotators=dict(Counter(answer.annotator for answer in self._log.valid())),
        )

    @one_at_a_time
    def handed_out(self) -> list[HandedOut]:
        """Return the queries that somebody is working on, in the order of choice."""
        leases = self._store.leases()
        self._catch_up()  # now, so that the log has the query of every lease
        return [
            HandedOut(self._id_of(lease.query), lease.annotator, lease.until)
            for lease in leases
            if lease.query not in self._log.labels
        ]

    @one_at_a_time
    def answers(self) -> list[GivenAnswer]:
        """Return all answers that were not withdrawn, in the order in which they were told."""
        self._catch_up()
        return [
            GivenAnswer(answer.number, self._id_of(answer.query), answer.annotator, answer.given, answer.told)
            for answer in self._log.valid()
        ]

    @one_at_a_time
    def labels(self) -> list[Label]:
        """Return the states that have all their answers, in the order in which they were completed."""
        self._catch_up()
        return [
            Label.of(
                self._id_of(query), actions_taken(self.dataset, self._log.states[query - 1]), *self._log.told(query)
            )
            for query in self._log.labels
        ]

    @property
    @one_at_a_time
    def rewards(self) -> FloatArray:
        """[size] the rewards that have been told, NaN elsewhere: what the learner sees."""
        self._catch_up()
        return self.problem.rewards.copy()

    @one_at_a_time
    def policy(self) -> StatePolicy:
        """Return the policy that the learner finds with the labels so far."""
        self._catch_up()
        told = self.problem.revealable
        return StatePolicy.of(self.dataset, self.problem.learn(told), told)

    @one_at_a_time
    def bounds(self, low: Any = None, high: Any = None) -> ValueBounds:
        """Return bounds on the value of the policy so far, and an upper bound on the value of any policy.

        They hold in the model of the data: for the transitions that the data show, and the actions that they took, with
        unknown rewards anywhere between ``low`` and ``high``.

        Args:
            low: smallest possible reward, or one per state [n]; by default that of the last call, or else the one that
                the file stores (see `set_reward_range`).
            high: largest possible reward, likewise.

        Raises:
            OptionError: the range is missing, empty or not finite, or an answer lies outside of it.
        """
        self._catch_up()
        ends = self._range.resolved(low, high)
        found = self._curve.bounds(self.problem.revealable, *ends)
        if low is not None:
            self._range.use(ends)
        return found

    @one_at_a_time
    def curve(self, low: Any = None, high: Any = None) -> list[CurvePoint]:
        """Return the bounds before the first label and after every label, in the order of the answers; see `bounds`."""
        self._catch_up()
        labels = [(self._log.states[query - 1], answers) for query, answers in self._log.labels.items()]
        return self._curve.points(labels, *self._range.resolved(low, high))

    def should_stop(self, regret: float, low: Any = None, high: Any = None) -> bool:
        """Return whether the policy so far earns at most ``regret`` less than the best one; see `bounds`."""
        return self.bounds(low, high).regret <= check_real("regret", regret, "[0, inf)")

    @property
    @one_at_a_time
    def reward_range(self) -> tuple[list[float], list[float]] | None:
        """The range that `bounds` uses by default: the lower and the upper ends, one or n of each; None without one."""
        ends = self._range.ends
        return None if ends is None else (ends[0].tolist(), ends[1].tolist())

    @one_at_a_time
    def set_reward_range(self, low: Any, high: Any) -> None:
        """Store the range of unknown rewards in the file, for all who use it; see `bounds` for the arguments.

        Raises:
            OptionError: the range is empty or not finite, or an answer lies outside of it.
        """
        self.bounds(low, high)
        self._range.store(self._range.resolved(low, high))

    def _query(self, id: Any) -> tuple[int, int]:
        """Return the number of a state and of the query about it."""
        state = int(self.dataset.numbers([id])[0])
        number = self._store.query_of(state)
        if number is None:
            raise QueryError(f"the state {shown(id)} has not been asked about: pass an id that `ask` returned")
        return state, number

    def _made(self, found: list[tuple[int, int]], annotator: str = "", until: float = 0.0) -> list[Query]:
        """Return queries, given by their numbers and those of their states."""
        orders = self._queue.orders(number for number, _ in found)
        return [
            make_query(self.dataset, state, order, annotator, until)
            for (_, state), order in zip(found, orders, strict=True)
        ]

    def _id_of(self, query: int) -> Any:
        return state_id(self.dataset, self._log.states[query - 1])

    def _catch_up(self) -> None:
        """Apply the answers and withdrawals since the last call, including those of other processes."""
        for state, rewards in self._log.catch_up():
            self._chooser.tell(state, rewards)
