"""The forward pass of Llama, Qwen2 and Qwen3 over packed tokens, with the weights of a transformers model.

transformers loads the model, owns its parameters and is the reference in the tests; its own forward pass spends most of a
small model's time between the products. Activations are (T, D): the real tokens of all rows one after another; only attention
knows rows. Left out: sliding windows, rope that changes with the length of a text.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from waggle.errors import ModelError, WaggleError
from waggle.policy import adapters, configuration, torch_head
from waggle.policy.torch_memory import give_back, memory_errors
from waggle.policy.torch_product import Product, ready_pieces
from waggle.policy.training import Training
from waggle.rl.batch import nothing

_one_at_a_time = threading.Lock()  # opening a model sets for all threads what torch makes numbers of, and sets it back
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Rope:
    """The turns of T positions: `cos` and `sin` (T, 1, head width), the first half of `sin` negative."""

    cos: torch.Tensor
    sin: torch.Tensor

    def turn(self, heads: torch.Tensor) -> torch.Tensor:
        """(T, heads, width), turned."""
        half = heads.shape[-1] // 2
        swapped = torch.cat((heads[..., half:], heads[..., :half]), -1)
        return torch.addcmul(heads * self.cos, swapped, self.sin)


class CausalLM:
    """One model. Raises ModelError for a folder that holds none, or one of an unknown kind, and MemoryShort."""

    def __init__(self, folder: Path, device: torch.device, training: Training) -> None:
        kept: torch.dtype = getattr(torch, training.kept)
        self.configuration = configuration.read(folder)
        self.holder = _load(folder, kept).to(device).eval()
        for parameter in self.holder.parameters():  # loading maps the file: a change of it would kill the process (SIGBUS)
            parameter.data = parameter.data.clone()
            parameter.requires_grad_(training.method != "lora")
        self.weights: dict[str, torch.nn.Parameter] = dict(self.holder.named_parameters())  # tied weights appear once
        self.precision: torch.dtype = getattr(torch, training.precision)  # of products and activations
        self.recompute = training.recompute
        config = self.holder.config
        self.width: int = config.hidden_size
        self.vocabulary: int = config.vocab_size
        self._rotary = self.holder.model.rotary_emb
        adapted = training.method == "lora"
        self._layers = [
            _Layer(layer, config, f"model.layers.{number}.", adapted=adapted)
            for number, layer in enumerate(self.holder.model.layers)
        ]
        self._ready_head: Callable[[torch.Tensor], torch.Tensor] | None = None

    @property
    def trained(self) -> dict[str, torch.nn.Parameter]:
        """What is trained: the adapters where there are any, else all weights."""
        found: dict[str, torch.nn.Parameter] = {}
        for layer in self._layers:
            found |= layer.adapters
        return found or self.weights

    @property
    def sharing_heads(self) -> int:
        """How many query heads share the keys and values of one."""
        return self.configuration.num_attention_heads // self.configuration.num_key_value_heads

    @property
    def bytes_per_token(self) -> int:
        """About what one token of a training pass keeps in memory for its backward pass."""
        return self.configuration.bytes_per_token(self.precision.itemsize, recompute=self.recompute)

    @property
    def bytes_per_layer(self) -> int:
        """Of that, what one layer makes."""
        return self.configuration.bytes_per_layer(self.precision.itemsize)

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """(T,) -> (T, D) of the last layer. `attend(layer, q, k, v)` takes (T, heads, width) each, gives (T, heads * width)."""
        rope = self._rope(positions)
        x = torch_head.embed(self.holder.model.embed_tokens.weight, tokens).to(self.precision)
        again = self.recompute and torch.is_grad_enabled()
        for number, layer in enumerate(self._layers):
            x = checkpoint(layer, number, x, rope, attend, use_reentrant=False) if again else layer(number, x, rope, attend)
        return x

    @contextlib.contextmanager
    def decoding(self, rows: int, pause_point: Callable[[], None] = nothing) -> Iterator[None]:
        """Weights made ready for many products of about so many rows each, where that pays; dropped at the end."""
        products = [product for layer in self._layers for product in layer.products]
        self._spare_memory()
        try:
            for product in products:
                product.make_ready(self.precision, rows)
                pause_point()
            if not self.recompute or self.head.dtype != self.precision:  # the largest copy: not worth it where memory is short
                self._ready_head = ready_pieces(self.head.detach(), self.precision, rows, pause_point)
            yield
        finally:
            self._ready_head = None
            for product in products:
                product.drop_ready()
            self._spare_memory()

    def _spare_memory(self) -> None:
        """Between answering and learning, where memory is short."""
        if self.recompute:
            give_back()

    def _rope(self, positions: torch.Tensor) -> Rope:
        """The turns of positions (T,)."""
        angles = positions[:, None, None] * self._rotary.inv_freq  # (T, 1, width / 2)
        cos, sin = angles.cos() * self._rotary.attention_scaling, angles.sin() * self._rotary.attention_scaling
        return Rope(torch.cat((cos, cos), -1).to(self.precision), torch.cat((-sin, sin), -1).to(self.precision))

    @property
    def head(self) -> torch.nn.Parameter:
        """(V, D), which may be the embedding's."""
        weight: torch.nn.Parameter = self.holder.get_output_embeddings().weight
        return weight

    def logits(self, hidden: torch.Tensor, temperature: float) -> torch.Tensor:
        """(N, D) of the last layer -> (N, V) in the precision of the products, divided by the temperature."""
        normed = self.normed(hidden)
        cooled = normed if temperature == 1.0 else normed / temperature  # the smaller side of the product
        if self._ready_head is not None:
            return self._ready_head(cooled)
        return F.linear(cooled, self.head.to(cooled.dtype))

    def normed(self, hidden: torch.Tensor) -> torch.Tensor:
        """(N, D) of the last layer as the head and a critic read it."""
        return _norm(self.holder.model.norm, hidden)


class _Layer:
    """One transformer layer. What is multiplied with the same input lies in one block of memory, for decoding."""

    def __init__(self, layer: Any, config: Any, prefix: str, *, adapted: bool) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self._norms = (layer.input_layernorm, layer.post_attention_layernorm)
        self._head_norms = (getattr(attention, "q_norm", None), getattr(attention, "k_norm", None))
        self._width = attention.head_dim
        rank = adapters.RANK if adapted else 0
        self._qkv = Product(attention, ("q_proj", "k_proj", "v_proj"), f"{prefix}self_attn.", rank)
        self._out = Product(attention, ("o_proj",), f"{prefix}self_attn.", rank)
        self._gate_up = Product(mlp, ("gate_proj", "up_proj"), f"{prefix}mlp.", rank)
        self._down = Product(mlp, ("down_proj",), f"{prefix}mlp.", rank)
        self.products = (self._qkv, self._out, self._gate_up, self._down)

    @property
    def adapters(self) -> dict[str, torch.nn.Parameter]:
        return {name: one for product in self.products for name, one in product.adapters.items()}

    def __call__(self, number: int, x: torch.Tensor, rope: Rope, attend: Attend) -> torch.Tensor:
        q, k, v = (part.view(len(x), -1, self._width) for part in self._qkv.each(_norm(self._norms[0], x)))
        if self._head_norms[0] is not None:
            q, k = _norm(self._head_norms[0], q), _norm(self._head_norms[1], k)
        x = self._out.onto(x, attend(number, rope.turn(q), rope.turn(k), v))
        gate, up = self._gate_up.each(_norm(self._norms[1], x))
        return self._down.onto(x, F.silu(gate) * up)


def _norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), norm.weight.to(x.dtype), norm.variance_epsilon)


def _load(folder: Path, kept: torch.dtype) -> Any:
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # what it reports is refused below
    try:
        with _one_at_a_time, memory_errors():
            config = AutoConfig.for_model(**configuration.obeyed(folder))
            model, report = AutoModelForCausalLM.from_pretrained(
                folder, config=config, local_files_only=True, dtype=kept, use_safetensors=True, output_loading_info=True
            )
    except WaggleError:
        raise
    except Exception as error:  # the other files of the folder may hold anything
        raise ModelError(f"The model in {folder} cannot be read: {error}.", "Copy or download it again.") from error
    if missing := sorted(report["missing_keys"]):  # transformers would make random numbers of them, others at every start
        raise ModelError(f"The model in {folder} cannot be read: {missing[0]} is not there.", "Copy or download it again.")
    return model
