"""A model's configuration for the fast path: config.json of Llama, Mistral, Qwen2, Qwen3, Phi 3 and Gemma 3.

Raises `NotOnFastPathError` for what the backends would compute wrongly; `generic_config` reads those that transformers computes.
"""

import json
import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.text.person_text import decoded
from waggle.models.shared import model_files
from waggle.models.shared.configuration import quantised, sliding_windows
from waggle.models.shared.configuration.model_kinds import FEED_FORWARD, KINDS, PLAIN, ModelKind

ARCHITECTURES = tuple(KINDS)
ROPES = ("default", "linear", "llama3")
UNCOMPUTED = (
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "use_bidirectional_attention",
)  # settings that Gemma 3 may have
EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
PRECISIONS = ("float32", "bfloat16", "float16")
ANOTHER = Message("Choose another model.")  # downloading again would not help
LARGEST_SIZE, LARGEST_NUMBER, MOST_LAYERS = 1 << 24, 1 << 48, 1000  # more than any model has
Positive = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_SIZE)]
Layers = Annotated[int, msgspec.Meta(ge=1, le=MOST_LAYERS)]
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim")
LARGEST_TABLE = 1 << 25  # bytes of a JSON file


class NotOnFastPathError(ModelError):
    """A model that Waggle's own forward pass would compute wrongly. transformers may compute it."""


class RopeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Rotary embeddings: `rope_parameters` since transformers 5, `rope_scaling` and `rope_theta` before."""

    rope_type: str = "default"
    rope_theta: float = 10_000.0
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: float = 2048.0
    partial_rotary_factor: float = 1.0

    def plain_frequencies(self, width: int) -> NDArray[np.float32]:
        """(width / 2,): the frequencies without scaling for longer texts."""
        steps = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        return np.asarray(1.0 / self.rope_theta**steps, np.float32)

    def frequencies(self, width: int) -> NDArray[np.float32]:
        """(width / 2,): the angle by which each pair of a head of this width rotates per position."""
        plain = self.plain_frequencies(width)
        if self.rope_type == "linear":
            plain = plain / self.factor
        if self.rope_type == "llama3":
            plain = scale_llama3(self, plain)
        return plain.astype(np.float32)


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The fields that the forward pass needs. `dtype` is the precision of the weights on disk."""

    model_type: str
    vocab_size: Positive
    hidden_size: Positive
    intermediate_size: Positive
    num_hidden_layers: Layers
    num_attention_heads: Positive
    num_key_value_heads: Positive
    head_dim: Positive
    rms_norm_eps: float = 1e-6
    hidden_act: str = "silu"
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    max_position_embeddings: Positive = 2048
    dtype: str = "float32"
    rope: RopeConfig = RopeConfig()
    windows: tuple[Positive | None, ...] = ()  # of each layer: see `sliding_windows`; empty if no layer has any
    local_rope: RopeConfig | None = None  # of layers with a window, if it is another
    query_pre_attn_scalar: Annotated[float, msgspec.Meta(gt=0)] | None = None  # by whose root scores are divided, not by head_dim

    @cached_property
    def kind(self) -> ModelKind:
        return KINDS.get(self.model_type, PLAIN)

    def windows_within(self, longest: int) -> tuple[int | None, ...]:
        """For each layer, how many tokens a token sees, itself included. None if that is all of a text of `longest` tokens."""
        windows = self.windows or (None,) * self.num_hidden_layers
        return tuple(None if window is None or window >= longest else window for window in windows)

    @cached_property
    def ropes(self) -> tuple[RopeConfig, ...]:
        """The rotary embeddings of each layer."""
        windows = self.windows or (None,) * self.num_hidden_layers
        return tuple(self.rope if window is None else self.local_rope or self.rope for window in windows)

    @cached_property
    def query_scale(self) -> float:
        """What queries are multiplied with, so that scores can be divided by the root of a head's width."""
        return 1.0 if self.query_pre_attn_scalar is None else math.sqrt(self.head_dim / self.query_pre_attn_scalar)

    @cached_property
    def qkv_sizes(self) -> tuple[int, int, int]:
        """The numbers in queries, keys and values of a token."""
        keys = self.num_key_value_heads * self.head_dim
        return self.num_attention_heads * self.head_dim, keys, keys

    def bytes_per_token(self, size: int, *, recompute: bool) -> int:
        """About the bytes that one token keeps from the forward for the backward pass, at `size` bytes per number."""
        layer, count = self.bytes_per_layer(size), self.num_hidden_layers
        return size * count * self.hidden_size + layer if recompute else count * layer

    def bytes_per_layer(self, size: int) -> int:
        """About the bytes that one token keeps in one layer, at `size` bytes per number; a norm keeps what comes in and out."""
        return size * ((6 + 2 * len(self.kind.norms)) * self.hidden_size + 3 * self.intermediate_size)

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the model's weights by Hugging Face name."""
        width, inner, kind = self.hidden_size, self.intermediate_size, self.kind
        layer: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(kind.norms, (width,)),
            **_linear_layers("self_attn.", kind.qkv, self.qkv_sizes, width),
            "self_attn.o_proj": (width, self.qkv_sizes[0]),
            **_linear_layers("mlp.", kind.gate_up, (inner, inner), width),
            "mlp.down_proj": (width, inner),
        }
        if kind.normalises_heads:
            layer |= {"self_attn.q_norm": (self.head_dim,), "self_attn.k_norm": (self.head_dim,)}
        layer = {f"{name}.weight": size for name, size in layer.items()}
        layer |= {f"{name}.bias": layer[f"{name}.weight"][:1] for name in self._biased()}
        shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (self.vocab_size, width), NORM: (width,)}
        shapes |= {f"model.layers.{i}.{name}": size for i in range(self.num_hidden_layers) for name, size in layer.items()}
        if not self.tie_word_embeddings:
            shapes[HEAD] = (self.vocab_size, width)
        return shapes

    def _biased(self) -> Iterator[str]:
        """The linear layers with a bias."""
        for name in self.kind.biased:
            feeds = name in FEED_FORWARD
            if self.kind.has_biases or (self.mlp_bias if feeds else self.attention_bias):
                yield f"mlp.{name}" if feeds else f"self_attn.{name}"

    @property
    def number_of_weights(self) -> int:
        return sum(math.prod(shape) for shape in self.weights().values())

    def frequencies(self) -> NDArray[np.float32]:
        """(head_dim / 2,): the angle by which each pair of a head rotates per position, in layers that see the whole text."""
        return self.rope.frequencies(self.head_dim)


def _linear_layers(prefix: str, names: tuple[str, ...], sizes: tuple[int, ...], width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of linear layers that give outputs of these sizes, each of them or all together."""
    rows = sizes if len(names) > 1 else (sum(sizes),)
    return {f"{prefix}{name}": (size, width) for name, size in zip(names, rows, strict=True)}


def read(folder: Path) -> ModelConfig:
    """Read config.json of a folder. Raises ModelError if it is missing, malformed, or would be computed wrongly."""
    raw = table_of(folder)
    if raw.get("model_type") not in ARCHITECTURES:
        raise NotOnFastPathError(
            Message("Waggle cannot train models of the type %1.", raw.get("model_type")),
            Message("It knows %1.", ", ".join(ARCHITECTURES)),
        )
    try:
        configuration = msgspec.convert(_complete(raw), ModelConfig)
        _check(folder, configuration, raw)
    except (msgspec.ValidationError, TypeError, AttributeError, KeyError, ArithmeticError) as error:  # fields of the wrong form
        raise _unreadable(folder, error) from error
    _require_computable(folder, configuration)
    return configuration


def table_of(folder: Path) -> dict[str, Any]:
    """The object in config.json of a model. Raises ModelError."""
    path = folder / "config.json"
    if not path.is_file():
        raise ModelError(
            Message("There is no model in %1.", folder), "Check `model.folder` in the settings, or remove it to use the starter."
        )
    table = table_in(path)
    _require_plausible(folder, table)
    return table


def _require_plausible(folder: Path, table: dict[str, Any]) -> None:
    """Raise ModelError for numbers that no model has: transformers makes lists as long as some of them."""
    waiting: list[tuple[str, Any]] = list(table.items())
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += ((name, part) for part in value)
        elif isinstance(value, int) and abs(value) > _largest(name):
            number = f"{value:.3g}" if abs(value) < 10**300 else "a number without end"
            raise ModelError(
                Message("The model in %1 cannot be read: its config.json says that %2 is %3.", folder, name, number), ANOTHER
            )


def _largest(name: str) -> int:
    """The largest plausible value of a setting."""
    if name.endswith(("layer", "layers")):
        return MOST_LAYERS
    return LARGEST_SIZE if name in SIZES else LARGEST_NUMBER


def table_in(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a model. Raises ModelError."""
    try:
        table = json.loads(decoded(model_files.content_of(path, LARGEST_TABLE)))
        json.dumps(table, ensure_ascii=False).encode()  # raises for lone surrogates
    except (OSError, ValueError, RecursionError) as error:
        raise model_files.unread(path, error) from error
    if not isinstance(table, dict):
        raise ModelError(Message("%1 holds no settings of a model.", path), "Copy or download the model again.")
    return table


def _complete(raw: dict[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of transformers for fields that older files omit."""
    kind = KINDS[raw["model_type"]]
    present = {name: value for name, value in {**kind.defaults, **raw}.items() if value is not None}
    heads, length = present.get("num_attention_heads", 0), present.get("max_position_embeddings", 32_768)
    rope = {
        "rope_theta": present.get("rope_theta", 10_000.0),
        "original_max_position_embeddings": length,
        "partial_rotary_factor": present.get("partial_rotary_factor", 1.0),
    }
    own_length = {name: present[name] for name in ("original_max_position_embeddings",) if name in present}
    return {
        "max_position_embeddings": length,
        "num_key_value_heads": heads,
        "head_dim": present.get("hidden_size", 0) // max(1, heads),
        "dtype": present.get("torch_dtype", "float32"),
        **present,
        **(_of_gemma(present, rope) if present["model_type"] == "gemma3_text" else _of_others(present, rope, own_length)),
        "windows": sliding_windows.of_layers(kind, present),
    }


def _of_others(present: dict[str, Any], usual: dict[str, Any], own_length: dict[str, Any]) -> dict[str, Any]:
    """The fields that Gemma 3 has in another way. Of the old and the new name for rotary embeddings, the new is passed over."""
    changed = present.get("rope_scaling") or present.get("rope_parameters") or {}
    return {"rope": _standard(usual | changed | own_length), "local_rope": None, "query_pre_attn_scalar": None}


def _of_gemma(present: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """The same fields of Gemma 3. Its rotary embeddings are nested by type of layer since transformers 5."""
    nested = present.get("rope_parameters") or {}
    if not {sliding_windows.FULL, sliding_windows.SLIDING}.issuperset(nested):
        raise NotOnFastPathError("Waggle does not know these rotary embeddings in models of type gemma3_text.", ANOTHER)
    far, near = (nested.get(name) or {} for name in (sliding_windows.FULL, sliding_windows.SLIDING))
    return {
        "hidden_act": present["hidden_activation"],
        "rope": _standard(usual | {"rope_theta": present.get("rope_theta", 1e6)} | far | present.get("rope_scaling", {})),
        "local_rope": _standard(usual | {"rope_theta": present.get("rope_local_base_freq", 1e4)} | near),
    }


def _standard(rope: dict[str, Any]) -> dict[str, Any]:
    """The settings of rotary embeddings that have a value, with the name of their type since transformers 5."""
    return {"rope_type": rope.get("type", "default"), **{name: value for name, value in rope.items() if value is not None}}


def _check(folder: Path, configuration: ModelConfig, raw: dict[str, Any]) -> None:
    """Raise ModelError for settings that the backends would compute wrongly."""
    quantised.require_plain(folder, raw)
    for rope in set(configuration.ropes):
        if rope.rope_type not in ROPES or rope.partial_rotary_factor != 1.0:
            raise NotOnFastPathError(
                Message("Waggle does not know %1 rope.", rope.rope_type), Message("It knows %1.", ", ".join(ROPES))
            )
    if not sliding_windows.are_known(configuration.kind, raw, configuration.windows):
        raise NotOnFastPathError(
            Message("Waggle does not know these types of layers in models of type %1.", raw["model_type"]), ANOTHER
        )
    if any(raw.get(name) for name in UNCOMPUTED):
        raise NotOnFastPathError("Waggle does not know capped scores and attention both ways.", ANOTHER)
    if configuration.hidden_act != configuration.kind.activation:
        raise NotOnFastPathError(
            Message("Waggle does not know the activation %1.", configuration.hidden_act), "Choose a plain model."
        )
    if configuration.dtype not in PRECISIONS:
        raise ModelError(
            Message("Waggle does not know weights in %1.", configuration.dtype), Message("It knows %1.", ", ".join(PRECISIONS))
        )


def _require_computable(folder: Path, configuration: ModelConfig) -> None:
    """Raise ModelError for numbers that are valid one by one but not together."""
    if configuration.head_dim % 2 or configuration.num_attention_heads % configuration.num_key_value_heads:
        raise ModelError(Message("The heads of the model in %1 cannot be shared out.", folder), ANOTHER)
    if not (math.isfinite(configuration.rms_norm_eps) and configuration.rms_norm_eps >= 0.0):
        raise ModelError(Message("The layers of the model in %1 cannot be normalised.", folder), ANOTHER)
    if not (math.isfinite(configuration.query_scale) and configuration.query_scale > 0.0):
        raise ModelError(Message("The scores of the model in %1 cannot be scaled.", folder), ANOTHER)
    if not all(_turns(rope, configuration.head_dim) for rope in set(configuration.ropes)):
        raise ModelError(Message("The positions of the model in %1 cannot be turned.", folder), ANOTHER)


def _turns(rope: RopeConfig, width: int) -> bool:
    """Whether all rotary frequencies are finite and positive, as transformers would compute them."""
    if rope.rope_type == "llama3" and not 0.0 < rope.low_freq_factor < rope.high_freq_factor:
        return False
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            turns = rope.frequencies(width)
    except FloatingPointError:
        return False
    return bool(turns.min() > 0.0 and turns.max() < np.inf)  # false for NaN


def scale_llama3(rope: RopeConfig, plain: NDArray[np.float32]) -> NDArray[np.float32]:
    """Llama 3.1: divide low frequencies by `factor`, keep high ones, and interpolate between them."""
    turns = rope.original_max_position_embeddings * plain / (2 * math.pi)  # rotations within the original context
    share = np.clip((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0)
    blended: NDArray[np.float32] = (1.0 - share) * plain / rope.factor + share * plain
    return blended


def _unreadable(folder: Path, why: object) -> ModelError:
    return ModelError(Message("The model in %1 cannot be read: %2.", folder, why), "Copy or download it again.")
