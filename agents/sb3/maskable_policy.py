"""Policy of sb3-contrib's MaskablePPO with the state scorer as its network."""

from agents.sb3.scoring_policies import ScoringMixin
from selectenv.errors import MissingExtraError

try:
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
except ImportError as error:
    raise MissingExtraError(f"maskable-ppo needs sb3-contrib ({error}): pip install 'selectenv[meta]'") from error

__all__ = ["MaskablePPO", "MaskableScorerPolicy"]


class MaskableScorerPolicy(ScoringMixin, MaskableActorCriticPolicy):  # type: ignore[misc]
    """Policy for MaskablePPO."""
