"""RewardSelectionVectorEnv: many episodes whose steps are one compiled pass."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from selectenv.checks import as_array, check_instance, check_int, check_name, is_int, shown
from selectenv.env import RewardSelectionEnv, drawing
from selectenv.episode_batch import EpisodeBatch
from selectenv.episode_terms import RESET_OPTIONS, EpisodeTerms, ProblemSource
from selectenv.errors import ActionError, EpisodeError, OptionError, OptionTypeError
from selectenv.evaluation.evaluator import Calls
from selectenv.io.resources import require_memory
from selectenv.kernels.tabular.episode_steps import OVER, PAID, WASTED, StepResult
from selectenv.kernels.tabular.packed_tables import BUDGET, DISCLOSED, SPENT, UNCOUNTED, Episodes
from selectenv.observation import Observation, observation_space
from selectenv.options import EnvironmentOptions, own_options
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.vector_infos import Info, initially_revealed, put, put_begin, put_final, put_step, ragged
from selectenv.vector_members import VectorMember
from selectenv.view import SelectionView

BYTES_PER_ENVIRONMENT, BYTES_PER_STATE = 1_000, 100
"""Approximate memory of an episode and of each of its states, spaces and one observation included."""
StepOutput = tuple[Observation, FloatArray, BoolArray, BoolArray, Info]


class RewardSelectionVectorEnv(gym.vector.VectorEnv[Observation, IntArray, NDArray[Any]]):
    """Many episodes of reward selection side by side; each step labels one state in every one of them.

    Observations, rewards, terminations, masks, infos and costs are those of as many `RewardSelectionEnv` in Gymnasium's
    `SyncVectorEnv` with the same seeds, bit for bit. Where the learner is an exact table and the world has at most 128
    states, a step is one compiled pass over all episodes, on several threads; otherwise policies are learned one after
    the other. Every performance that the compiled pass pays is computed: ``calls.computed`` does not count fewer of
    them because the same labels occurred before.

    Python loops over environments only where seeds or Gymnasium's formats demand it: over episodes that begin, if they
    draw a budget, initial labels or a problem from the random generator of their environment, and, with
    `AutoresetMode.SAME_STEP`, over episodes that end, because ``info["final_obs"]`` holds one dict for each of them.

    Args:
        problem: a problem that all episodes share, or a function of a random generator that makes the problem of every
            episode at its reset.
        num_envs: number of episodes.
        budget: see `RewardSelectionEnv`.
        autoreset_mode: when an episode that has ended is reset: in the next step, in the same step, or, with
            `AutoresetMode.DISABLED`, by the caller with ``reset(options={"reset_mask": mask})``.
        **options: the other fields of `EnvironmentOptions`.
    """

    def __init__(
        self,
        problem: SelectionProblem | ProblemSource,
        num_envs: int = 1,
        budget: Any = 0.3,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        """See the class."""
        if not isinstance(autoreset_mode, AutoresetMode):
            autoreset_mode = AutoresetMode(
                check_name("autoreset_mode", autoreset_mode, [m.value for m in AutoresetMode])
            )
        self._terms = terms = EpisodeTerms(problem, budget, options)
        self.num_envs = count = check_int("num_envs", num_envs)
        require_memory(count * (BYTES_PER_ENVIRONMENT + BYTES_PER_STATE * terms.n_states), f"{count:,} environments")
        self.options: EnvironmentOptions = terms.options
        self.source, self.refit_every = terms.source, terms.refit_every
        self.render_mode = self.options.render_mode
        self.autoreset_mode = autoreset_mode
        self.metadata = {**RewardSelectionEnv.metadata, "autoreset_mode": autoreset_mode}
        self._batch = EpisodeBatch(terms, terms.first, count)
        self.episodes: Episodes = self._batch.episodes
        """The state of all episodes."""
        self.single_observation_space = observation_space(terms.n_states, self._batch.names)
        self.single_action_space = gym.spaces.Discrete(terms.n_states)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._calls = tuple(Calls() for _ in range(count))
        self._handed_out: dict[int, SelectionProblem] = {}
        self._views: dict[int, SelectionView] = {}
        self._members: tuple[VectorMember, ...] = ()
        self._generators: list[np.random.Generator | None] = [None] * count
        self._seeds: list[int | None] = [None] * count
        self._undrawn = np.zeros(count, np.int64)
        """[environments] permutations that a single environment would have drawn without using them."""
        self._begun, self._ended, self._n_ended = False, np.zeros(count, bool), 0
        self._every = np.ones(count, bool)
        self._initial, self._initial_counts = np.zeros((count, 0), np.int64), np.zeros(count, np.int64)
        self._alike = True
        """Whether all running episodes have the same number of initial labels."""
        self._ids = np.repeat(terms.first.states[None], 1 if terms.source is None else count, axis=0)
        self.episodes.counts[:, [BUDGET, SPENT]] = terms.usual_budget

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode in every environment, or in those of ``options["reset_mask"]`` [environments].

        Args:
            seed: an int, so that environment i gets ``seed + i``, or a list with one seed (or None) per environment.
            options: those of `RewardSelectionEnv.reset`, for all environments, and "reset_mask".
        """
        seeds = self._seeds_of(seed)
        chosen = {} if options is None else dict(check_instance("options", options, dict))
        mask = self._reset_mask(chosen)
        own_options(chosen, (), (*RESET_OPTIONS, "reset_mask"))
        which = np.flatnonzero(mask)
        for number in which.tolist():
            if seeds is not None and seeds[number] is not None:
                self._generators[number], self._seeds[number], self._undrawn[number] = None, seeds[number], 0
        self._begin(which, chosen)
        self._ended = self._ended & ~mask
        self._n_ended, self._begun = int(self._ended.sum()), True
        mask = self._every if len(which) == self.num_envs else mask
        info: Info = {}
        self._put_begin(info, mask)
        self._put_state(info, mask)
        return self._batch.observation(), info

    def step(self, actions: NDArray[Any]) -> StepOutput:
        """Label state ``actions[i]`` in environment i; an environment that is reset in this step ignores its action."""
        begun = self._to_begin()
        stepped = self._every if begun is None else ~begun
        numbers = self._checked(actions, stepped)
        if begun is not None:
            self._begin(np.flatnonzero(begun), {})
        info: Info = {}
        nobody = np.zeros(self.num_envs, bool)
        if begun is not None and self._n_ended == self.num_envs:
            self._ended, self._n_ended = nobody, 0
            self._put_state(info, self._every)
            self._put_begin(info, self._every)
            return self._batch.observation(), np.zeros(self.num_envs), nobody.copy(), nobody.copy(), info
        result = self._batch.step(stepped, numbers, self.problem_of)
        over = result.marks[OVER].copy()
        self._ended, self._n_ended = over, int(np.count_nonzero(over))
        if self._handed_out:
            self._follow(numbers, stepped, result)
        states, ends = self._states(numbers), self._n_ended > 0
        if ends and self.autoreset_mode == AutoresetMode.SAME_STEP:
            final: Info = {}
            self._put_state(final, over)
            put_step(final, result, states.copy(), over, every=False, ends=True)
            put_final(info, self._batch.rows, final, over)
            self._begin(np.flatnonzero(over), {})
            begun, stepped = over, stepped & ~over
            self._ended, self._n_ended = nobody.copy(), 0
        self._put_state(info, self._every)
        if stepped is self._every or stepped.any():
            put_step(info, result, states, stepped, every=stepped is self._every, ends=ends)
        if begun is not None:
            self._put_begin(info, begun)
        return self._batch.observation(), result.numbers[PAID], result.marks[OVER], nobody, info

    def action_masks(self) -> BoolArray:
        """Return the masks [environments, n] of states that can still be labelled."""
        return self.episodes.open.astype(np.bool_)

    def render(self) -> tuple[Any, ...] | None:
        """Return a drawing of the labels of each environment."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode: give one to make_vec, e.g. render_mode='ansi'")
            return None
        return tuple(self.render_one(number) for number in range(self.num_envs))

    def render_one(self, number: int) -> Any:
        """Return a drawing of the labels of one environment."""
        counts, labelled_at = self.episodes.counts, self.episodes.labelled_at
        return drawing(self.problem_of(number), labelled_at[number], int(counts[number, BUDGET]), self.render_mode)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method, or get an attribute, of each environment; see `VectorMember`."""
        found = [getattr(member, check_instance("name", name, str)) for member in self.members]
        return tuple(one(*args, **kwargs) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: to the entries of a list or tuple, or all to the same value."""
        check_instance("name", name, str)
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise OptionError(f"there are {self.num_envs} environments and {len(values)} values of {shown(name)}")
        for member, value in zip(self.members, values, strict=True):
            setattr(member, name, value)

    @property
    def members(self) -> tuple[VectorMember, ...]:
        """The environments, one by one."""
        if not self._members:
            self._members = tuple(VectorMember(self, number) for number in range(self.num_envs))
        return self._members

    @property
    def calls(self) -> tuple[Calls, ...]:
        """The evaluator calls of each environment; updated whenever this property is read."""
        counts = self.episodes.counts
        for number in np.flatnonzero(counts[:, [DISCLOSED, UNCOUNTED]].any(axis=1)).tolist():
            calls, (disclosed, uncounted) = self._calls[number], counts[number, [DISCLOSED, UNCOUNTED]].tolist()
            calls.disclosed += disclosed
            calls.computed += disclosed
            calls.uncounted += uncounted
        counts[:, [DISCLOSED, UNCOUNTED]] = 0
        return self._calls

    @property  # type: ignore[misc]  # read-only, and a tuple, as in SyncVectorEnv
    def np_random(self) -> Any:
        """The random generator of each environment."""
        return tuple(self._generator(number) for number in range(self.num_envs))

    @property
    def np_random_seed(self) -> Any:
        """The seed of each environment."""
        return tuple(self._seeds[number] for number, _ in enumerate(self.np_random))

    def problem_of(self, number: int) -> SelectionProblem:
        """Return the problem of an environment's episode, with the calls and the lock of this environment."""
        if number not in self._handed_out:
            calls = self.calls[number]
            problem = self._batch.problems[number if self.source is not None else 0]
            self._handed_out[number] = problem.with_calls(calls)
            self._handed_out[number].evaluator.locked = self._terms.test and not self._ended[number]
        return self._handed_out[number]

    def view_of(self, number: int) -> SelectionView:
        """Return what a strategy may know in the running episode of an environment.

        Raises:
            EpisodeError: no episode has begun.
        """
        if not self._begun:
            raise EpisodeError("no episode has begun: call reset() first")
        if number not in self._views:
            self._views[number] = self._terms.view(
                self.problem_of(number),
                int(self.episodes.counts[number, BUDGET]),
                self._initial[number, : self._initial_counts[number]],
                np.flatnonzero(self.episodes.labelled_at[number]),
            )
        return self._views[number]

    def _to_begin(self) -> BoolArray | None:
        """Return which environments are reset in this step, if any.

        Raises:
            EpisodeError: no episode has begun, or, without autoreset, one has ended.
        """
        if not self._begun:
            raise EpisodeError("no episode is running: call reset() before the first step")
        if self._n_ended == 0:
            return None
        if self.autoreset_mode == AutoresetMode.DISABLED:
            raise EpisodeError(
                f"{self._n_ended} episodes have ended: call reset(options={{'reset_mask': terminations}}) first"
            )
        return self._ended

    def _begin(self, which: IntArray, chosen: dict[str, Any]) -> None:
        """Begin the episodes of the environments ``which`` [k]."""
        budgets, initial, counts = self._draw(which, chosen)
        self._batch.begin(which, budgets, initial, counts)
        self._remember(which, initial, counts)
        for number in which.tolist() if self._handed_out else ():
            self._views.pop(number, None)
            if number in self._handed_out:
                self._handed_out[number].evaluator.locked = self._terms.test

    def _remember(self, which: IntArray, initial: IntArray, counts: IntArray) -> None:
        """Store the initial labels of new episodes, padded to the largest number of them."""
        if len(which) == self.num_envs:
            self._initial, self._initial_counts = initial, counts
        else:
            more = initial.shape[1] - self._initial.shape[1]
            self._initial = np.pad(self._initial, ((0, 0), (0, max(0, more))))
            self._initial[which, : initial.shape[1]] = initial
            self._initial_counts[which] = counts
        most = int(self._initial_counts.max())
        self._alike = bool((self._initial_counts == most).all())
        self._initial = self._initial[:, :most]

    def _draw(self, which: IntArray, chosen: dict[str, Any]) -> tuple[IntArray, IntArray, IntArray]:
        """Return budgets [k], initial labels [k, most] and their numbers [k] of new episodes; draw new problems."""
        terms, k = self._terms, len(which)
        given, budget = chosen.get("initial"), chosen.get("budget", self.options.budget)
        if terms.source is None and not isinstance(budget, tuple):
            labels = terms.labels(terms.first, budget, None) if "budget" in chosen else terms.usual_budget
            states = np.empty(0, np.int64) if given is None else terms.initial_states(terms.first, given, labels)
            if given is not None or terms.initial_count(terms.first, labels) == 0:
                self._undrawn[which] += given is None
                return np.full(k, labels), np.repeat(states[None], k, axis=0), np.full(k, len(states))
        budgets, drawn = np.empty(k, np.int64), []
        for i, number in enumerate(which.tolist()):
            rng, problem = self._generator(number), terms.first
            if terms.source is not None:
                problem = terms.source(rng)
                terms.check_problem(problem)
                self._adopt(number, problem)
            budgets[i], states = terms.begin(problem, chosen, rng)
            drawn.append(states)
        counts = np.array([len(states) for states in drawn])
        initial = np.zeros((k, counts.max()), np.int64)
        for row, states in zip(initial, drawn, strict=True):
            row[: len(states)] = states
        return budgets, initial, counts

    def _adopt(self, number: int, problem: SelectionProblem) -> None:
        """Give an environment a problem of its own."""
        self._handed_out.pop(number, None)
        self._batch.adopt(number, problem)
        self._batch.problems[number] = self.problem_of(number)
        if self._ids.dtype != problem.states.dtype:
            self._ids = self._ids.astype(np.result_type(self._ids, problem.states))
        self._ids[number] = problem.states

    def _follow(self, numbers: IntArray, stepped: BoolArray, result: StepResult) -> None:
        """Update the views and the locks that were handed out."""
        for number, view in self._views.items():
            if stepped[number] and not result.marks[WASTED, number]:
                view.add(*self.problem_of(number).dataset.revealed_by(numbers[number : number + 1]))
        if self._terms.test:
            for number, problem in self._handed_out.items():
                problem.evaluator.locked = not self._ended[number]

    def _put_state(self, info: Info, mask: BoolArray) -> None:
        """Add what both reset and step return."""
        every = mask is self._every
        put(info, "action_mask", self.episodes.open.copy(), mask, every=every)
        initial = self._initial.copy() if self._alike else ragged(self._initial, self._initial_counts)
        put(info, "initial", initial, mask, every=every)

    def _put_begin(self, info: Info, mask: BoolArray) -> None:
        """Add what reset returns."""
        problems = self._batch.problems
        revealed: Info = {}
        if self._initial.size:
            summaries = [one.dataset.reward_summary(one.dataset.all_rewards) for one in problems]
            revealed = initially_revealed((self.episodes.labelled_at > 0) & mask[:, None], summaries)
        states = np.repeat(self._ids, self.num_envs, axis=0) if self.source is None else self._ids.copy()
        budgets = self.episodes.counts[:, BUDGET].copy()
        put_begin(info, states, budgets, revealed, mask, every=mask is self._every)

    def _states(self, numbers: IntArray) -> NDArray[Any]:
        """Return the ids [environments] of the states that the environments label."""
        found: NDArray[Any]
        found = self._ids[0][numbers] if self.source is None else self._ids[np.arange(self.num_envs), numbers]
        if found.dtype.kind in "iu":
            return found
        words = np.empty(self.num_envs, object)  # Gymnasium keeps what is not a number as it is
        words[:] = list(found)
        return words

    def _checked(self, actions: Any, stepped: BoolArray) -> IntArray:
        """Return the actions as state numbers; 0 where they are ignored."""
        numbers = as_array("actions", actions, ActionError)
        n, count = self._terms.n_states, self.num_envs
        if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
            raise ActionError(f"actions must be {count} ints, one state number per environment, not {shown(actions)}")
        if stepped is not self._every:
            numbers = np.where(stepped, numbers, 0)
        numbers = np.ascontiguousarray(numbers, np.int64)
        if numbers.view(np.uint64).max() >= n:  # negative numbers become large ones
            where = int(np.flatnonzero((numbers < 0) | (numbers >= n))[0])
            raise ActionError(
                f"there is no state number {numbers[where]}, the action of environment {where}: they lie in 0..{n - 1}"
            )
        return numbers

    def _reset_mask(self, chosen: dict[str, Any]) -> BoolArray:
        """Take the reset mask out of the options of reset."""
        mask = chosen.pop("reset_mask", self._every)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise OptionTypeError(f"reset_mask must be an array of booleans, not {shown(mask)}")
        if mask.shape != (self.num_envs,):
            raise OptionError(
                f"reset_mask must have one entry for each of {self.num_envs} environments, not {shown(mask)}"
            )
        if not mask.any():
            raise OptionError("reset_mask must mark at least one environment")
        if not self._begun and not mask.all():
            raise EpisodeError("the first reset must reset all environments")
        return mask

    def _seeds_of(self, seed: Any) -> list[int | None] | None:
        """Return the seed of each environment."""
        if seed is None:
            return None
        seed = seed.tolist() if isinstance(seed, np.ndarray) else seed
        seeds = [int(seed) + i for i in range(self.num_envs)] if is_int(seed) else seed
        if not isinstance(seeds, list | tuple) or len(seeds) != self.num_envs:
            raise OptionError(f"seed must be an int, or a list of {self.num_envs} seeds, not {shown(seed)}")
        return [None if one is None else check_int("seed", one, 0) for one in seeds]

    def _generator(self, number: int) -> np.random.Generator:
        """Return the random generator of an environment, in the state in which a single environment would have it."""
        rng = self._generators[number]
        if rng is None:
            rng, self._seeds[number] = seeding.np_random(self._seeds[number])
            self._generators[number] = rng
        labelable = np.flatnonzero(self._terms.first.dataset.labelable)
        for _ in range(int(self._undrawn[number])):
            rng.permutation(labelable)
        self._undrawn[number] = 0
        return rng
