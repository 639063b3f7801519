"""Corrections of modules of mlx-lm that compute a kind of model otherwise than transformers, and so than it was taught."""

import math
from collections.abc import Mapping
from typing import Any

import mlx.core as mx
from mlx.nn.layers.activations import gelu_approx

from waggle.models.shared.mlx_lm import modules as mlx_lm_modules


def correct(kind: str, module: Any, settings: Mapping[str, Any]) -> None:
    """Change a module in place."""
    if kind == "starcoder2" and settings.get("hidden_act", "gelu_pytorch_tanh") == "gelu_pytorch_tanh":
        _approximate_gelu(module)
    scaling = settings.get("rope_scaling")
    if isinstance(scaling, dict) and scaling.get("rope_type", scaling.get("type")) == "yarn" and scaling.get("truncate") is False:
        _blend_between_whole_numbers(module, settings, scaling)


def _approximate_gelu(module: Any) -> None:
    """StarCoder2 uses GELU in the form with tanh (arXiv 1606.08415); its module uses the exact one."""
    for layer in module.layers:
        usual = type(layer.mlp)

        class WithTanh(usual):  # type: ignore[misc, valid-type]
            def __call__(self, x: mx.array) -> mx.array:
                output: mx.array = self.c_proj(gelu_approx(self.c_fc(x)))
                return output

        layer.mlp.__class__ = WithTanh


def _blend_between_whole_numbers(module: Any, settings: Mapping[str, Any], scaling: Mapping[str, Any]) -> None:
    """YaRN (arXiv 2309.00071) as gpt-oss has it: its two bounds are not rounded, as mlx-lm's always are."""
    library = mlx_lm_modules.part("models.rope_utils")
    for rope in module.modules():
        if isinstance(rope, library.YarnRoPE):
            rope._freqs = _yarn(rope.dims, float(settings["rope_theta"]), scaling)


def _yarn(width: int, base: float, scaling: Mapping[str, Any]) -> mx.array:
    """(width / 2,): the wavelengths of a head divided by 2 pi."""
    factor, length = scaling["factor"], scaling["original_max_position_embeddings"]

    def pair(turns: float) -> float:
        return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(pair(scaling.get("beta_fast") or 32), 0), min(pair(scaling.get("beta_slow") or 1), width - 1)
    plain = base ** (mx.arange(0, width, 2, dtype=mx.float32) / width)
    scaled = mx.clip((mx.arange(width // 2, dtype=mx.float32) - low) / max(high - low, 0.001), 0, 1)
    blended: mx.array = 1.0 / (scaled / (factor * plain) + (1.0 - scaled) / plain)
    return blended
