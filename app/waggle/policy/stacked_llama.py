"""Several Llamas of one shape as one: their weights stacked, their forward passes one batched product each.

Activations are packed: (M, T, D), for M members and the T real tokens of each; only attention sees padded rows. Left out:
devices, reduced precision, scaled rope.
"""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from waggle.errors import ModelError

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Shape:
    """What must be equal for models to be stacked."""

    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    key_value_heads: int
    head_width: int
    epsilon: float
    theta: float
    positions: int


def shape_of(folder: Path) -> Shape:
    """The shape of a model folder; raises ModelError where the model cannot be stacked."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    rope = config.get("rope_parameters") or {}
    plain = (
        config.get("model_type") == "llama"
        and rope.get("rope_type", "default") == "default"
        and config.get("tie_word_embeddings")
        and not config.get("attention_bias")
        and not config.get("mlp_bias")
        and config.get("hidden_act", "silu") == "silu"
    )
    if not plain:
        raise ModelError(f"The model in {folder} cannot be stacked with others.", "Only plain Llamas with tied embeddings can.")
    heads = config["num_attention_heads"]
    return Shape(
        vocabulary=config["vocab_size"],
        width=config["hidden_size"],
        inner=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        key_value_heads=config["num_key_value_heads"],
        head_width=config.get("head_dim") or config["hidden_size"] // heads,
        epsilon=config["rms_norm_eps"],
        theta=rope.get("rope_theta", 10_000.0),
        positions=config["max_position_embeddings"],
    )


class StackedLlama:
    """M models of one `shape`. `flat` (M, P) holds all weights and `gradient` (M, P) theirs; a row is one member."""

    def __init__(self, folders: Sequence[Path]) -> None:
        shapes = {shape_of(folder) for folder in folders}
        if len(shapes) != 1:
            raise ModelError("Models of different shapes cannot be stacked.")
        self.shape = shapes.pop()
        self.members = len(folders)
        files = [load_file(folder / "model.safetensors") for folder in folders]
        parts = _parts(self.shape)
        rows = [torch.cat([file[name].float().flatten() for names in parts.values() for name in names]) for file in files]
        self.flat = torch.stack([torch.cat([row, torch.zeros(self.shape.width + 1)]) for row in rows])
        self.gradient = torch.zeros_like(self.flat)
        self._weights: dict[str, torch.Tensor] = {}
        self._gradients: list[torch.Tensor] = []  # views of `gradient`, in the order of the weights
        start = 0
        for part, names in parts.items():
            rows_of_part = sum(files[0][name].shape[0] for name in names)
            shape = (rows_of_part, *files[0][names[0]].shape[1:])
            start = self._add(part, start, shape)
        start = self._add("critic.weight", start, (1, self.shape.width))
        self._add("critic.bias", start, (1,))
        angles = torch.outer(torch.arange(self.shape.positions), _frequencies(self.shape))
        self._cos = torch.cat([angles, angles], -1).cos()  # (positions, head width)
        self._sin = torch.cat([-angles.sin(), angles.sin()], -1)

    def alone(self, member: int) -> "StackedLlama":
        """One member as a stack of one, in the same memory."""
        one = copy.copy(self)
        one.members = 1
        one.flat, one.gradient = self.flat[member : member + 1], self.gradient[member : member + 1]
        one._weights = {part: weight.detach()[member : member + 1].requires_grad_() for part, weight in self._weights.items()}
        one._gradients = [gradient[member : member + 1] for gradient in self._gradients]
        return one

    def backward(self, loss: torch.Tensor) -> None:
        """Write the gradient of `loss` into `gradient`."""
        found = torch.autograd.grad(loss, list(self._weights.values()), allow_unused=True, materialize_grads=True)
        torch._foreach_copy_(self._gradients, list(found))

    def _add(self, part: str, start: int, shape: tuple[int, ...]) -> int:
        """A leaf that shares its memory with `flat`."""
        size = torch.Size(shape).numel()
        leaf = self.flat[:, start : start + size].view(self.members, *shape).detach().requires_grad_()
        self._weights[part] = leaf
        self._gradients.append(self.gradient[:, start : start + size].view(self.members, *shape))
        return start + size

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """(M, T) -> (M, T, D)."""
        return _rows(self._weights["embedding"], tokens)

    def block(self, layer: int, x: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """One transformer layer: (M, T, D) -> (M, T, D). `attend(layer, q, k, v)` takes (M, T, heads, width) each."""
        shape, w = self.shape, self._weights
        members, count = x.shape[:2]
        projected = self._linear(f"{layer}.qkv", self._norm(f"{layer}.norm1", x))
        heads = projected.view(members, count, shape.heads + 2 * shape.key_value_heads, shape.head_width)
        cut = shape.heads + shape.key_value_heads
        cos, sin = self._cos[positions][:, :, None], self._sin[positions][:, :, None]
        turned = heads[:, :, :cut]
        half = shape.head_width // 2
        turned = turned * cos + torch.cat([turned[..., half:], turned[..., :half]], -1) * sin
        attended = attend(layer, turned[:, :, : shape.heads], turned[:, :, shape.heads :], heads[:, :, cut:])
        x = x + torch.bmm(attended, w[f"{layer}.out"].mT)
        gate, up = self._linear(f"{layer}.gate_up", self._norm(f"{layer}.norm2", x)).chunk(2, -1)
        return x + torch.bmm(F.silu(gate) * up, w[f"{layer}.down"].mT)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(M, C, D) -> (M, C, V)."""
        return torch.bmm(self._norm("norm", hidden), self._weights["embedding"].mT)

    def values(self, hidden: torch.Tensor) -> torch.Tensor:
        """(M, C, D) -> (M, C): the value heads."""
        normed = self._norm("norm", hidden)
        return (torch.bmm(normed, self._weights["critic.weight"].mT) + self._weights["critic.bias"][:, None])[..., 0]

    def weights_of(self, member: int) -> dict[str, torch.Tensor]:
        """One member's weights under Hugging Face's names."""
        found: dict[str, torch.Tensor] = {}
        for part, names in _parts(self.shape).items():
            whole = self._weights[part][member].detach()
            sizes = _sizes(self.shape, part, len(names), whole.shape[0])
            found.update(zip(names, torch.split(whole, sizes), strict=True))
        return found

    def _linear(self, part: str, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, self._weights[part].mT)

    def _norm(self, part: str, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (self.shape.width,), None, self.shape.epsilon) * self._weights[part][:, None]


def _parts(shape: Shape) -> dict[str, list[str]]:
    """Stacked weight -> the names it holds one after another: what is multiplied together lies together."""
    parts = {"embedding": ["model.embed_tokens.weight"]}
    for i in range(shape.layers):
        at = f"model.layers.{i}."
        parts[f"{i}.norm1"] = [f"{at}input_layernorm.weight"]
        parts[f"{i}.qkv"] = [f"{at}self_attn.{name}_proj.weight" for name in "qkv"]
        parts[f"{i}.out"] = [f"{at}self_attn.o_proj.weight"]
        parts[f"{i}.norm2"] = [f"{at}post_attention_layernorm.weight"]
        parts[f"{i}.gate_up"] = [f"{at}mlp.{name}_proj.weight" for name in ("gate", "up")]
        parts[f"{i}.down"] = [f"{at}mlp.down_proj.weight"]
    parts["norm"] = ["model.norm.weight"]
    return parts


def _sizes(shape: Shape, part: str, names: int, rows: int) -> list[int]:
    if part.endswith("qkv"):
        small = shape.key_value_heads * shape.head_width
        return [shape.heads * shape.head_width, small, small]
    return [rows // names] * names


def _frequencies(shape: Shape) -> torch.Tensor:
    return 1.0 / shape.theta ** (torch.arange(0, shape.head_width, 2).float() / shape.head_width)


def _rows(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """table (M, V, D), indices (M, T) -> (M, T, D)."""
    return table[torch.arange(table.shape[0])[:, None], indices]
