"""The interface of an update rule: how the rewards of a group become advantages and weights of its tokens.

Whether an external completion counts at all is decided by the sharing strategy, not here. Left out: KL terms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from waggle.rl.objective import Clip, Ratio

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ScoredGroup:
    """The input of a rule: one group of a training set, with G completions and N tokens in all."""

    rewards: tuple[float, ...]  # (G,)
    lengths: tuple[int, ...]  # (G,) tokens, the stop token included
    groups: int  # I + J: the places of the training set, even if fewer groups are in it
    tokens: int  # of all completions of the training set, of groups that teach something
    longest: int  # tokens that a completion may have
    crumb_span: float  # a group whose rewards differ by less teaches nothing
    values: Floats | None = None  # (N,) the critic's estimate before each token, if the rule has a critic


@dataclass(frozen=True)
class TokenAdvantages:
    """The output of a rule: `advantage` (N,) and `weight` (N,) of each token, and `returns` (N,) if the rule has a critic.

    The weights of all groups of a training set sum to at most 1.
    """

    advantage: Floats
    weight: Floats
    returns: Floats | None = None


@dataclass(frozen=True)
class Rule:
    """An update rule; its name is that of its file. With `critic`, `ScoredGroup.values` comes from the policy's value head.

    `ratio`, `clip` and `value_clip` act from the second step of a round on (`learning.updates`): before, no ratio differs from 1.
    """

    name: str
    teach: Callable[[ScoredGroup], TokenAdvantages]
    clip: Clip = field(default_factory=Clip)
    ratio: Ratio = "token"
    critic: bool = False
    value_clip: float | None = None  # how far the critic may move from its estimates before the round; None: any distance
    lots: int = 1  # of questions that a round may draw until enough of its own groups teach something (dynamic sampling)


def per_token(values: Sequence[float] | NDArray[np.floating], lengths: Sequence[int]) -> Floats:
    """(N,): the value of each completion (G,) at each of its tokens."""
    return np.repeat(np.asarray(values, np.float32), lengths)


def mean_of_means(scored: ScoredGroup) -> Floats:
    """(N,) weights that take the mean over tokens, then over completions, then over groups: 1 / (groups * G * length).

    Each group counts 1 / groups, whatever its size. Completions that are masked later stay in the denominator.
    """
    lengths = np.maximum(np.asarray(scored.lengths, np.float32), 1.0)
    return per_token(1.0 / (scored.groups * len(scored.lengths) * lengths), scored.lengths)
