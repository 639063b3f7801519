"""A model of transformers as the policy sees it: hidden states, a head over some of them, named weights, and a cache.

The head of the model is replaced by one that only keeps its input. So the logits (V each) are computed for the tokens that
need them, a few at a time. Where a model does something unknown after its head, its own logits take the place of the hidden
states.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.system.process_memory import return_free_memory
from waggle.models.generic import adapters, four_bits
from waggle.models.shared import generic_config, transformers_model
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.torch.memory import memory_errors

CACHES = ("past_key_values", "cache_params", "state")  # as the models call it
Mask = torch.Tensor | dict[str, torch.Tensor]


class GenericModel:
    """One language model. Raises ModelError for a folder without a model that transformers knows, and MemoryShort."""

    def __init__(self, folder: Path, device: torch.device, training: TrainingMode) -> None:
        self.configuration = generic_config.read(folder)
        self.device, self.recompute = device, training.recompute
        self.precision: torch.dtype = getattr(torch, training.precision)  # of products and activations
        stored: torch.dtype = getattr(torch, training.stored_precision)
        try:
            with memory_errors():
                self._network = transformers_model.load(folder, stored)
                self.number_of_weights = sum(weight.numel() for weight in self._network.parameters())
                if training.method == "qlora":
                    four_bits.quantise(self._network, device)
                else:
                    self._network.to(device)
        except RuntimeError as error:  # weights of other forms than transformers expects
            raise ModelError(Message("The model in %1 cannot be opened: %2.", folder, error), ANOTHER) from error
        self.text_config: Any = self._network.config.get_text_config()
        self.trained: Mapping[str, torch.nn.Parameter] = dict(self._network.named_parameters())  # a tied weight once
        buffers = dict(self._network.named_buffers())
        self.constants: dict[str, torch.Tensor] = {  # numbers of the model that are not trained
            name: value for name, value in self._network.state_dict().items() if name in buffers and value.is_floating_point()
        }
        self._mixed = stored != self.precision
        self._accepted = frozenset(inspect.signature(self._network.forward).parameters)
        self._cache_name = next((name for name in CACHES if name in self._accepted), "")
        self._network.get_input_embeddings().padding_idx = None  # or one token would have no gradient
        if training.is_adapted:
            with memory_errors():
                self.trained = adapters.inject(self._network)
        self._recomputed = self._recomputed_layers() if training.recompute else []
        self._head: torch.nn.Module | None = None
        self._caught: torch.Tensor | None = None
        self._split_head()

    @property
    def hidden_size(self) -> int:
        """D of what `hidden` returns."""
        return self.configuration.hidden_size if self._head is not None else self.configuration.vocab_size

    @property
    def bytes_per_token(self) -> int:
        """About the bytes that one token keeps from the forward pass for the backward pass."""
        return self.configuration.bytes_per_token(self.precision.itemsize, recompute=self.recompute)

    @property
    def bytes_per_layer(self) -> int:
        """About the bytes that one token keeps in one layer."""
        return self.configuration.bytes_per_layer(self.precision.itemsize)

    @property
    def has_cache(self) -> bool:
        return bool(self._cache_name)

    def hidden(self, tokens: torch.Tensor, mask: Mask | None, positions: torch.Tensor | None = None) -> torch.Tensor:
        """Tokens (B, T) -> hidden states (B, T, D), as the head reads them.

        `mask` is (B, T) with 1 for tokens and 0 for padding, (B, 1, T, T) added to the scores, or one of these for each type
        of layer.
        """
        return self._run(tokens, mask, positions, None, grow=False)[0]

    def continued(
        self, tokens: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Any = None
    ) -> tuple[torch.Tensor, Any]:
        """Tokens (B, T) after those in a cache -> hidden states (B, T, D) and the cache with them. `mask` is over all of them."""
        return self._run(tokens, mask, positions, cache, grow=True)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden states (N, D) -> logits (N, V) in fp32."""
        if self._head is None:
            return hidden.float()
        with self._autocast():
            scores: torch.Tensor = self._head_of(hidden)
        return self._after_head(scores.float())

    @contextlib.contextmanager
    def pausing(self, pause_point: Callable[[], None]) -> Iterator[None]:
        """Call `pause_point` before each layer."""
        lists = [part for part in self._network.modules() if isinstance(part, torch.nn.ModuleList)]
        lists.sort(key=lambda part: sum(weight.numel() for weight in part.parameters()))
        layers = list(lists[-1]) if lists else []

        def pause(*_: object) -> None:  # what a hook returns would be the layer's input
            pause_point()

        hooks = [layer.register_forward_pre_hook(pause) for layer in layers]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @contextlib.contextmanager
    def decoding(self) -> Iterator[None]:
        """A context for decoding; returns free memory around it if memory is short."""
        if self.recompute:
            return_free_memory()
        yield
        if self.recompute:
            return_free_memory()

    @contextlib.contextmanager
    def window(self, tokens: int) -> Iterator[None]:
        """Narrow the model's sliding window, if it has one, so that a short text shows what it does."""
        usual = getattr(self.text_config, "sliding_window", None)
        if usual:
            self.text_config.sliding_window = tokens
        try:
            yield
        finally:
            if usual:
                self.text_config.sliding_window = usual

    def _run(
        self, tokens: torch.Tensor, mask: Mask | None, positions: torch.Tensor | None, cache: Any, *, grow: bool
    ) -> tuple[torch.Tensor, Any]:
        arguments: dict[str, Any] = {"input_ids": tokens, "use_cache": grow, "return_dict": True}
        if mask is not None and "attention_mask" in self._accepted:
            arguments["attention_mask"] = mask
        if positions is not None and "position_ids" in self._accepted:
            arguments["position_ids"] = positions
        if cache is not None:
            arguments[self._cache_name] = cache
        for layer in self._recomputed:
            layer.train(torch.is_grad_enabled())
        with self._autocast():
            output = self._network(**arguments)
        grown = getattr(output, self._cache_name) if grow and self._cache_name else None
        if self._head is None:
            return output.logits, grown
        caught, self._caught = self._caught, None
        assert caught is not None
        return caught, grown

    def _split_head(self) -> None:
        """Separate the head from the model, if the two together still give the model's own logits."""
        tokens = torch.arange(1, 9, device=self.device)[None] % self.configuration.vocab_size
        with torch.no_grad(), memory_errors():
            try:
                expected = self.hidden(tokens, None)[0].float()  # without a separate head: the logits
                head = self._network.get_output_embeddings()
            except (TypeError, ValueError, AttributeError, IndexError, KeyError, NotImplementedError) as error:
                raise ModelError(Message("The model cannot be computed: %1.", error), ANOTHER) from error
            if head is None:
                return
            self._head, self._head_of = head, head.forward
            head.forward = self._catch
            computed = self.logits(self.hidden(tokens, None)[0])
            if computed.shape != expected.shape or not torch.allclose(computed, expected, rtol=1e-4, atol=1e-4):
                head.forward = self._head_of
                self._head = None

    def _catch(self, hidden: torch.Tensor) -> torch.Tensor:
        """Keep the input of the head, in the place of its output."""
        self._caught = hidden
        return hidden.new_zeros((*hidden.shape[:-1], 1))

    def _after_head(self, scores: torch.Tensor) -> torch.Tensor:
        """What some models do with the logits: scale them (Granite, Cohere, Falcon-H1), or bound them (Gemma)."""
        config = self.text_config
        if divisor := getattr(config, "logits_scaling", None):
            scores = scores / divisor
        for name in ("logit_scale", "lm_head_multiplier"):
            if factor := getattr(config, name, None):
                scores = scores * factor
        if bound := getattr(config, "final_logit_softcapping", None):
            scores = bound * torch.tanh(scores / bound)
        return scores

    def _recomputed_layers(self) -> list[torch.nn.Module]:
        """The layers that transformers computes twice. It does so in training mode, which must change nothing else."""
        from transformers.modeling_layers import GradientCheckpointingLayer

        if not self._network.supports_gradient_checkpointing:
            return []
        enable = getattr(self._network, "activation_checkpointing_enable", self._network.gradient_checkpointing_enable)
        enable({"use_reentrant": False})
        layers = [layer for layer in self._network.modules() if isinstance(layer, GradientCheckpointingLayer)]
        for part in (part for layer in layers for part in layer.modules()):
            for name, value in vars(part).items():
                if isinstance(value, float) and ("drop" in name or (name == "p" and isinstance(part, torch.nn.Dropout))):
                    setattr(part, name, 0.0)
        return layers

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast(self.device.type, self.precision) if self._mixed else contextlib.nullcontext()
