"""The torch policy of the fast path: learns from packed groups, running each prompt once.

The head runs on completion positions only. If memory runs short, batches are halved until they fit.
"""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import torch

from waggle.core.system.process_memory import return_large_blocks
from waggle.models.shared.decoding import DecodingBatch
from waggle.models.shared.packing import group_row
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.torch import fused_head
from waggle.models.torch.base_policy import BasePolicy
from waggle.models.torch.cuda_graphs import CudaGraphs, GraphDecodingBatch
from waggle.models.torch.decoding import TorchDecodingBatch
from waggle.models.torch.fused_head import Objective
from waggle.models.torch.memory import memory_errors
from waggle.models.torch.model import TorchModel
from waggle.models.torch.packing import Packing
from waggle.rl.batch import Ids, SamplingParams, TokenizedGroup, nothing


class TorchPolicy(BasePolicy):
    """A model that the fast path computes, with its optimizer. Create and use it in one thread."""

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
        self._rows: Callable[..., DecodingBatch] = TorchDecodingBatch
        if place.type == "cuda":
            torch.backends.cuda.enable_cudnn_sdp(False)  # it caches a plan for every length, and may give NaN
            self._rows = partial(GraphDecodingBatch, CudaGraphs().begin)
        with memory_errors():
            self._model = TorchModel(folder, place, training)
        super().__init__(self._model, place, training, short)

    @property
    def _hidden_size(self) -> int:
        return self._model.configuration.hidden_size

    def _ready_to_decode(self, rows: int, params: SamplingParams) -> AbstractContextManager[None]:
        if self._batch_size.rows is None:
            return self._model.decoding(rows, params.pause_point)
        self._rows = TorchDecodingBatch  # memory is short: CUDA graphs release theirs, and no faster copies of the weights
        return contextlib.nullcontext()

    def _decoding_batch(self, prompts: Sequence[Ids], group_size: int, params: SamplingParams) -> DecodingBatch:
        return self._rows(self._model, self._device, prompts, group_size, params)

    def _logprobs(self, normed: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
        return fused_head.logprobs(normed, self._model.head, targets, temperature, self.training.logits_at_once)

    def _objective_loss(
        self, normed: torch.Tensor, targets: torch.Tensor, temperature: float, objective: Objective
    ) -> tuple[torch.Tensor, torch.Tensor]:
        at_once = self.training.logits_at_once
        return fused_head.objective_loss(normed, self._model.head, targets, temperature, objective, at_once)

    def _normed_hidden(self, texts: Sequence[TokenizedGroup]) -> tuple[Packing, torch.Tensor]:
        packing = Packing([group_row(text) for text in texts], self._device, self._model)
        hidden = self._model.hidden(packing.tokens, packing.positions, packing.attend)
        return packing, self._model.final_norm(hidden.index_select(0, packing.sources))
