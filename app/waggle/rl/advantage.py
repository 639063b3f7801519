"""Advantages: how much better each completion is than its group (GRPO, arXiv 2402.03300, equation for outcome rewards)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CRUMB_SPAN = 0.2  # reasoning-gym pays .05 for any text in some tasks: a smaller spread teaches nothing but format. Our own
EPSILON = 1e-4


def spread(rewards: Sequence[float]) -> float:
    """Largest minus smallest reward of a group."""
    return max(rewards) - min(rewards)


def teaches(rewards: Sequence[float], span: float = CRUMB_SPAN) -> bool:
    """Whether a group has any advantage to learn from: its rewards differ, by at least `span`."""
    return len(rewards) > 1 and 0.0 < spread(rewards) >= span - EPSILON  # 1.0 - 0.8 is a little less than 0.2


def centred(rewards: Sequence[float], span: float = CRUMB_SPAN) -> NDArray[np.float64]:
    """r - mean of one group, shape (G,); all zero where the rewards differ by less than `span`."""
    values = np.asarray(rewards, dtype=np.float64)
    return values - values.mean() if teaches(rewards, span) else np.zeros_like(values)


def group_advantages(rewards: Sequence[float], span: float = CRUMB_SPAN) -> NDArray[np.float32]:
    """(r - mean) / (std + eps) of one group, shape (G,); all zero where the rewards differ by less than `span`."""
    scaled: NDArray[np.float64] = centred(rewards, span) / (np.std(np.asarray(rewards, dtype=np.float64)) + EPSILON)
    return scaled.astype(np.float32)


def gate_external(advantages: NDArray[np.float32], lengths: Sequence[int]) -> NDArray[np.float32]:
    """Learn from others' successes only: a peer's completion that did badly gets no weight. (N,) of G completions' `lengths`.

    Where a critic values single tokens, a completion did badly that did so on average, and of the others the good tokens count.

    With one update per batch the ratio against oneself is always 1, so clipping never limits pushing down an external
    completion that is unlikely here already; plain SAPO at 4/4 took off early and collapsed for that reason.
    """
    well = [part.sum() > 0 for part in np.split(advantages, np.cumsum(lengths)[:-1])]
    return np.where(np.repeat(well, lengths), np.maximum(advantages, np.float32(0.0)), np.float32(0.0))
