"""The pulse of a model: a short forward pass when it is opened, whose log-probs must be finite numbers.

Weights of a damaged or diverged model, or products that overflow, give NaN or infinity, and would so in every round.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from waggle.core.errors import ModelError
from waggle.core.message import Message, in_turn
from waggle.models.shared.training_mode import TrainingMode
from waggle.rl.batch import Floats, TokenizedGroup

PROMPT, COMPLETIONS = 24, (9, 5)  # tokens
TOKENS = 16  # that every model has, by their ids


class LivingPolicy(Protocol):
    """A policy that computes log-probs."""

    @property
    def training(self) -> TrainingMode: ...

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]: ...


def has_pulse(policy: LivingPolicy) -> bool:
    """Whether a short random text has finite log-probs. Each is of a token among all others, so it sees the whole head."""
    noise = np.random.default_rng(0)
    prompt, *completions = (noise.integers(0, TOKENS, length).astype(np.int32) for length in (PROMPT, *COMPLETIONS))
    (logp,) = policy.logprobs([TokenizedGroup(prompt, tuple(completions))], 1.0)
    return bool(np.isfinite(logp).all())


def require_pulse(policy: LivingPolicy) -> None:
    """Raise ModelError for a model without a pulse."""
    if has_pulse(policy):
        return
    advice = Message("Copy or download it again, or choose another model.")
    if policy.training.precision == "bfloat16":
        advice = in_turn(advice, Message("Or set model.precision to float32."))
    raise ModelError("The model's answers are no numbers.", advice)
