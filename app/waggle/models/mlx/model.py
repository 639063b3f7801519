"""The forward pass of the fast path's kinds in MLX over packed tokens, with the weights of a transformers folder.

A pass is a pure function of the weights, so that gradients and recomputation need no modules. Activations are (T, D), as in
models/torch/model.py. mlx-lm is only the reference in tests: importing it loads torch if that is installed, and lowers this
process's limit of open files.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.nn.layers.activations import gelu_approx

from waggle.models.mlx import fused_head
from waggle.models.mlx.memory import memory_errors
from waggle.models.shared import lora
from waggle.models.shared.configuration import model_config
from waggle.models.shared.configuration.model_config import EMBEDDING, HEAD, NORM, ModelConfig
from waggle.models.shared.mlx_arrays import as_mlx
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.shared.weight_files import read_model

Weights = dict[str, mx.array]
Attend = Callable[[int, mx.array, mx.array, mx.array], mx.array]


class MlxModel:
    """One language model without its weights. Raises ModelError for a folder without a supported model."""

    def __init__(self, folder: Path, training: TrainingMode) -> None:
        self.configuration = model_config.read(folder)
        self.precision: mx.Dtype = getattr(mx, training.precision)  # of products and activations
        self.recompute = training.recompute
        self.loaded = _load(folder, self.configuration, getattr(mx, training.stored_precision))
        self.head = EMBEDDING if self.configuration.tie_word_embeddings else HEAD
        shape = self.configuration
        self._frequencies = {rope: mx.array(rope.frequencies(shape.head_dim)) for rope in set(shape.ropes)}
        scale = mx.array(math.sqrt(shape.hidden_size), self.precision)  # rounded, as it was trained
        self._embedding_scale = scale if shape.kind.scales_embeddings else None

    @property
    def hidden_size(self) -> int:
        return self.configuration.hidden_size

    @property
    def bytes_per_token(self) -> int:
        """About the bytes that one token keeps from the forward pass for the backward pass."""
        return self.configuration.bytes_per_token(self.precision.size, recompute=self.recompute)

    @property
    def bytes_per_layer(self) -> int:
        """About the bytes that one token keeps in one layer."""
        return self.configuration.bytes_per_layer(self.precision.size)

    def first_adapters(self) -> Weights:
        """The LoRA adapters of all linear layers before training: B is 0, so they have no effect."""
        adapters: Weights = {}
        for name, weight in self.loaded.items():
            module = name.removesuffix(".weight")
            if module.split(".")[-1] in lora.TARGETS:
                out, width = weight.shape
                first = (mx.array(lora.first_a(module, width)), mx.zeros((out, lora.RANK)))
                adapters |= dict(zip(lora.names(module), first, strict=True))
        return adapters

    def working_weights(self, weights: Mapping[str, mx.array]) -> Weights:
        """The weights in the precision of the products."""
        return {name: weight.astype(self.precision) for name, weight in weights.items()}

    def hidden(
        self, weights: Weights, tokens: mx.array, positions: mx.array, attend: Attend, *, learning: bool = False
    ) -> mx.array:
        """Tokens (T,) -> hidden states (T, D) of the last layer.

        `attend(layer, q, k, v)` takes (T, heads, width) each and returns (T, heads * width).
        """
        shape, turns = self.configuration, {rope: self._turns(positions, turn) for rope, turn in self._frequencies.items()}
        x = weights[EMBEDDING][tokens]
        if self._embedding_scale is not None:
            x = x * self._embedding_scale
        layers = _by_layer(weights, shape.num_hidden_layers)
        for number, (parts, rope) in enumerate(zip(layers, shape.ropes, strict=True)):
            layer = partial(_layer, shape, turns[rope], partial(attend, number))
            x = mx.checkpoint(layer)(parts, x) if learning and self.recompute else layer(parts, x)
        return x

    def final_norm(self, weights: Weights, hidden: mx.array) -> mx.array:
        """Hidden states (N, D) after the final norm, as head and critic read them."""
        return _norm(self.configuration, weights[NORM], hidden)

    def logits(self, weights: Weights, hidden: mx.array, temperature: float) -> mx.array:
        """Hidden states (N, D) -> logits (N, V) in fp32, divided by the temperature."""
        return fused_head.logits(self.final_norm(weights, hidden), weights[self.head], temperature)

    def _turns(self, positions: mx.array, frequencies: mx.array) -> tuple[mx.array, mx.array]:
        """Rotary embeddings: cos and sin (T, 1, head width) of positions; the first half of sin is negated."""
        angles = positions[:, None, None] * frequencies
        cos, sin = mx.cos(angles), mx.sin(angles)
        return mx.concatenate([cos, cos], -1).astype(self.precision), mx.concatenate([-sin, sin], -1).astype(self.precision)


def _layer(
    shape: ModelConfig, turns: tuple[mx.array, mx.array], attend: Callable[..., mx.array], parts: Weights, x: mx.array
) -> mx.array:
    """One transformer layer; `parts` are its weights."""
    norms = [parts[f"{name}.weight"] for name in shape.kind.norms]
    before, after = norms[:2], norms[2:] or (None, None)  # attention and feed-forward layers
    normed = _norm(shape, before[0], x)
    outputs = _each(parts, "self_attn.", shape.kind.qkv, normed, shape.qkv_sizes)
    q, k, v = (output.reshape(len(x), -1, shape.head_dim) for output in outputs)
    if "self_attn.q_norm.weight" in parts:
        q = _norm(shape, parts["self_attn.q_norm.weight"], q)
        k = _norm(shape, parts["self_attn.k_norm.weight"], k)
    if shape.query_scale != 1.0:
        q = q * shape.query_scale
    attended = _linear(parts, "self_attn.o_proj", attend(_rotate(q, turns), _rotate(k, turns), v))
    x = x + (attended if after[0] is None else _norm(shape, after[0], attended))
    normed = _norm(shape, before[1], x)
    gate, up = _each(parts, "mlp.", shape.kind.gate_up, normed, (shape.intermediate_size,) * 2)
    activated = gate * mx.sigmoid(gate) if shape.hidden_act == "silu" else gelu_approx(gate)
    output = _linear(parts, "mlp.down_proj", activated * up)
    return x + (output if after[1] is None else _norm(shape, after[1], output))


def _each(parts: Weights, prefix: str, names: Sequence[str], x: mx.array, sizes: Sequence[int]) -> list[mx.array]:
    """The outputs (T, size) of linear layers, which are one layer in the files of some kinds."""
    outputs = [_linear(parts, f"{prefix}{name}", x) for name in names]
    return outputs if len(outputs) > 1 else list(mx.split(outputs[0], np.cumsum(sizes)[:-1].tolist(), -1))


def _linear(parts: Weights, name: str, x: mx.array) -> mx.array:
    """(T, in) -> (T, out), with bias and adapter if the layer has them."""
    bias, (a_name, b_name) = parts.get(f"{name}.bias"), lora.names(name)
    weight = parts[f"{name}.weight"]
    output = x @ weight.T if bias is None else mx.addmm(bias, x, weight.T)
    if a_name in parts:
        output = output + lora.SCALE * ((x @ parts[a_name].T) @ parts[b_name].T)
    return output


def _rotate(heads: mx.array, turns: tuple[mx.array, mx.array]) -> mx.array:
    """Rotate queries or keys (T, heads, width)."""
    cos, sin = turns
    first, second = mx.split(heads, 2, -1)
    return heads * cos + mx.concatenate([second, first], -1) * sin


def _norm(shape: ModelConfig, weight: mx.array, x: mx.array) -> mx.array:
    return mx.fast.rms_norm(x, 1.0 + weight if shape.kind.adds_one else weight, shape.rms_norm_eps)


def _by_layer(weights: Weights, count: int) -> list[Weights]:
    """The weights of each layer under their names within it."""
    layers: list[Weights] = [{} for _ in range(count)]
    for name, weight in weights.items():
        if name.startswith("model.layers."):
            number, _, part = name.removeprefix("model.layers.").partition(".")
            layers[int(number)][part] = weight
    return layers


def _load(folder: Path, shape: ModelConfig, precision: mx.Dtype) -> Weights:
    """Load all weights, one by one, so that the model never exists in two precisions. Raises ModelError and MemoryShort."""
    weights: Weights = {}
    for name, weight in read_model(folder, shape.weights()):
        with memory_errors():
            weights[name] = as_mlx(weight).astype(precision)
            mx.eval(weights[name])
    return weights
