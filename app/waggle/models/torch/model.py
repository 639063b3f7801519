"""The forward pass of the fast path's kinds over packed tokens, with the weights of a transformers folder.

Why not transformers (decision 11): it takes seconds and 150 MB to import, follows other settings in a stranger's folder, and
spends most of a small model's time between the products. It is the reference in the tests. Activations are (T, D): the tokens of
all rows one after another, without padding; only attention knows rows, and sliding windows. Not supported: rotary embeddings that
depend on the length of a text.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from waggle.core.system.process_memory import return_free_memory
from waggle.models.shared import lora
from waggle.models.shared.configuration import model_config
from waggle.models.shared.configuration.model_config import EMBEDDING, HEAD, NORM, ModelConfig
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import read_model
from waggle.models.torch import fused_head
from waggle.models.torch.linear import FusedLinear, Parameters, ready_pieces
from waggle.models.torch.memory import memory_errors
from waggle.models.torch.optimizers import tensor
from waggle.rl.batch import nothing

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class RotaryEmbedding:
    """Rotary embeddings of T positions: `cos` and `sin` (T, 1, head width); the first half of `sin` is negated."""

    cos: torch.Tensor
    sin: torch.Tensor

    def rotate(self, heads: torch.Tensor) -> torch.Tensor:
        """Rotate queries or keys (T, heads, width)."""
        half = heads.shape[-1] // 2
        swapped = torch.cat((heads[..., half:], heads[..., :half]), -1)
        return torch.addcmul(heads * self.cos, swapped, self.sin)


class TorchModel:
    """One language model. Raises ModelError for a folder without a supported model, and MemoryShort."""

    def __init__(self, folder: Path, device: torch.device, training: TrainingMode) -> None:
        self.configuration = shape = model_config.read(folder)
        self.precision: torch.dtype = getattr(torch, training.precision)  # of products and activations
        self.recompute = training.recompute
        precision: torch.dtype = getattr(torch, training.stored_precision)
        adapted = training.method == "lora"
        self.weights: dict[str, torch.nn.Parameter] = {}  # by Hugging Face name; a tied head is the embedding
        with memory_errors():
            for name, weight in read_model(folder, shape.weights()):
                self.weights[name] = torch.nn.Parameter(
                    tensor(weight).to(device, precision, copy=True), requires_grad=not adapted
                )
            self._layers = [
                _DecoderLayer(shape, self.weights, f"model.layers.{number}.", adapted=adapted)
                for number in range(shape.num_hidden_layers)
            ]
        self.head = self.weights[EMBEDDING if shape.tie_word_embeddings else HEAD]  # (V, D)
        self._frequencies = {  # (width / 2,)
            rope: torch.from_numpy(rope.frequencies(shape.head_dim)).to(device) for rope in set(shape.ropes)
        }
        scale = torch.tensor(math.sqrt(shape.hidden_size), dtype=self.precision, device=device)  # rounded, as it was trained
        self._embedding_scale = scale if shape.kind.scales_embeddings else None
        self._ready_head: Callable[[torch.Tensor], torch.Tensor] | None = None

    @property
    def number_of_weights(self) -> int:
        return sum(weight.numel() for weight in self.weights.values())

    @property
    def trained(self) -> dict[str, torch.nn.Parameter]:
        """The trained parameters: the adapters if there are any, else all weights."""
        parameters: dict[str, torch.nn.Parameter] = {}
        for layer in self._layers:
            parameters |= layer.adapters
        return parameters or self.weights

    @property
    def sharing_heads(self) -> int:
        """How many query heads share one head of keys and values (grouped-query attention)."""
        return self.configuration.num_attention_heads // self.configuration.num_key_value_heads

    @property
    def bytes_per_token(self) -> int:
        """About the bytes that one token keeps from the forward pass for the backward pass."""
        return self.configuration.bytes_per_token(self.precision.itemsize, recompute=self.recompute)

    @property
    def bytes_per_layer(self) -> int:
        """About the bytes that one token keeps in one layer."""
        return self.configuration.bytes_per_layer(self.precision.itemsize)

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """Tokens (T,) -> hidden states (T, D) of the last layer.

        `attend(layer, q, k, v)` takes (T, heads, width) each and returns (T, heads * width).
        """
        shape, turns = self.configuration, {rope: self._turns(positions, turn) for rope, turn in self._frequencies.items()}
        x = fused_head.embed(self.weights[EMBEDDING], tokens).to(self.precision)
        if self._embedding_scale is not None:
            x = x * self._embedding_scale
        recompute = self.recompute and torch.is_grad_enabled()
        if recompute and not x.requires_grad:  # with LoRA, nothing before the first layer is trained
            x.requires_grad_()
        for number, (layer, rope) in enumerate(zip(self._layers, shape.ropes, strict=True)):
            once = partial(layer, number, rope=turns[rope], attend=attend)
            x = _Recomputed.apply(x, once) if recompute else once(x)  # type: ignore[no-untyped-call]
        return x

    @contextlib.contextmanager
    def decoding(self, rows: int, pause_point: Callable[[], None] = nothing) -> Iterator[None]:
        """A context for many products of about `rows` rows each: holds copies of the weights that make them faster."""
        products = [product for layer in self._layers for product in layer.products]
        self._spare_memory()
        try:
            for product in products:
                product.make_ready(self.precision, rows)
                pause_point()
            if not self.recompute or self.head.dtype != self.precision:  # the largest copy: not worth it if memory is short
                self._ready_head = ready_pieces(self.head.detach(), self.precision, rows, pause_point)
            yield
        finally:
            self._ready_head = None
            for product in products:
                product.drop_ready()
            self._spare_memory()

    def _spare_memory(self) -> None:
        """Return free memory between decoding and learning, if memory is short."""
        if self.recompute:
            return_free_memory()

    def _turns(self, positions: torch.Tensor, frequencies: torch.Tensor) -> RotaryEmbedding:
        """The rotary embeddings of positions (T,)."""
        angles = positions[:, None, None] * frequencies  # (T, 1, width / 2)
        cos, sin = angles.cos(), angles.sin()
        return RotaryEmbedding(torch.cat((cos, cos), -1).to(self.precision), torch.cat((-sin, sin), -1).to(self.precision))

    def logits(self, hidden: torch.Tensor, temperature: float) -> torch.Tensor:
        """Hidden states (N, D) -> logits (N, V) in the precision of the products, divided by the temperature."""
        normed = self.final_norm(hidden)
        cooled = normed if temperature == 1.0 else normed / temperature  # (N, D) is smaller than (N, V)
        if self._ready_head is not None:
            return self._ready_head(cooled)
        return F.linear(cooled, self.head.to(cooled.dtype))

    def final_norm(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden states (N, D) after the final norm, as head and critic read them."""
        return _norm(self.configuration, self.weights[NORM], hidden)


class _Recomputed(torch.autograd.Function):
    """Activation checkpointing (arXiv 1604.06174): only a layer's input (T, D) is kept, and the layer is computed twice.

    `torch.utils.checkpoint` loads torch's compiler: 2 s and 70 MB when memory is short.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.layer = layer
        return layer(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            torch.autograd.backward((ctx.layer(x),), gradients)
        return x.grad, None


class _DecoderLayer:
    """One transformer layer. Weights that are multiplied with the same input share a block of memory, for decoding."""

    def __init__(self, shape: ModelConfig, weights: Parameters, prefix: str, *, adapted: bool) -> None:
        self._shape = shape
        norms = [weights[f"{prefix}{name}.weight"] for name in shape.kind.norms]
        self._norms, self._last_norms = norms[:2], norms[2:] or (None, None)  # before and after attention and feed-forward layers
        of_heads = [f"{prefix}self_attn.{part}_norm.weight" for part in "qk"]
        self._head_norms = [weights[name] for name in of_heads if name in weights]  # Qwen3 and Gemma 3
        rank = lora.RANK if adapted else 0
        self._qkv = FusedLinear(weights, f"{prefix}self_attn.", shape.kind.qkv, rank)
        self._out = FusedLinear(weights, f"{prefix}self_attn.", ("o_proj",), rank)
        self._gate_up = FusedLinear(weights, f"{prefix}mlp.", shape.kind.gate_up, rank)
        self._down = FusedLinear(weights, f"{prefix}mlp.", ("down_proj",), rank)
        self.products = (self._qkv, self._out, self._gate_up, self._down)

    @property
    def adapters(self) -> dict[str, torch.nn.Parameter]:
        return {name: parameter for product in self.products for name, parameter in product.adapters.items()}

    def __call__(self, number: int, x: torch.Tensor, rope: RotaryEmbedding, attend: Attend) -> torch.Tensor:
        normed = _norm(self._shape, self._norms[0], x)
        q, k, v = (part.view(len(x), -1, self._shape.head_dim) for part in _apart(self._qkv.each(normed), self._shape.qkv_sizes))
        if self._head_norms:
            q, k = (_norm(self._shape, norm, part) for norm, part in zip(self._head_norms, (q, k), strict=True))
        if self._shape.query_scale != 1.0:
            q = q * self._shape.query_scale
        x = self._add(x, self._out, attend(number, rope.rotate(q), rope.rotate(k), v), self._last_norms[0])
        gate, up = _apart(self._gate_up.each(_norm(self._shape, self._norms[1], x)), (self._shape.intermediate_size,) * 2)
        activated = F.silu(gate) if self._shape.hidden_act == "silu" else F.gelu(gate, approximate="tanh")
        return self._add(x, self._down, activated * up, self._last_norms[1])

    def _add(self, x: torch.Tensor, product: FusedLinear, y: torch.Tensor, norm: torch.Tensor | None) -> torch.Tensor:
        """x (T, D) plus the output of a layer for y, normalised if there is a norm for it."""
        if norm is None:
            return product.onto(x, y)
        return x + _norm(self._shape, norm, product.each(y)[0])


def _apart(outputs: Sequence[torch.Tensor], sizes: Sequence[int]) -> Sequence[torch.Tensor]:
    """Outputs (T, size) of linear layers, which are one layer in the files of some kinds."""
    return torch.split(outputs[0], list(sizes), -1) if len(outputs) == 1 else outputs


def _norm(shape: ModelConfig, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    factor = 1.0 + weight if shape.kind.adds_one else weight
    return F.rms_norm(x, (x.shape[-1],), factor.to(x.dtype), shape.rms_norm_eps)
