"""The policies in MLX: they sample with noise from the caller, and learn from groups, running each prompt once.

It computes what models/torch/policy.py does, up to rounding on a CPU and within 2e-3 on Metal (tests/models/contract). Not
supported: the training mode lean.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import mlx.core as mx
import numpy as np

from waggle.core.errors import ModelError
from waggle.models.mlx import fused_head
from waggle.models.mlx.decoding import MlxDecodingBatch
from waggle.models.mlx.memory import memory_errors, recommended_bytes
from waggle.models.mlx.model import MlxModel, Weights
from waggle.models.mlx.optimizers import AdamW
from waggle.models.mlx.packing import Packing
from waggle.models.shared.adaptive_batch import AdaptiveBatch
from waggle.models.shared.decoding import DecodingBatch, decode
from waggle.models.shared.packing import group_row
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import as_fp32
from waggle.models.storage.checkpoint import Arrays
from waggle.rl.batch import (
    Floats,
    Ids,
    SampledCompletion,
    SamplingParams,
    StepMetrics,
    StepParams,
    TokenizedGroup,
    TrainingGroup,
    nothing,
)
from waggle.rl.objective import clipped_objective, is_clipped, sequence_reference, value_loss

CACHE_BYTES = 1 << 28  # freed memory that MLX may cache
CRITIC = ("critic.weight", "critic.bias")


class CompletionTokens(Protocol):
    """The completion tokens of some groups: `targets` (N,), and N values as an array for each group."""

    @property
    def targets(self) -> mx.array: ...

    def split(self, values: mx.array) -> list[Floats]: ...


class PolicyModel(Protocol):
    """A model as the optimizer and the batches see it; its `loaded` weights are taken from it."""

    loaded: Weights

    @property
    def bytes_per_token(self) -> int: ...

    @property
    def hidden_size(self) -> int: ...

    def first_adapters(self) -> Weights: ...

    def working_weights(self, weights: Mapping[str, mx.array]) -> Weights: ...


class BaseMlxPolicy(ABC):
    """What every policy in MLX does in the same way; a subclass computes hidden states and log-probs.

    A causal language model with AdamW. Create and use it in one thread, and do not fork a process that has used MLX.
    """

    def __init__(self, folder: Path, *, training: TrainingMode | None = None, short: Callable[[str], None] = nothing) -> None:
        self.training = training or TrainingMode()
        if self.training.method == "lean":
            raise ModelError("Lean training is not there on MLX.", "Set model.training to full, to lora or to auto.")
        _limit_memory()
        with memory_errors():
            self._model = self._open_model(folder)
            lora = self.training.is_adapted
            self._frozen: Weights = self._model.loaded if lora else {}
            self._trained: Weights = self._model.first_adapters() if lora else self._model.loaded
            self._model.loaded = {}
            mx.eval(self._trained)
        self._optimizer = AdamW()
        self._batch_size = AdaptiveBatch(self.training, self._model.bytes_per_token, short)
        self._critic: Weights = {}  # created when a batch first has returns
        self._steps = 0

    @abstractmethod
    def _open_model(self, folder: Path) -> PolicyModel:
        """Load a model. Raises ModelError and MemoryShort."""

    @abstractmethod
    def _decoding_batch(self, weights: Weights, prompts: Sequence[Ids], group_size: int, params: SamplingParams) -> DecodingBatch:
        """The rows of one call of `sample`."""

    @abstractmethod
    def _final_states(
        self, weights: Weights, texts: Sequence[TokenizedGroup], *, learning: bool = False
    ) -> tuple[CompletionTokens, mx.array]:
        """The completion tokens, and the normed hidden states (N, D) that predict them."""

    @abstractmethod
    def _logprobs(self, weights: Weights, normed: mx.array, targets: mx.array, temperature: float, *, frozen: bool) -> mx.array:
        """Log-probs (N,) of the targets. A `frozen` head gets no gradient."""

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def parameters(self) -> int:
        """The number of the model's weights."""
        return sum(weight.size for weight in (self._frozen or self._trained).values())

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        """See `sapo.interfaces.Policy.sample`. Raises MemoryShort."""
        with memory_errors():
            weights = self._working_weights()

        def sample(some: Sequence[Ids], noise: Floats, watched: SamplingParams) -> list[list[SampledCompletion]]:
            size = len(noise) // len(some)
            with memory_errors():
                sampled = decode(self._decoding_batch(weights, some, size, watched), noise, watched)
            return [sampled[p * size : (p + 1) * size] for p in range(len(some))]

        return self._batch_size.sample(prompts, uniforms, params, sample)

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        """See `sapo.interfaces.Policy.logprobs`. Raises MemoryShort."""

        def measure(weights: Weights, normed: mx.array, targets: mx.array) -> mx.array:
            return self._logprobs(weights, normed, targets, temperature, frozen=True)

        return self._measure(texts, measure)

    def values(self, texts: Sequence[TokenizedGroup]) -> list[Floats]:
        """See `sapo.interfaces.Policy.values`. Raises MemoryShort."""
        if not self._critic:
            return [np.zeros(sum(map(len, text.completions)), np.float32) for text in texts]
        return self._measure(texts, lambda weights, normed, targets: _value_estimates(self._critic, normed))

    def _measure(
        self, texts: Sequence[TokenizedGroup], measure: Callable[[Weights, mx.array, mx.array], mx.array]
    ) -> list[Floats]:
        """Return (N,) for each group. `measure(weights, normed, targets)` returns one number for each completion token."""
        with memory_errors():
            weights = self._working_weights()

        def some(pieces: Sequence[TokenizedGroup]) -> Sequence[Floats]:
            with memory_errors():
                packing, normed = self._final_states(weights, pieces)
                return packing.split(measure(weights, normed, packing.targets))

        return self._batch_size.measure(texts, some)

    def step(self, batches: Sequence[TrainingGroup], params: StepParams) -> StepMetrics:
        """See `sapo.interfaces.Policy.step`. Raises Stopped from a pause point, before anything changed.

        Raises MemoryShort. Then some weights may have changed and others not, so the policy must be opened again.
        """
        if not self._critic and any(batch.returns is not None for batch in batches):
            self._make_critic()
        gradient, loss, clip = self._gradient(batches, params)
        with memory_errors():
            norm = math.sqrt(sum(float((array * array).sum()) for array in gradient.values()))
            params.pause_point()
            if not (math.isfinite(norm) and math.isfinite(loss)):
                return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0, applied=False)
            shrink = min(1.0, params.max_gradient_norm / (norm + 1e-6))
            for weights in (self._trained, self._critic):
                self._optimizer.step(weights, gradient, params.learning_rate, shrink)
        self._steps += 1
        return StepMetrics(loss=loss, clip_fraction=clip, gradient_norm=norm)

    def weights(self) -> Arrays:
        """The trained weights, in the form of TorchPolicy."""
        return {name: np.asarray(weight) for name, weight in self._trained.items()}

    def state(self) -> tuple[Arrays, Arrays]:
        """(trained weights, moments), in the form of TorchPolicy, so that either backend resumes from the other's."""
        moments = self._optimizer.moments({**self._trained, **self._critic})
        moments["steps"] = np.array(self._optimizer.steps(next(iter(self._trained))), np.float32)
        for name, weight in self._critic.items():
            moments[name] = np.asarray(weight)
            moments["critic.steps"] = np.array(self._optimizer.steps(CRITIC[0]), np.float32)
        return self.weights(), moments

    def restore(self, weights: Arrays, moments: Arrays, steps: int) -> None:
        """Load a saved state, removing each array from the arguments, as TorchPolicy does. Raises ModelError and MemoryShort."""
        for name, weight in self._trained.items():
            if name not in weights or weights[name].shape != weight.shape:
                raise ModelError("The saved state belongs to another model.", "Choose that model again, or start afresh.")
        with memory_errors():
            for name in self._trained:
                self._trained[name] = mx.array(as_fp32(weights.pop(name)))
            self._optimizer = AdamW()
            self._optimizer.restore(self._trained, moments, int(moments.get("steps", np.array(steps))))
            self._critic = {}
            if CRITIC[0] in moments:
                self._critic = {name: mx.array(moments.pop(name)) for name in CRITIC}
                self._optimizer.restore(self._critic, moments, int(moments["critic.steps"]))
            mx.eval(self._trained, self._critic)
        self._steps = steps

    def _make_critic(self) -> None:
        """Create the value head (D -> 1). It is zero at first, so its estimates are 0."""
        self._critic = {CRITIC[0]: mx.zeros((1, self._model.hidden_size)), CRITIC[1]: mx.zeros((1,))}

    def _working_weights(self) -> Weights:
        return self._model.working_weights(self._frozen | self._trained)

    def _gradient(self, batches: Sequence[TrainingGroup], params: StepParams) -> tuple[Weights, float, float]:
        """(the gradient of all batches, their loss, their clip fraction)."""
        gradient: Weights = {}

        def some(pieces: Sequence[TrainingGroup]) -> tuple[float, float]:
            params.pause_point()
            with memory_errors():
                return self._learn(pieces, params, gradient)

        return gradient, *self._batch_size.learn(batches, gradient.clear, some)

    def _learn(self, batches: Sequence[TrainingGroup], params: StepParams, gradient: Weights) -> tuple[float, float]:
        """Add the gradient of some groups to `gradient`; return their loss and clip fraction."""

        def loss_of(learned: Weights) -> tuple[mx.array, mx.array]:
            return self._loss(learned, batches, params)

        taught = self._critic if any(batch.returns is not None for batch in batches) else {}
        (loss, cut), gradients = mx.value_and_grad(loss_of)(self._trained | taught)
        for name in list(gradients):
            part = gradients.pop(name)
            gradient[name] = gradient.pop(name) + part if name in gradient else part
        mx.eval(loss, cut, gradient)
        mx.clear_cache()
        return float(loss), float(cut)

    def _loss(self, learned: Weights, batches: Sequence[TrainingGroup], params: StepParams) -> tuple[mx.array, mx.array]:
        advantage, weight = (_concatenate([getattr(batch, name) for batch in batches]) for name in ("advantage", "weight"))
        weights = self._model.working_weights(
            {**self._frozen, **{name: array for name, array in learned.items() if name not in CRITIC}}
        )
        packing, normed = self._final_states(weights, batches, learning=True)
        logp = self._logprobs(weights, normed, packing.targets, params.temperature, frozen=bool(self._frozen))
        known = [batch.old_logp for batch in batches if batch.old_logp is not None]  # all of them have one, or none
        old = _concatenate(known) if known else mx.stop_gradient(logp)  # a round of one step: ratio 1
        if known and params.ratio == "sequence":
            lengths = [len(ids) for batch in batches for ids in batch.completions]
            old = sequence_reference(mx, mx.stop_gradient(logp), old, lengths)
        loss = clipped_objective(mx, logp, old, advantage, weight, params.clip)
        returns = [batch.returns for batch in batches if batch.returns is not None]
        if returns:
            estimates = _value_estimates(learned, mx.stop_gradient(normed))  # the critic does not train the model
            targets = _concatenate(returns)
            before = [batch.values for batch in batches if batch.values is not None]
            if params.value_clip is None or not before:
                miss = 0.5 * (weight * (estimates - targets).square()).sum()
            else:
                miss = value_loss(mx, estimates, _concatenate(before), targets, weight, params.value_clip)
            loss = loss + params.value_share * miss
        cut = (is_clipped(mx.stop_gradient(logp), old, advantage, params.clip) * weight).sum()
        return loss, cut


class MlxPolicy(BaseMlxPolicy):
    """A model that the fast path computes, over packed groups."""

    _model: MlxModel

    def _open_model(self, folder: Path) -> MlxModel:
        return MlxModel(folder, self.training)

    def _decoding_batch(self, weights: Weights, prompts: Sequence[Ids], group_size: int, params: SamplingParams) -> DecodingBatch:
        return MlxDecodingBatch(self._model, weights, prompts, group_size, params)

    def _final_states(
        self, weights: Weights, texts: Sequence[TokenizedGroup], *, learning: bool = False
    ) -> tuple[Packing, mx.array]:
        packing = Packing([group_row(text) for text in texts], self._model.configuration)
        hidden = self._model.hidden(weights, packing.tokens, packing.positions, packing.attend, learning=learning)
        return packing, self._model.final_norm(weights, hidden[packing.sources])

    def _logprobs(self, weights: Weights, normed: mx.array, targets: mx.array, temperature: float, *, frozen: bool) -> mx.array:
        return fused_head.logprobs(normed, weights[self._model.head], targets, temperature, frozen=frozen)


def _value_estimates(critic: Weights, normed: mx.array) -> mx.array:
    """The value head's estimates (N,)."""
    return (normed.astype(mx.float32) @ critic[CRITIC[0]].T + critic[CRITIC[1]])[:, 0]


def _concatenate(arrays: Sequence[Floats]) -> mx.array:
    return mx.array(np.concatenate(arrays))


def _limit_memory() -> None:
    """Use Metal's recommended working set as the limit: MLX's default is 1.5 times that, and the Mac would swap."""
    mx.set_cache_limit(CACHE_BYTES)
    if most := recommended_bytes():
        mx.set_memory_limit(most)
