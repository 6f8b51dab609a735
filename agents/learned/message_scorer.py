"""The network of `learned` in PyTorch, for training: states exchange messages along the moves of the data.

    c_0(s) = encode(x(s)),
    c_{k+1}(s) = c_k(s) + relu(W_k [c_k(s), sum_s' M_1(s, s') c_k(s'), sum_s' M_2(s, s') c_k(s'), ...] + U_k pool(c_k)),
    score(s) = f(c_K(s), pool(c_K)),

where x(s) are features, M_1, M_2, ... the matrices of `agents.learned.moves`, and the pool is the mean and the maximum
over all states. `agents.learned.selector` computes the same without torch.
"""

from agents.learned.moves import MOVES
from agents.learned.state_features import NAMES
from selectenv.checks import check_int
from selectenv.errors import MissingExtraError

try:
    import torch
    from torch import nn
except ImportError as error:
    raise MissingExtraError(f"training selectors needs torch ({error}): pip install 'selectenv[meta]'") from error

INNER = 64
"""Width of the layers that are neither codes nor scores."""
SEEN = NAMES.index("seen")


class MessageScorer(nn.Module):
    """Network with one score per state."""

    def __init__(self, hidden: int, rounds: int, features: int) -> None:
        """Build the network.

        Args:
            hidden: width of the codes of states.
            rounds: number of rounds in which states exchange messages.
            features: number of features per state.
        """
        super().__init__()
        hidden = check_int("hidden", hidden, 1, 4096)
        rounds = check_int("rounds", rounds, 0, 100)
        self.encode = nn.Sequential(nn.Linear(features, INNER), nn.ReLU(), nn.Linear(INNER, hidden), nn.ReLU())
        self.message = nn.ModuleList(nn.Linear((1 + len(MOVES)) * hidden, hidden) for _ in range(rounds))
        self.pool = nn.ModuleList(nn.Linear(2 * hidden, hidden, bias=False) for _ in range(rounds))
        self.score = nn.Sequential(nn.Linear(3 * hidden, INNER), nn.ReLU(), nn.Linear(INNER, 1))

    def forward(self, features: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Return scores [batch, n] for features [batch, n, features] and moves [batch, matrices, n, n]."""
        seen = features[:, :, SEEN : SEEN + 1]
        code = self.encode(features) * seen
        for message, pool in zip(self.message, self.pool, strict=True):
            received = (moves @ code[:, None]).permute(0, 2, 1, 3).flatten(2)
            change = message(torch.cat([code, received], dim=2)) + pool(_pooled(code, seen))[:, None]
            code = code + torch.relu(change) * seen
        beside = _pooled(code, seen)[:, None].expand(-1, code.shape[1], -1)
        scores: torch.Tensor = self.score(torch.cat([code, beside], dim=2))[:, :, 0]
        return scores


def _pooled(code: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Return the mean and the maximum [batch, 2 hidden] of the codes of the states that occur in the data."""
    return torch.cat([code.sum(dim=1) / seen.sum(dim=1).clamp(min=1), code.amax(dim=1)], dim=1)
