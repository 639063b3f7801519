"""The objective: GRPO's clipped policy gradient, written once over an array namespace (numpy, torch, mlx.core)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Ratio = Literal["token", "sequence"]  # between which probabilities: of each token, or of each completion (GSPO)


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


def sequence_reference(xp: Any, logp: Any, old_logp: Any, lengths: Sequence[int]) -> Any:
    """Old log-probs (N,) with which the ratio of every token is that of its whole completion. GSPO, arXiv 2507.18071.

    s_i = exp(mean over the tokens of completion i of logp - old_logp), equation 7. With the result in place of `old_logp`, a
    token's ratio is s_i * pi / sg(pi), equation 14: its value is s_i, and under equal advantages and weights of 1 / length its
    gradient is that of s_i, equation 17. `logp` (N,) must have no gradient; `lengths` are the completions' tokens, N in all.
    """
    log_ratio = logp - old_logp
    means, first = [], 0
    for length in lengths:
        means.append(xp.broadcast_to(log_ratio[first : first + length].mean(), (length,)))
        first += length
    return logp - xp.concatenate(means)


def value_loss(xp: Any, values: Any, old_values: Any, returns: Any, weight: Any, clip: float) -> Any:
    """Half of the weighted squared error of the value head, a scalar; the larger one of the estimate and the clipped estimate.

    max((V - R)^2, (V_old + clip(V - V_old, -c, c) - R)^2): not in the PPO paper, but in its authors' code (OpenAI Baselines).
    All arrays have one shape, (N,).
    """
    clipped = old_values + xp.clip(values - old_values, -clip, clip)
    return 0.5 * (weight * xp.maximum((values - returns) ** 2, (clipped - returns) ** 2)).sum()
