"""Advantages: how much better each completion is than its group (GRPO, arXiv 2402.03300, section 4.1.2, outcome rewards)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CRUMB_SPAN = 0.2  # some tasks of reasoning-gym pay .05 for any text: a small spread teaches only format. Our own
EPSILON = 1e-4  # keeps the division by std finite; also the tolerance for rounded rewards


def spread(rewards: Sequence[float]) -> float:
    """Largest minus smallest reward of a group."""
    return max(rewards) - min(rewards)


def teaches(rewards: Sequence[float], span: float = CRUMB_SPAN) -> bool:
    """Whether a group has any advantage: its rewards differ by at least `span`."""
    return len(rewards) > 1 and 0.0 < spread(rewards) >= span - EPSILON  # 1.0 - 0.8 is a little less than 0.2


def centred_rewards(rewards: Sequence[float], span: float = CRUMB_SPAN) -> NDArray[np.float64]:
    """r - mean of one group, (G,); all zero if the rewards differ by less than `span`."""
    values = np.asarray(rewards, dtype=np.float64)
    return values - values.mean() if teaches(rewards, span) else np.zeros_like(values)


def group_advantages(rewards: Sequence[float], span: float = CRUMB_SPAN) -> NDArray[np.float32]:
    """(r - mean) / (std + eps) of one group, (G,); all zero if the rewards differ by less than `span`."""
    scaled: NDArray[np.float64] = centred_rewards(rewards, span) / (np.std(np.asarray(rewards, dtype=np.float64)) + EPSILON)
    return scaled.astype(np.float32)


def gate_external(advantages: NDArray[np.float32], lengths: Sequence[int]) -> NDArray[np.float32]:
    """External advantages (N,) with 0 for completions that did badly: a node learns only from the successes of others.

    `lengths` (G,) are tokens of each completion. With a critic, whose advantages differ between tokens, a completion did badly
    if their sum is not positive; of the others, only the tokens with a positive advantage count.

    Why: a ratio compares the policy with itself a few steps ago at most, so clipping never limits how far an external completion
    that is already unlikely here is pushed down. Plain SAPO at 4/4 rose early and collapsed for that reason.
    """
    well = [part.sum() > 0 for part in np.split(advantages, np.cumsum(lengths)[:-1])]
    return np.where(np.repeat(well, lengths), np.maximum(advantages, np.float32(0.0)), np.float32(0.0))
