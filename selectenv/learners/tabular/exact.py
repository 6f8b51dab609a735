"""Exact learning on the empirical model: the fixed point that Q-learning approaches with more and more passes.

UDS (Yu et al. 2022, https://arxiv.org/abs/2202.01741) imputes unknown rewards and learns as usual:

    Q(s, a) = r_L(s, a) + gamma sum_s' P(s' | s, a) max_a' Q(s', a'),   r_L = r if s in L else impute.

Adapted Q-learning defines Q only on the labelled states, values unlabelled next states at 0, and follows the data's own
action frequencies elsewhere. Under both rules the maximum may be replaced by an expectile of the actions that the data
took, as in implicit Q-learning; see `kernels.tabular.expectile`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.kernels.tabular.expectile import learn_expectile
from selectenv.kernels.tabular.model import Model
from selectenv.kernels.tabular.single import Solution, in_lanes, learn_one, solve_one
from selectenv.kernels.tabular.solve import LANES, learn_blocks
from selectenv.learners.base import FitResult, TableFit
from selectenv.learners.imputed_reward import imputed_reward, imputed_rewards, oracle_of
from selectenv.policies import TablePolicies
from selectenv.typing import BoolArray, FloatArray

Rule = tuple[float, float, bool, FloatArray]
"""Discount, imputed reward, whether only labelled states are learned, and the action frequencies of the data."""
CHUNK_FLOATS = 1 << 16
"""Size of the policies of one chunk: half a MiB, so that they are still in the cache when they are evaluated."""


@dataclass(frozen=True, eq=False)
class ExactLearner:
    """Solves the empirical model of a dataset for any label set."""

    rule: str = "uds"
    """"uds" or "adapted"."""
    gamma: float = 0.99
    impute: float | str = 0.0
    """UDS: the reward of unlabelled transitions, "min" or "dataset-min"; see `imputed_rewards`."""
    exclude_unseen: bool = False
    """Whether actions that the data never took are left out instead of being valued at 0."""
    expectile: float | None = None
    """The expectile of the data's actions that is backed up; None for the maximum."""
    is_table: ClassVar[bool] = True

    def chunk_size(self, dataset: OfflineDataset) -> int:
        """Return how many policies take about `CHUNK_FLOATS`: whole blocks of lanes where there is room for one."""
        sets = CHUNK_FLOATS // (dataset.n_states * dataset.n_actions)
        return LANES * (sets // LANES) if sets >= LANES else max(2, sets)

    @property
    def oracle(self) -> str:
        """What the learner knows beyond the rewards that labels reveal, if anything."""
        return oracle_of(self.impute)

    @property
    def only_rewards_matter(self) -> bool:
        """Whether labelling a state all of whose rewards are 0 changes nothing."""
        return self.rule == "uds" and self.impute == 0

    def fit(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray | None = None) -> FitResult:
        """Learn from one label set; see `Learner.fit`."""
        known = dataset.states_with_rewards(rewards) if labels is None else labels
        model, rule = self._model_and_rule(dataset, rewards, imputed_reward(self.impute, dataset, rewards, known))
        values, q, policy = self._learn_one(model, known, rule)
        return TableFit(policy, q, values, dataset)

    def warm_starts(self, dataset: OfflineDataset) -> bool:
        """Return whether `fit_many` is faster if it starts from the solution for a similar label set."""
        return self.expectile is None and not in_lanes(dataset.empirical_model(exclude_unseen=self.exclude_unseen))

    def warm_start(self, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray) -> Solution:
        """Return the solution for a label set [n], from which `fit_many` may start if `warm_starts` says so."""
        impute = imputed_reward(self.impute, dataset, rewards, labels)
        model, (gamma, _, labelled_only, _) = self._model_and_rule(dataset, rewards, impute)
        return solve_one(model, labels, gamma, impute, labelled_only)

    def fit_many(
        self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray, start: Solution | None = None
    ) -> TablePolicies:
        """Learn one policy per label set [sets, n], many at a time.

        With ``start``, see `warm_start`, results are the same up to rounding errors.
        """
        imputed = imputed_rewards(self.impute, dataset, rewards, masks)
        distinct = np.unique(imputed)
        if len(distinct) == 1:
            return self._fit_many(dataset, rewards, masks, float(distinct[0]), start)
        tables = np.empty((len(masks), dataset.n_states, dataset.n_actions, 1))
        for impute in distinct:
            where = np.flatnonzero(imputed == impute)
            found = self._fit_many(dataset, rewards, masks[where], float(impute), start).blocks
            tables[where, ..., 0] = np.moveaxis(found, 3, 1).reshape(-1, *tables.shape[1:3])[: len(where)]
        return TablePolicies(tables, len(masks))

    def _fit_many(
        self, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray, impute: float, start: Solution | None
    ) -> TablePolicies:
        """Learn one policy per label set [sets, n], all with the same imputed reward."""
        model, rule = self._model_and_rule(dataset, rewards, impute)
        if self.expectile is not None or not in_lanes(model):
            policies = np.stack([self._learn_one(model, mask, rule, start)[2] for mask in masks])[..., None]
            return TablePolicies(policies, len(masks))
        n, actions = dataset.n_states, dataset.n_actions
        blocks = -(-len(masks) // LANES)
        lanes = -(-len(masks) // blocks)
        policies = np.empty((blocks, n, actions, lanes))
        learn_blocks(model, masks, *rule, np.empty((1, n, lanes)), np.empty((1, n, actions, lanes)), policies)
        return TablePolicies(policies, len(masks))

    def model(self, dataset: OfflineDataset, rewards: FloatArray, impute: float) -> Model:
        """Return the empirical model that is solved, with ``impute`` as the reward of actions without a known one."""
        return dataset.empirical_model(rewards, exclude_unseen=self.exclude_unseen, unknown=impute)

    def _learn_one(
        self, model: Model, labels: BoolArray, rule: Rule, start: Solution | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values [n], action values and action probabilities [n, actions] for one label set [n]."""
        if self.expectile is None:
            return learn_one(model, labels, *rule, start)
        return learn_expectile(model, labels, *rule, self.expectile)

    def _model_and_rule(self, dataset: OfflineDataset, rewards: FloatArray, impute: float) -> tuple[Model, Rule]:
        """Return the empirical model, and the arguments of the solvers that describe the rule."""
        return self.model(dataset, rewards, impute), (
            self.gamma,
            impute,
            self.rule == "adapted",
            dataset.action_frequencies,
        )
