"""Conservative Q-learning with discrete actions, in plain PyTorch, as a plug-in learner.

The same iteration as `fitted_q`, with a penalty on the values of actions that the data did not take (Kumar et al. 2020,
https://arxiv.org/abs/2006.04779, CQL(H)):

    Q_k = argmin_Q sum_i alpha (log sum_a exp Q(s_i, a) - Q(s_i, a_i)) + (Q(s_i, a_i) - y_i)^2 / 2.

With alpha = 0 it is fitted Q iteration.
"""

from typing import TYPE_CHECKING

from experiments.studies.prediction.fitted_q import FittedQ
from selectenv.checks import check_real

if TYPE_CHECKING:
    import torch


class ConservativeQ(FittedQ):
    """Conservative Q-learning: fitted Q iteration that prefers the actions of the data."""

    def __init__(
        self,
        gamma: float = 0.99,
        seed: int = 0,
        alpha: float = 1.0,
        iterations: int = 50,
        updates: int = 200,
        rate: float = 1e-3,
        batch: int = 256,
        hidden: int = 64,
    ) -> None:
        """Create a learner.

        Args:
            gamma: discount factor.
            seed: seed of the weights and the batches.
            alpha: weight of the penalty; rewards are scaled to at most 1.
            iterations: number of fits.
            updates: gradient steps per fit.
            rate: step size of Adam.
            batch: transitions per gradient step.
            hidden: units per hidden layer.
        """
        super().__init__(gamma, seed, iterations, updates, rate, batch, hidden)
        self.alpha = check_real("alpha", alpha, "[0, inf)")

    def loss(self, q: "torch.Tensor", action: "torch.Tensor", target: "torch.Tensor") -> "torch.Tensor":
        """Return the loss of fitted Q iteration plus the penalty; see `FittedQ.loss`."""
        taken = q.gather(1, action[:, None])[:, 0]
        return super().loss(q, action, target) + self.alpha * (q.logsumexp(dim=1) - taken).mean()
