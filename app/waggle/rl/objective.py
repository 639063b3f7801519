"""The objective: GRPO's clipped policy gradient, written once over an array namespace (numpy, torch, mlx.core)."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Clip:
    """The range [1 - low, 1 + high] of the ratio outside which the gradient is cut (asymmetric, as in DAPO)."""

    low: float = 0.2
    high: float = 0.28


def clipped_objective(xp: Any, logp: Any, old_logp: Any, advantage: Any, weight: Any, clip: Clip) -> Any:
    """The loss, a scalar: minus the weighted sum of min(ratio * A, clip(ratio) * A). SAPO paper, equation 1, without KL.

    All arrays have one shape; `weight` is 0 where nothing is learned and sums to at most 1 over a training set.
    `xp` is the namespace of the arrays; it needs exp, clip and minimum.
    """
    ratio = xp.exp(logp - old_logp)
    surrogate = xp.minimum(ratio * advantage, xp.clip(ratio, 1.0 - clip.low, 1.0 + clip.high) * advantage)
    return -(surrogate * weight).sum()


def is_clipped(logp: Any, old_logp: Any, advantage: Any, clip: Clip) -> Any:
    """True where the clip cuts the gradient: where the ratio left the range in the direction of the advantage."""
    log_ratio = logp - old_logp
    above = (log_ratio > math.log(1.0 + clip.high)) & (advantage > 0)
    below = (log_ratio < math.log(1.0 - clip.low)) & (advantage < 0)
    return above | below
