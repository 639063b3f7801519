"""Advantages: how much better each completion is than its group (GRPO, arXiv 2402.03300, equation for outcome rewards)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CRUMB_SPAN = 0.2  # reasoning-gym pays .05 for any text in some tasks: a smaller spread teaches nothing but format
EPSILON = 1e-4


def spread(rewards: Sequence[float]) -> float:
    """Largest minus smallest reward of a group."""
    return max(rewards) - min(rewards)


def teaches(rewards: Sequence[float]) -> bool:
    """Whether a group has any advantage to learn from: its rewards differ by more than crumbs."""
    return len(rewards) > 1 and spread(rewards) >= CRUMB_SPAN


def group_advantages(rewards: Sequence[float]) -> NDArray[np.float32]:
    """(r - mean) / (std + eps) of one group, shape (G,); all zero where the rewards differ by crumbs only."""
    values = np.asarray(rewards, dtype=np.float64)
    if not teaches(rewards):
        return np.zeros(len(values), np.float32)
    scaled: NDArray[np.float64] = (values - values.mean()) / (values.std() + EPSILON)
    return scaled.astype(np.float32)


def gate_external(advantages: NDArray[np.float32]) -> NDArray[np.float32]:
    """Learn from others' successes only: a peer's completion that did badly gets no weight.

    With one update per batch the ratio against oneself is always 1, so clipping never limits pushing down an external
    completion that is unlikely here already; plain SAPO at 4/4 took off early and collapsed for that reason.
    """
    return np.maximum(advantages, np.float32(0.0))
