"""The network of learned selectors: one small network scores every state, independent of their number and order.

Deep sets (Zaheer et al. 2017, https://arxiv.org/abs/1703.06114): each state's features are encoded, the codes of all
states are pooled by mean and maximum, and a second network scores each code together with the pool. The same weights
work in any world.
"""

from agents.learned.state_features import NAMES
from selectenv.checks import check_int
from selectenv.errors import MissingExtraError

try:
    import torch
    from torch import nn
except ImportError as error:
    raise MissingExtraError(f"learned selectors need torch ({error}): pip install 'selectenv[meta]'") from error

SEEN = NAMES.index("seen")


class StateScorer(nn.Module):
    """Network with one score per state and one value for the whole set of states."""

    def __init__(self, hidden: int = 64, features: int = len(NAMES)) -> None:
        """Build the network.

        Args:
            hidden: width of its layers.
            features: number of features per state.
        """
        super().__init__()
        self.hidden = check_int("hidden", hidden, 1, 4096)
        self.encode = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.score = nn.Sequential(nn.Linear(3 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.judge = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores [batch, n] and values [batch] for features [batch, n, features]."""
        code, pool = self.pooled(features)
        beside = pool[:, None, :].expand(-1, features.shape[1], -1)
        scores = self.score(torch.cat([code, beside], dim=2))[:, :, 0]
        return scores, self.judge(pool)[:, 0]

    def pooled(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the code of each state [batch, n, hidden] and of each set of states [batch, 2 hidden]."""
        seen = features[:, :, SEEN : SEEN + 1]
        code = self.encode(features)
        if not bool((seen == 1).all()):  # a product with ones would change nothing, and takes time
            code = code * seen
        mean = code.sum(dim=1) / seen.sum(dim=1).clamp(min=1)
        return code, torch.cat([mean, code.amax(dim=1)], dim=1)


def one_thread() -> None:
    """Limit torch to one thread in this process: the network is too small for more, and sums stay deterministic."""
    torch.set_num_threads(1)
