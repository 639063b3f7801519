"""What goes into a policy and comes out of it: token ids and numpy arrays, no texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from waggle.rl.objective import Clip, Ratio

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]


def nothing(*_ignored: object) -> None:
    """A callback that does nothing."""


@dataclass(frozen=True)
class SamplingParams:
    """How to sample.

    `pause_point` is called in the prefill, at least once for each batch of prompts, and before every decode step; it may block,
    or raise Stopped. `watch` gets (tokens (N, max_new), lengths (N,), ended (N,)) after every step: the policy's own arrays, not
    copies.
    """

    max_new: int
    stops: tuple[int, ...]  # tokens that end a completion
    temperature: float = 1.0
    top_p: float = 1.0  # nucleus sampling, after the temperature
    pause_point: Callable[[], None] = nothing
    watch: Callable[[Ids, Ids, NDArray[np.bool_]], None] = nothing


@dataclass(frozen=True)
class SampledCompletion:
    """One completion as token ids (T,) and their log-probs (T,). If it `ended` by itself, its stop token is the last one."""

    tokens: Ids
    logp: Floats
    ended: bool


@dataclass(frozen=True)
class TokenizedGroup:
    """A prompt and its completions, which share the prompt's KV cache. The completions have N tokens in all."""

    prompt: Ids
    completions: tuple[Ids, ...]

    def only(self, positions: Sequence[int]) -> "TokenizedGroup":
        """The same prompt with the completions at these positions."""
        return TokenizedGroup(self.prompt, tuple(self.completions[position] for position in positions))

    def part(self, first: int, last: int) -> Self:
        """The same prompt with completions [first, last), and all values of their tokens."""
        return replace(self, completions=self.completions[first:last])

    @property
    def tokens(self) -> int:
        """Tokens of a forward pass: those of the prompt once, and those of the completions."""
        return len(self.prompt) + sum(map(len, self.completions))


@dataclass(frozen=True)
class TrainingGroup(TokenizedGroup):
    """One group to learn from.

    `advantage` (N,) and `weight` (N,) run over the completions' tokens in order; `weight` already contains the
    normalisation of the update rule. `old_logp` (N,) holds the log-probs before the round's first step, which ratios refer to, or
    None where the step's own pass is the reference (a round of one step: the ratio is 1). `returns` (N,) are the targets of the
    value head and `values` (N,) its estimates before the round's first step, or None where the rule has no critic.
    """

    advantage: Floats
    weight: Floats
    old_logp: Floats | None = None
    returns: Floats | None = None
    values: Floats | None = None

    def part(self, first: int, last: int) -> Self:
        ends = np.cumsum([0, *map(len, self.completions)])
        span = slice(int(ends[first]), int(ends[last]))
        return replace(
            self,
            completions=self.completions[first:last],
            advantage=self.advantage[span],
            weight=self.weight[span],
            old_logp=None if self.old_logp is None else self.old_logp[span],
            returns=None if self.returns is None else self.returns[span],
            values=None if self.values is None else self.values[span],
        )


@dataclass(frozen=True)
class StepParams:
    """How to take one optimizer step. `pause_point` is called between groups and before the step itself."""

    learning_rate: float
    temperature: float = 1.0
    clip: Clip = field(default_factory=Clip)
    ratio: Ratio = "token"
    value_clip: float | None = None  # how far a value may move from that before the round; None: any distance
    value_share: float = 0.1  # weight of the critic's squared error in the loss, if a batch has returns
    max_gradient_norm: float = 1.0
    pause_point: Callable[[], None] = nothing


@dataclass(frozen=True)
class StepMetrics:
    """The figures of one step. `loss` and `clip_fraction` are weighted like the objective.

    `applied` is False if the loss or the gradient was not finite: then the weights are unchanged, and the figures are 0.
    """

    loss: float
    clip_fraction: float
    gradient_norm: float
    applied: bool = True
