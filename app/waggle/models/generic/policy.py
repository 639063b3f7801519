"""The policy of every causal language model of transformers, where the fast path does not compute it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import torch

from waggle.core.system.process_memory import return_large_blocks
from waggle.models.generic import head
from waggle.models.generic.decoding import GenericDecodingBatch
from waggle.models.generic.layout import CompletionTargets, hidden_states, targets_of
from waggle.models.generic.model import GenericModel
from waggle.models.generic.self_check import fastest_ways
from waggle.models.shared.decoding import DecodingBatch
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage.checkpoint import Arrays
from waggle.models.torch.base_policy import BasePolicy, as_array
from waggle.models.torch.fused_head import Objective
from waggle.models.torch.memory import memory_errors
from waggle.rl.batch import Ids, SamplingParams, TokenizedGroup, nothing


class GenericPolicy(BasePolicy):
    """A model of transformers with its optimizer. Create and use it in one thread."""

    library = "transformers"  # whose names its weights have

    def __init__(
        self,
        folder: Path,
        *,
        device: str = "cpu",
        training: TrainingMode | None = None,
        short: Callable[[str], None] = nothing,
    ) -> None:
        training, place = training or TrainingMode(), torch.device(device)
        if training.recompute and place.type == "cpu":  # memory is short
            return_large_blocks()
        with memory_errors():
            self._model = GenericModel(folder, place, training)
            self.ways = fastest_ways(self._model)
        super().__init__(self._model, place, training, short)

    def weights(self) -> Arrays:
        """See `BasePolicy.weights`. Whole weights come with the numbers that are not trained, so that they are a model file."""
        weights = super().weights()
        if not self.training.is_adapted:
            weights |= {name: as_array(buffer) for name, buffer in self._model.constants.items()}
        return weights

    def restore(self, weights: Arrays, moments: Arrays, steps: int) -> None:
        """See `BasePolicy.restore`."""
        for name in self._model.constants:
            weights.pop(name, None)
        super().restore(weights, moments, steps)

    @property
    def _hidden_size(self) -> int:
        return self._model.hidden_size

    @property
    def _rows_at_once(self) -> int:
        return max(1, self.training.logits_at_once // self._model.configuration.vocab_size)

    def _ready_to_decode(self, rows: int, params: SamplingParams) -> AbstractContextManager[None]:
        return self._model.decoding()

    def _decoding_batch(self, prompts: Sequence[Ids], group_size: int, params: SamplingParams) -> DecodingBatch:
        return GenericDecodingBatch(self._model, self.ways.caching, prompts, group_size, params)

    def _logprobs(self, normed: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
        return head.logprobs(normed, self._model.logits, targets, temperature, self._rows_at_once)

    def _objective_loss(
        self, normed: torch.Tensor, targets: torch.Tensor, temperature: float, objective: Objective
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return head.objective_loss(normed, self._model.logits, targets, temperature, objective, self._rows_at_once)

    def _normed_hidden(self, texts: Sequence[TokenizedGroup]) -> tuple[CompletionTargets, torch.Tensor]:
        hidden = torch.cat([hidden_states(self._model, text, self.ways.layout) for text in texts])
        return targets_of(texts, self._device), hidden
