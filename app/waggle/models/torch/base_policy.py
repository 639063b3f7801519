"""What every torch policy does in the same way: batches that fit into memory, the objective, the optimizer, the saved state.

A subclass opens the model and computes its hidden states; see `models/torch/policy.py` and `models/generic/policy.py`.
"""

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from waggle.core.errors import ModelError
from waggle.models.shared.adaptive_batch import AdaptiveBatch
from waggle.models.shared.decoding import DecodingBatch, decode
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import is_bits, round_to
from waggle.models.storage.checkpoint import Arrays
from waggle.models.torch import optimizers
from waggle.models.torch.fused_head import Objective
from waggle.models.torch.memory import memory_errors
from waggle.models.torch.optimizers import array, tensor
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
from waggle.rl.random_streams import generator


class CompletionTokens(Protocol):
    """The completion tokens of some groups: `targets` (N,), and N values as an array for each group."""

    @property
    def targets(self) -> torch.Tensor: ...

    def split(self, values: torch.Tensor) -> list[Floats]: ...


class TrainableModel(Protocol):
    """A model as the optimizer and the batches see it."""

    @property
    def number_of_weights(self) -> int: ...

    @property
    def trained(self) -> Mapping[str, torch.nn.Parameter]: ...

    @property
    def bytes_per_token(self) -> int: ...


class BasePolicy(ABC):
    """A causal language model with its optimizer. Create and use it in one thread.

    `short` is called with one sentence whenever memory ran short, so that batches are smaller from then on.
    """

    def __init__(
        self, model: TrainableModel, device: torch.device, training: TrainingMode, short: Callable[[str], None] = nothing
    ) -> None:
        self.training = training
        self._device = device
        self._parameters = dict(model.trained)
        self._number_of_weights = model.number_of_weights
        with memory_errors():
            self._optimizer = optimizers.optimizer_for(self.training, self._parameters)
        self._critic: torch.nn.Linear | None = None  # created when a batch first has returns
        self._steps = 0
        free_on_card = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
        self._batch_size = AdaptiveBatch(self.training, model.bytes_per_token, short, free_on_card=free_on_card)

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def parameters(self) -> int:
        """The number of the model's weights."""
        return self._number_of_weights

    @abstractmethod
    def _normed_hidden(self, texts: Sequence[TokenizedGroup]) -> tuple[CompletionTokens, torch.Tensor]:
        """The completion tokens, and the hidden states (N, D) after the final norm that predict them."""

    @abstractmethod
    def _logprobs(self, normed: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
        """Log-probs (N,) of the targets, without a gradient."""

    @abstractmethod
    def _objective_loss(
        self, normed: torch.Tensor, targets: torch.Tensor, temperature: float, objective: Objective
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss, whose `backward` must follow once and unscaled, and the log-probs (N,) without a gradient."""

    @abstractmethod
    def _decoding_batch(self, prompts: Sequence[Ids], group_size: int, params: SamplingParams) -> DecodingBatch:
        """The rows of one call of `sample`."""

    @abstractmethod
    def _ready_to_decode(self, rows: int, params: SamplingParams) -> AbstractContextManager[None]:
        """A context for decoding about this many rows."""

    @property
    @abstractmethod
    def _hidden_size(self) -> int:
        """D."""

    @torch.no_grad()
    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        """See `sapo.interfaces.Policy.sample`. Raises MemoryShort."""
        return self._batch_size.sample(prompts, uniforms, params, self._sample)

    def _sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        group_size = len(uniforms) // len(prompts)
        with memory_errors(), self._ready_to_decode(len(uniforms), params):
            sampled = decode(self._decoding_batch(prompts, group_size, params), uniforms, params)
        return [sampled[p * group_size : (p + 1) * group_size] for p in range(len(prompts))]

    @torch.no_grad()
    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        """See `sapo.interfaces.Policy.logprobs`. Raises MemoryShort."""
        return self._measure(texts, lambda targets, normed: self._logprobs(normed, targets, temperature))

    @torch.no_grad()
    def values(self, texts: Sequence[TokenizedGroup]) -> list[Floats]:
        """See `sapo.interfaces.Policy.values`. Raises MemoryShort."""
        critic = self._critic
        if critic is None:
            return [np.zeros(sum(map(len, text.completions)), np.float32) for text in texts]
        return self._measure(texts, lambda _, normed: critic(normed.float())[:, 0])

    def _measure(
        self, texts: Sequence[TokenizedGroup], measure: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> list[Floats]:
        """Return (N,) for each group. `measure(targets, normed)` returns one number for each completion token."""

        def some(pieces: Sequence[TokenizedGroup]) -> Sequence[Floats]:
            with memory_errors():
                tokens, normed = self._normed_hidden(pieces)
                return tokens.split(measure(tokens.targets, normed))

        return self._batch_size.measure(texts, some)

    def step(self, batches: Sequence[TrainingGroup], params: StepParams) -> StepMetrics:
        """See `sapo.interfaces.Policy.step`. Raises Stopped from a pause point, before anything changed.

        Raises MemoryShort. Then some weights may have changed and others not, so the policy must be opened again.
        """
        if self._critic is None and any(batch.returns is not None for batch in batches):
            self._make_critic()
        trained = [*self._parameters.values(), *self._critic_parameters().values()]
        try:
            loss, clip = self._gradient(batches, params)
            with memory_errors():
                norm = torch.nn.utils.clip_grad_norm_(trained, params.max_gradient_norm)
                params.pause_point()
                if not (torch.isfinite(norm) and math.isfinite(loss)):
                    return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0, applied=False)
                self._optimizer.step(params.learning_rate)
            self._steps += 1
        finally:
            self._forget_gradient()
        return StepMetrics(loss=loss, clip_fraction=clip, gradient_norm=float(norm))

    def _gradient(self, batches: Sequence[TrainingGroup], params: StepParams) -> tuple[float, float]:
        """Compute the gradient of all batches; return their loss and clip fraction."""

        def some(pieces: Sequence[TrainingGroup]) -> tuple[float, float]:
            params.pause_point()
            with memory_errors():
                return self._learn(pieces, params)

        return self._batch_size.learn(batches, self._forget_gradient, some)

    def _forget_gradient(self) -> None:
        for parameter in (*self._parameters.values(), *self._critic_parameters().values()):
            parameter.grad = None

    def weights(self) -> Arrays:
        """The trained weights under Hugging Face names; with LoRA the adapters only (models/shared/lora.py).

        They have the precision in which they are kept, bfloat16 as its bits. On the CPU they are views: copy them.
        """
        return {name: as_array(parameter) for name, parameter in self._parameters.items()}

    def state(self) -> tuple[Arrays, Arrays]:
        """(`weights`, moments). Moments are fp32: `exp_avg.NAME` and `exp_avg_sq.NAME`, or `row.NAME` and `column.NAME`, with the
        number of `steps`. A value head is among the moments, so that the weights stay a model file for any program:
        `critic.weight`, `critic.bias`, their moments, and `critic.steps`, because it may be younger than the policy.
        """
        critic = self._critic_parameters()
        moments = self._optimizer.moments({**self._parameters, **critic})
        moments["steps"] = np.array(self._optimizer.steps(self._parameters), np.float32)
        for name, parameter in critic.items():
            moments[name] = array(parameter)
            moments["critic.steps"] = np.array(self._optimizer.steps(critic), np.float32)
        return self.weights(), moments

    @torch.no_grad()
    def restore(self, weights: Arrays, moments: Arrays, steps: int) -> None:
        """Load a saved state. Removes each array from the arguments: two copies would need more memory than learning.

        Ignores moments of another optimizer. Raises ModelError for the state of another model, and MemoryShort.
        """
        for name, parameter in self._parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise ModelError("The saved state belongs to another model.", "Choose that model again, or start afresh.")
        with memory_errors():
            for name, parameter in self._parameters.items():
                parameter.copy_(tensor(_fit_to(weights.pop(name), parameter, name, steps)))
            self._optimizer.restore(self._parameters, moments, int(moments.get("steps", steps)))
            self._drop_critic()
            if "critic.weight" in moments:
                critic = self._make_critic()
                for name, parameter in critic.items():
                    parameter.copy_(torch.from_numpy(moments.pop(name)))
                self._optimizer.restore(critic, moments, int(moments["critic.steps"]))
        self._steps = steps

    def _make_critic(self) -> dict[str, torch.nn.Parameter]:
        """Create the value head (D -> 1). It is zero at first, so its estimates are 0."""
        self._critic = torch.nn.Linear(self._hidden_size, 1, dtype=torch.float32, device=self._device)
        torch.nn.init.zeros_(self._critic.weight)
        torch.nn.init.zeros_(self._critic.bias)
        parameters = self._critic_parameters()
        self._optimizer.add(parameters)
        return parameters

    def _drop_critic(self) -> None:
        self._optimizer.drop(self._critic_parameters())
        self._critic = None

    def _critic_parameters(self) -> dict[str, torch.nn.Parameter]:
        if self._critic is None:
            return {}
        return {f"critic.{name}": parameter for name, parameter in self._critic.named_parameters()}

    def _learn(self, batches: Sequence[TrainingGroup], params: StepParams) -> tuple[float, float]:
        """Add the gradient of some groups; return their loss and clip fraction."""
        advantage = self._concatenate([batch.advantage for batch in batches])  # (N,)
        weight = self._concatenate([batch.weight for batch in batches])
        known = [batch.old_logp for batch in batches if batch.old_logp is not None]  # all of them have one, or none
        old = self._concatenate(known) if known else None

        def objective(logp: torch.Tensor, rows: slice) -> torch.Tensor:
            reference = logp.detach() if old is None else old[rows]  # a round of one step: ratio 1
            loss: torch.Tensor = clipped_objective(torch, logp, reference, advantage[rows], weight[rows], params.clip)
            return loss

        tokens, normed = self._normed_hidden(batches)
        if old is not None and params.ratio == "sequence":
            with torch.no_grad():  # the head runs twice, the model once: no part of the rows has whole completions
                now = self._logprobs(normed.detach(), tokens.targets, params.temperature)
            old = sequence_reference(torch, now, old, [len(ids) for batch in batches for ids in batch.completions])
        loss, logp = self._objective_loss(normed, tokens.targets, params.temperature, objective)
        returns = [batch.returns for batch in batches if batch.returns is not None]
        if returns and self._critic is not None:
            estimates = self._critic(normed.detach().float())[:, 0]  # the critic does not train the model
            loss = loss + params.value_share * self._value_loss(estimates, returns, weight, batches, params.value_clip)
        loss.backward()  # type: ignore[no-untyped-call]
        cut = (is_clipped(logp, logp if old is None else old, advantage, params.clip) * weight).sum()
        return float(loss.detach()), float(cut)

    def _value_loss(
        self,
        estimates: torch.Tensor,
        returns: Sequence[Floats],
        weight: torch.Tensor,
        batches: Sequence[TrainingGroup],
        clip: float | None,
    ) -> torch.Tensor:
        targets, before = self._concatenate(returns), [batch.values for batch in batches if batch.values is not None]
        if clip is None or not before:
            return 0.5 * (weight * (estimates - targets).square()).sum()
        loss: torch.Tensor = value_loss(torch, estimates, self._concatenate(before), targets, weight, clip)
        return loss

    def _concatenate(self, arrays: Sequence[Floats]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(arrays)).to(self._device)


def as_array(parameter: torch.Tensor) -> NDArray[Any]:
    """The parameter as an array, a view if it is on the CPU; bfloat16, which numpy lacks, as its bits."""
    return parameter.detach().cpu().view(torch.uint16).numpy() if parameter.dtype == torch.bfloat16 else array(parameter)


def _fit_to(saved: NDArray[Any], parameter: torch.Tensor, name: str, steps: int) -> NDArray[Any]:
    """A saved array for this parameter. fp32 becomes bfloat16 by stochastic rounding: rounding to the nearest would lose what was
    learned."""
    if parameter.dtype != torch.bfloat16 or is_bits(saved):
        return saved
    return round_to(saved, "BF16", generator(0, "restored", steps, zlib.crc32(name.encode())))
