"""The update rule: how the rewards of a group become advantages and weights of its tokens. One rule is one small file.

A rule decides what a completion's tokens are worth to one's own policy; whether a peer's completion should count at all
is the sharing strategy's affair. Left out: KL terms and rules that look at a whole sequence's ratio.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from waggle.rl.objective import Clip

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Scored:
    """One group of a training set as a rule sees it: G completions, N tokens in all."""

    rewards: tuple[float, ...]  # (G,)
    lengths: tuple[int, ...]  # (G,) tokens, the stop token included
    groups: int  # I + J: places of the training set, even where fewer groups came together
    tokens: int  # of all completions of the training set
    longest: int  # tokens a completion may have
    crumb_span: float  # a group whose rewards differ by less teaches nothing
    values: Floats | None = None  # (N,) what the critic expected before each token, where the rule has one


@dataclass(frozen=True)
class Teaching:
    """`advantage` (N,) and `weight` (N,) of each token; `returns` (N,) for the critic, where the rule has one."""

    advantage: Floats
    weight: Floats
    returns: Floats | None = None


@dataclass(frozen=True)
class Rule:
    """An update rule by its usual name. With `critic`, `Scored.values` comes from the policy's value head."""

    name: str
    teach: Callable[[Scored], Teaching]
    clip: Clip = field(default_factory=Clip)
    critic: bool = False


def per_token(values: Sequence[float] | NDArray[np.floating], lengths: Sequence[int]) -> Floats:
    """(N,): the value of each completion (G,) at each of its tokens."""
    return np.repeat(np.asarray(values, np.float32), lengths)


def mean_of_means(scored: Scored) -> Floats:
    """(N,) weights that take the mean over tokens, then over completions, then over groups: 1 / (groups * G * length).

    Each group counts 1 / groups whatever its size; completions that are gated out later keep their place in the denominator.
    """
    lengths = np.maximum(np.asarray(scored.lengths, np.float32), 1.0)
    return per_token(1.0 / (scored.groups * len(scored.lengths) * lengths), scored.lengths)
