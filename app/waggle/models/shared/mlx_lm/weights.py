"""Weights of a few kinds in the names and forms that mlx-lm's `sanitize` expects, where transformers writes others today."""

from collections.abc import Callable, Mapping
from typing import Any

import mlx.core as mx

from waggle.models.shared.configuration.model_config import EMBEDDING, HEAD

Arrays = dict[str, mx.array]


def prepared(table: Mapping[str, Any], weights: Mapping[str, mx.array]) -> Arrays:
    """Weights of a file for `sanitize` of the module of a configuration."""
    kind = table["model_type"]
    if table.get("tie_word_embeddings") is True and HEAD in weights and EMBEDDING not in weights and kind not in PREPARED:
        return {**weights, EMBEDDING: weights[HEAD]}  # tied weights may be saved under either name
    return PREPARED[kind](weights) if kind in PREPARED else dict(weights)


def _of_gpt2(weights: Mapping[str, mx.array]) -> Arrays:
    """Without the prefix of fine-tuned models, with which no matrix would be transposed."""
    return {name.removeprefix("transformer."): weight for name, weight in weights.items()}


def _of_gemma3n_text(weights: Mapping[str, mx.array]) -> Arrays:
    """As the text part of a model for texts and pictures."""
    if any(name.startswith("model.language_model.") for name in weights):
        return dict(weights)
    return {f"model.language_model.{name.removeprefix('model.')}": weight for name, weight in weights.items()}


def _of_gpt_oss(weights: Mapping[str, mx.array]) -> Arrays:
    """Plain experts, of which `sanitize` knows the packed form only: (E, in, out) with gate and up in turn."""
    plain: Arrays = {}
    for name, weight in weights.items():
        if name.endswith("experts.gate_up_proj"):
            experts = weight.swapaxes(-1, -2)
            plain[name.replace("gate_up_proj", "gate_proj.weight")] = experts[..., ::2, :]
            plain[name.replace("gate_up_proj", "up_proj.weight")] = experts[..., 1::2, :]
        elif name.endswith("experts.down_proj"):
            plain[f"{name}.weight"] = weight.swapaxes(-1, -2)
        elif name.endswith("experts.gate_up_proj_bias") and name.removesuffix("_bias") in weights:
            plain[name.replace("gate_up_proj_bias", "gate_proj.bias")] = weight[..., ::2]
            plain[name.replace("gate_up_proj_bias", "up_proj.bias")] = weight[..., 1::2]
        elif name.endswith("experts.down_proj_bias") and name.removesuffix("_bias") in weights:
            plain[name.replace("down_proj_bias", "down_proj.bias")] = weight
        else:
            plain[name] = weight
    return plain


PREPARED: Mapping[str, Callable[[Mapping[str, mx.array]], Arrays]] = {
    "gpt2": _of_gpt2,
    "gemma3n_text": _of_gemma3n_text,
    "gpt_oss": _of_gpt_oss,
}
