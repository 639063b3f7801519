"""The forward pass of Llama, Qwen2 and Qwen3 over packed tokens, with the weights of a transformers model.

transformers loads the model, owns its parameters and is the reference in the tests; its own forward pass spends most of a
small model's time between the products. Activations are (T, D): the real tokens of all rows one after another; only attention
knows rows. Left out: reduced precision, sliding windows, rope that changes with the length of a text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from waggle.errors import ModelError
from waggle.policy import configuration

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
    """One model in fp32. Raises ModelError for a folder that holds none, or one of an unknown kind."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.holder = _load(folder).to(device).eval()
        for parameter in self.holder.parameters():  # loading maps the file: a change of it would kill the process (SIGBUS)
            parameter.data = parameter.data.clone()
        self.parameters: dict[str, torch.nn.Parameter] = dict(self.holder.named_parameters())  # tied weights appear once
        config = self.holder.config
        self.width: int = config.hidden_size
        self.vocabulary: int = config.vocab_size
        self._rotary = self.holder.model.rotary_emb
        self._layers = [_Layer(layer, config) for layer in self.holder.model.layers]

    @property
    def bytes_per_token(self) -> int:
        """About what one token of a training pass keeps in memory for its backward pass."""
        inner: int = self.holder.config.intermediate_size
        return 4 * len(self._layers) * (10 * self.width + 3 * inner)

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """(T,) -> (T, D) of the last layer. `attend(layer, q, k, v)` takes (T, heads, width) each, gives (T, heads * width)."""
        rope = self._rope(positions)
        x = F.embedding(tokens, self.holder.model.embed_tokens.weight)
        for number, layer in enumerate(self._layers):
            q, k, v = layer.project(x, rope)
            x = layer.out(x, attend(number, q, k, v))
            x = layer.down(x, layer.widen(x))
        return x

    def _rope(self, positions: torch.Tensor) -> Rope:
        """The turns of positions (T,)."""
        angles = positions[:, None, None] * self._rotary.inv_freq  # (T, 1, width / 2)
        cos, sin = angles.cos() * self._rotary.attention_scaling, angles.sin() * self._rotary.attention_scaling
        return Rope(torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1))

    def logits(self, hidden: torch.Tensor, temperature: float) -> torch.Tensor:
        """(N, D) of the last layer -> (N, V), divided by the temperature."""
        normed = self.normed(hidden)
        cooled = normed if temperature == 1.0 else normed / temperature  # the smaller side of the product
        return F.linear(cooled, self.holder.get_output_embeddings().weight).float()

    def normed(self, hidden: torch.Tensor) -> torch.Tensor:
        """(N, D) of the last layer as the head and a critic read it."""
        norm = self.holder.model.norm
        return F.rms_norm(hidden, (self.width,), norm.weight, norm.variance_epsilon)


class _Layer:
    """One transformer layer. What is multiplied with the same input lies in one block of memory, for decoding."""

    def __init__(self, layer: Any, config: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self._norms = (layer.input_layernorm, layer.post_attention_layernorm)
        self._head_norms = (getattr(attention, "q_norm", None), getattr(attention, "k_norm", None))
        self._heads, self._shared = config.num_attention_heads, config.num_key_value_heads
        self._width = attention.head_dim
        self._qkv = _Fused([attention.q_proj, attention.k_proj, attention.v_proj])
        self._gate_up = _Fused([mlp.gate_proj, mlp.up_proj])
        self._out, self._down = attention.o_proj, mlp.down_proj

    def project(self, x: torch.Tensor, rope: Rope) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values, (T, heads, width)."""
        q, k, v = (part.view(len(x), -1, self._width) for part in self._qkv(_norm(self._norms[0], x)))
        if self._head_norms[0] is not None:
            q, k = _norm(self._head_norms[0], q), _norm(self._head_norms[1], k)
        return rope.turn(q), rope.turn(k), v

    def out(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        return _add_linear(x, attended, self._out)

    def widen(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self._gate_up(_norm(self._norms[1], x))
        return F.silu(gate) * up

    def down(self, x: torch.Tensor, wide: torch.Tensor) -> torch.Tensor:
        return _add_linear(x, wide, self._down)


class _Fused:
    """Linear layers of one input: one product while decoding. Their parameters become views of one block."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        self._weight = _one_block([part.weight for part in parts])
        self._bias = _one_block([part.bias for part in parts]) if parts[0].bias is not None else None

    def __call__(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        if torch.is_grad_enabled():
            return [F.linear(x, part.weight, part.bias) for part in self._parts]
        return torch.split(F.linear(x, self._weight, self._bias), [len(part.weight) for part in self._parts], -1)


def _one_block(parameters: Sequence[torch.nn.Parameter]) -> torch.Tensor:
    block = torch.cat([parameter.data for parameter in parameters])
    for parameter, view in zip(parameters, torch.split(block, [len(one) for one in parameters]), strict=True):
        parameter.data = view
    return block


def _norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _add_linear(x: torch.Tensor, y: torch.Tensor, linear: Any) -> torch.Tensor:
    found = torch.addmm(x, y, linear.weight.t())
    return found if linear.bias is None else found + linear.bias


def _load(folder: Path) -> Any:
    configuration.read(folder)
    transformers_logging.disable_progress_bar()
    try:
        return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"The model in {folder} cannot be read: {error}.", "Copy or download it again.") from error
