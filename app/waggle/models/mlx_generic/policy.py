"""The policy of every causal language model of mlx-lm, where the fast path in MLX does not compute it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import mlx.core as mx

from waggle.models.mlx.memory import memory_errors
from waggle.models.mlx.model import Weights
from waggle.models.mlx.policy import BaseMlxPolicy
from waggle.models.mlx_generic.decoding import MlxLmDecodingBatch
from waggle.models.mlx_generic.layout import CompletionTargets, hidden_states, targets_of
from waggle.models.mlx_generic.model import MlxLmModel
from waggle.models.mlx_generic.self_check import fastest_ways
from waggle.models.mlx_generic.thread_end import await_this_thread_at_exit
from waggle.models.shared.decoding import DecodingBatch
from waggle.models.shared.training_mode import TrainingMode
from waggle.rl.batch import Ids, SamplingParams, StepParams, TokenizedGroup, TrainingGroup, nothing


class MlxLmPolicy(BaseMlxPolicy):
    """A model of mlx-lm with AdamW. Create and use it in one thread.

    Its weights have the names of mlx-lm's modules: those of transformers for most kinds, but not for stacked experts.
    """

    _model: MlxLmModel
    library = "mlx-lm"

    def __init__(self, folder: Path, *, training: TrainingMode | None = None, short: Callable[[str], None] = nothing) -> None:
        await_this_thread_at_exit()
        super().__init__(folder, training=training, short=short)
        with memory_errors():
            self.ways = fastest_ways(self._model, self._working_weights())

    def _open_model(self, folder: Path) -> MlxLmModel:
        return MlxLmModel(folder, self.training)

    @property
    def parameters(self) -> int:
        """The number of the model's weights, quantised or not."""
        return self._model.configuration.number_of_weights

    def _decoding_batch(self, weights: Weights, prompts: Sequence[Ids], group_size: int, params: SamplingParams) -> DecodingBatch:
        return MlxLmDecodingBatch(self._model, weights, self.ways.caching, prompts, group_size, params)

    def _final_states(
        self, weights: Weights, texts: Sequence[TokenizedGroup], *, learning: bool = False
    ) -> tuple[CompletionTargets, mx.array]:
        states = [hidden_states(self._model, weights, text, self.ways.layout) for text in texts]
        return targets_of(texts), mx.concatenate(states)

    def _logprobs(self, weights: Weights, normed: mx.array, targets: mx.array, temperature: float, *, frozen: bool) -> mx.array:
        return self._model.logprobs(weights, normed, targets, temperature, frozen=frozen)

    def _learn(self, batches: Sequence[TrainingGroup], params: StepParams, gradient: Weights) -> tuple[float, float]:
        with self._model.learning():
            return super()._learn(batches, params, gradient)
