"""config.json in the words of mlx-lm's model modules, which read the forms of transformers 4, and some settings by other names.

What a module would pass over although it changes the model's numbers is refused: that would be the worst outcome.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from waggle.core.message import Message
from waggle.models.shared.configuration.model_config import ANOTHER, NotOnFastPathError

FULL, WINDOW = "full_attention", "sliding_attention"  # types of layers
# Settings that a module must know unless they have this value.
NEUTRAL: Mapping[str, Any] = {
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "partial_rotary_factor": 1.0,
    "rope_scaling": None,
    "scale_attn_by_inverse_layer_idx": False,
    "logits_scaling": 1.0,
    "logit_scale": 1.0,
    "residual_multiplier": 1.0,
    "embedding_multiplier": 1.0,
    "use_bidirectional_attention": False,
    "alibi": False,
    "clip_qkv": None,
}
ROPE_SETTINGS = ("rope_scaling", "partial_rotary_factor")  # some modules read them where transformers 5 writes them
# The activation of a module's feed-forward layers, where it is another than SiLU and no setting changes it.
ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "gemma": ("gelu", "gelu_pytorch_tanh"),
    "gemma2": ("gelu", "gelu_pytorch_tanh"),
    "gemma3": ("gelu_pytorch_tanh",),
    "gemma3_text": ("gelu_pytorch_tanh",),
    "gemma3n": ("gelu_pytorch_tanh",),
    "gemma4": ("gelu_pytorch_tanh",),
    "gemma4_text": ("gelu_pytorch_tanh",),
    "recurrent_gemma": ("gelu_pytorch_tanh",),
    "phi": ("gelu_new",),
    "gpt2": ("gelu_new",),
    "gptj": ("gelu_new",),
    "gpt_bigcode": ("gelu_pytorch_tanh",),
    "gpt_neox": ("gelu", "gelu_new"),
    "starcoder2": ("gelu_pytorch_tanh",),
    "nemotron": ("relu2",),
    "apertus": ("xielu",),
    "bitnet": ("relu2",),
}
SILU = ("silu", "swish")
ACTIVATION_NAMES = ("hidden_act", "hidden_activation", "activation_function")
HEAD_WIDTH_OF_ITS_OWN = ("gemma", "qwen3")  # kinds whose heads' width is not that of the model divided by their number


class NotInMlxLmError(NotOnFastPathError):
    """A model that mlx-lm does not know, or would compute wrongly."""


def module_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model as its module reads them. Raises NotInMlxLmError, and TypeError for settings of another form."""
    kind = table["model_type"]
    nested = table.get("text_config")
    if isinstance(nested, dict):
        text = module_settings({"model_type": kind.removesuffix("_text"), **nested})
        return {**table, "text_config": text}
    settings: dict[str, Any] = {name: _decoded(value) for name, value in table.items()}
    _spread_rope(settings)
    if isinstance(types := settings.get("layer_types"), list):
        settings |= _patterns(kind, types)
    if settings.get("num_attention_heads") and not kind.startswith(HEAD_WIDTH_OF_ITS_OWN) and "hidden_size" in settings:
        settings.setdefault("head_dim", settings["hidden_size"] // settings["num_attention_heads"])
    if kind in OF_KIND:
        settings |= {name: value for name, value in OF_KIND[kind](settings).items() if settings.get(name) is None}
    return RESHAPED[kind](settings) if kind in RESHAPED else settings


def require_heeded(kind: str, module: str, settings: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Raise NotInMlxLmError for a setting that changes the numbers and is not among a module's `fields`."""
    for name, neutral in NEUTRAL.items():
        value = settings.get(name)
        if name in ROPE_SETTINGS and "rope_parameters" in fields:
            continue
        if name not in fields and value is not None and value != neutral and (kind, name) not in FIXED:
            raise NotInMlxLmError(Message("mlx-lm passes over %1 in models of type %2.", name, kind), ANOTHER)
    for name in ACTIVATION_NAMES:
        if name in fields or settings.get(name) is None:
            continue
        if settings[name] not in ACTIVATIONS.get(module, SILU):
            raise NotInMlxLmError(
                Message("mlx-lm does not know the activation %1 in models of type %2.", settings[name], kind), ANOTHER
            )


def heeds_windows(kind: str) -> bool:
    """Whether the module of a kind has sliding windows of its own."""
    return kind in OWN_WINDOWS


def windows(table: Mapping[str, Any]) -> list[int | None]:
    """The sliding window of each layer in tokens, None for layers without one, of kinds whose module passes over them.

    Empty for all others.
    """
    kind, window, layers = str(table.get("model_type")), table.get("sliding_window"), table.get("num_hidden_layers", 0)
    if kind not in WINDOWED or not window:
        return []
    types = table.get("layer_types")
    if isinstance(types, list):
        return [window if each == WINDOW else None for each in types]
    return [window if WINDOWED[kind](table, layer) else None for layer in range(layers)]


def _in_all(table: Mapping[str, Any], layer: int) -> bool:
    return True


def _of_qwen2(table: Mapping[str, Any], layer: int) -> bool:
    return bool(table.get("use_sliding_window")) and layer >= (table.get("max_window_layers") or 28)


# Whether a layer has the window, by kind, if there are no `layer_types`.
WINDOWED: Mapping[str, Callable[[Mapping[str, Any], int], bool]] = {
    "mistral": _in_all,
    "ministral": _in_all,
    "phi3": _in_all,
    "starcoder2": _in_all,
    "gemma2": lambda table, layer: layer % 2 == 0,
    "qwen2": _of_qwen2,
    "qwen3": _of_qwen2,
    "qwen3_moe": _of_qwen2,
    "mixtral": _in_all,
}


def _decoded(value: Any) -> Any:
    """A value without transformers' form of infinity."""
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if isinstance(value, dict):
        return float(value["__float__"]) if value.keys() == {"__float__"} else {k: _decoded(v) for k, v in value.items()}
    return value


def _spread_rope(settings: dict[str, Any]) -> None:
    """Rotary embeddings in the form of transformers 4: `rope_theta`, `rope_scaling`, and `rope_local_base_freq` of windows."""
    rope = settings.get("rope_parameters")
    if not isinstance(rope, dict):
        return
    if isinstance(local := rope.get(WINDOW), dict) and "rope_theta" in local:
        settings.setdefault("rope_local_base_freq", local["rope_theta"])
    rope = rope[FULL] if isinstance(rope.get(FULL), dict) else rope
    for name in ("rope_theta", "partial_rotary_factor"):
        if name in rope and settings.get(name) is None:
            settings[name] = rope[name]
    if rope.get("rope_type", "default") != "default" and settings.get("rope_scaling") is None:
        settings["rope_scaling"] = rope


def _patterns(kind: str, types: list[Any]) -> dict[str, Any]:
    """Types of layers as the period that some modules know instead. Raises NotInMlxLmError if they have no period."""
    name = {"cohere2": "sliding_window_pattern", "gemma3_text": "sliding_window_pattern", "gemma3": "sliding_window_pattern",
            "qwen3_next": "full_attention_interval", "qwen3_5": "full_attention_interval",
            "qwen3_5_text": "full_attention_interval", "qwen3_5_moe": "full_attention_interval",
            "qwen3_5_moe_text": "full_attention_interval"}.get(kind)  # fmt: skip
    if kind == "exaone4":
        return {"sliding_window_pattern": "".join("L" if each == WINDOW else "G" for each in types)}
    if name is None:
        return {}
    period = types.index(FULL) + 1 if FULL in types else len(types) + 1
    if any((each == FULL) != ((layer + 1) % period == 0) for layer, each in enumerate(types)):
        raise NotInMlxLmError("mlx-lm does not know this order of layers.", ANOTHER)
    return {name: period}


def _of_gpt_neox(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rotary_emb_base": settings.get("rope_theta", 10_000),
        "rotary_pct": settings.get("partial_rotary_factor", 0.25),
    }


# Settings that transformers 5 leaves out or calls otherwise, by kind.
OF_KIND: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "apertus": lambda settings: {"mlp_bias": False, "post_norm": False, "qk_norm": True},
    "exaone4": lambda settings: {"rope_scaling": None},
    "granitemoehybrid": lambda settings: {"position_embedding_type": "nope"},
    "gpt2": lambda settings: {"n_ctx": settings["n_positions"]},
    "gpt_neox": _of_gpt_neox,
    "lfm2": lambda settings: {"block_dim": settings["hidden_size"]},
    "mamba2": lambda settings: {"intermediate_size": settings["num_heads"] * settings["head_dim"]},
    "qwen3_moe": lambda settings: {"num_experts": settings.get("num_local_experts")},
}


def _without_types(settings: dict[str, Any]) -> dict[str, Any]:
    """For the module of Llama, which must have a layer without a window: Waggle puts the windows in, see `windows`."""
    return settings | {"layer_types": None, "sliding_window": None}


def _of_granite_hybrid(settings: dict[str, Any]) -> dict[str, Any]:
    words = {FULL: "attention", "linear_attention": "mamba"}
    return settings | {"layer_types": [words.get(each, each) for each in settings["layer_types"]]}


RESHAPED: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "mistral": _without_types,
    "ministral": _without_types,
    "granitemoehybrid": _of_granite_hybrid,
    "gemma3n_text": lambda settings: {"model_type": "gemma3n", "text_config": settings},
}
OWN_WINDOWS = frozenset(  # kinds whose module computes their windows
    ("afmoe", "baichuan_m1", "cohere2", "deepseek_v41", "deepseek_v41_text", "exaone4", "exaone_moe", "gemma3", "gemma3_text",
     "gemma3n", "gemma3n_text", "gemma4", "gemma4_text", "gemma4_unified", "gpt_oss", "iquestloopcoder", "laguna", "mellum",
     "mimo_v2_flash", "ministral3", "mistral3", "muse_glimmer", "muse_spark", "olmo3", "plamo2", "plamo3", "recurrent_gemma",
     "spark2_5", "step3p5")
)  # fmt: skip
# Settings that a module knows without a field of its own.
FIXED = frozenset((("gpt_neox", "partial_rotary_factor"), ("gemma3n_text", "final_logit_softcapping")))
