"""A model's configuration for the fast path: config.json of Llama, Mistral, Qwen2, Qwen3 and Phi 3.

Raises `NotOnFastPathError` for what the backends would compute wrongly; `generic_config` reads those that transformers computes.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ModelError
from waggle.models.shared import model_files, quantised, sliding_windows

ARCHITECTURES = ("llama", "mistral", "phi3", "qwen2", "qwen3")  # their parity with transformers is tested
ROPES = ("default", "linear", "llama3")
QWEN2_BIASES = ("q_proj", "k_proj", "v_proj")  # whatever attention_bias says
BIASED = ("llama", "qwen3")  # kinds that heed attention_bias
FUSED = ("phi3",)  # kinds whose files have queries, keys and values in one weight, and gate and up in another
# What a kind means by a setting that is not there, if it is not what most kinds mean.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "llama": {"max_position_embeddings": 2048},
    "mistral": {"max_position_embeddings": 131_072, "num_key_value_heads": 8, "sliding_window": 4096},
    "phi3": {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
    "qwen2": {"sliding_window": 4096},
    "qwen3": {"head_dim": 128, "sliding_window": 4096},
}
EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
PRECISIONS = ("float32", "bfloat16", "float16")
ANOTHER = "Choose another model."  # downloading again would not help
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


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
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

    def windows_within(self, longest: int) -> tuple[int | None, ...]:
        """For each layer, how many tokens a token sees, itself included. None if that is all of a text of `longest` tokens."""
        windows = self.windows or (None,) * self.num_hidden_layers
        return tuple(None if window is None or window >= longest else window for window in windows)

    @property
    def qkv(self) -> tuple[str, ...]:
        """The linear layers of queries, keys and values."""
        return ("qkv_proj",) if self.model_type in FUSED else ("q_proj", "k_proj", "v_proj")

    @property
    def gate_up(self) -> tuple[str, ...]:
        """The two linear layers whose outputs the feed-forward layers multiply."""
        return ("gate_up_proj",) if self.model_type in FUSED else ("gate_proj", "up_proj")

    @property
    def qkv_sizes(self) -> tuple[int, int, int]:
        """The numbers in queries, keys and values of a token."""
        keys = self.num_key_value_heads * self.head_dim
        return self.num_attention_heads * self.head_dim, keys, keys

    def bytes_per_token(self, size: int, *, recompute: bool) -> int:
        """About the bytes that one token keeps from the forward for the backward pass, at `size` bytes per number."""
        layer, count = self.bytes_per_layer(size), self.num_hidden_layers
        return size * count * self.hidden_size + layer if recompute else count * layer

    def bytes_per_layer(self, size: int) -> int:
        """About the bytes that one token keeps in one layer, at `size` bytes per number."""
        return size * (10 * self.hidden_size + 3 * self.intermediate_size)

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the model's weights by Hugging Face name."""
        width, inner = self.hidden_size, self.intermediate_size
        layer: dict[str, tuple[int, ...]] = {
            "input_layernorm": (width,),
            **{f"self_attn.{name}": (size, width) for name, size in zip(self.qkv, self._rows_of(self.qkv_sizes), strict=True)},
            "self_attn.o_proj": (width, self.qkv_sizes[0]),
            "post_attention_layernorm": (width,),
            **{f"mlp.{name}": (size, width) for name, size in zip(self.gate_up, self._rows_of((inner, inner)), strict=True)},
            "mlp.down_proj": (width, inner),
        }
        if self.model_type == "qwen3":
            layer |= {"self_attn.q_norm": (self.head_dim,), "self_attn.k_norm": (self.head_dim,)}
        layer = {f"{name}.weight": size for name, size in layer.items()}
        layer |= {f"{name}.bias": layer[f"{name}.weight"][:1] for name in self._biased()}
        shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (self.vocab_size, width), NORM: (width,)}
        shapes |= {f"model.layers.{i}.{name}": size for i in range(self.num_hidden_layers) for name, size in layer.items()}
        if not self.tie_word_embeddings:
            shapes[HEAD] = (self.vocab_size, width)
        return shapes

    def _rows_of(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The rows of the weights that give outputs of these sizes."""
        return (sum(sizes),) if self.model_type in FUSED else sizes

    def _biased(self) -> Iterator[str]:
        """The linear layers with a bias."""
        has_biases = self.attention_bias and self.model_type in BIASED
        attention = ("q_proj", "k_proj", "v_proj", "o_proj") if has_biases else ()
        yield from (f"self_attn.{name}" for name in (QWEN2_BIASES if self.model_type == "qwen2" else attention))
        if self.mlp_bias and self.model_type == "llama":
            yield from (f"mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj"))

    @property
    def number_of_weights(self) -> int:
        return sum(math.prod(shape) for shape in self.weights().values())

    def plain_frequencies(self) -> NDArray[np.float32]:
        """(head_dim / 2,): the same without scaling for longer texts."""
        steps = np.arange(0, self.head_dim, 2, dtype=np.float32) / np.float32(self.head_dim)
        return np.asarray(1.0 / self.rope.rope_theta**steps, np.float32)

    def frequencies(self) -> NDArray[np.float32]:
        """(head_dim / 2,): the angle by which each pair of a head rotates per position."""
        plain = self.plain_frequencies()
        if self.rope.rope_type == "linear":
            plain = plain / self.rope.factor
        if self.rope.rope_type == "llama3":
            plain = _llama3(self.rope, plain)
        return plain.astype(np.float32)


def read(folder: Path) -> ModelConfig:
    """Read config.json of a folder. Raises ModelError if it is missing, malformed, or would be computed wrongly."""
    raw = table_of(folder)
    if raw.get("model_type") not in ARCHITECTURES:
        raise NotOnFastPathError(
            f"Waggle does not know models of type {raw.get('model_type')}.", f"It knows {', '.join(ARCHITECTURES)}."
        )
    try:
        configuration = msgspec.convert(_complete(raw), ModelConfig)
        _check(folder, configuration, raw)
    except (msgspec.ValidationError, TypeError, AttributeError, OverflowError) as error:  # fields of the wrong form
        raise _unreadable(folder, error) from error
    _require_computable(folder, configuration)
    return configuration


def table_of(folder: Path) -> dict[str, Any]:
    """The object in config.json of a model. Raises ModelError."""
    path = folder / "config.json"
    if not path.is_file():
        raise ModelError(
            f"There is no model in {folder}.", "Check `model.folder` in the settings, or remove it to use the starter."
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
            raise ModelError(f"The model in {folder} cannot be read: its config.json says that {name} is {number}.", ANOTHER)


def _largest(name: str) -> int:
    """The largest plausible value of a setting."""
    if name.endswith(("layer", "layers")):
        return MOST_LAYERS
    return LARGEST_SIZE if name in SIZES else LARGEST_NUMBER


def table_in(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a model. Raises ModelError."""
    try:
        table = json.loads(model_files.content_of(path, LARGEST_TABLE).decode())
        json.dumps(table, ensure_ascii=False).encode()  # raises for lone surrogates
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.", "Copy or download the model again.") from error
    if not isinstance(table, dict):
        raise ModelError(f"{path} holds no settings of a model.", "Copy or download the model again.")
    return table


def _complete(raw: dict[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of transformers for fields that older files omit."""
    whole = {**DEFAULTS.get(raw["model_type"], {}), **raw}
    present = {name: value for name, value in whole.items() if value is not None}
    heads, length = present.get("num_attention_heads", 0), present.get("max_position_embeddings", 32_768)
    rope = {
        "rope_theta": present.get("rope_theta", 10_000.0),
        "original_max_position_embeddings": length,
        "partial_rotary_factor": present.get("partial_rotary_factor", 1.0),
        **(
            present.get("rope_scaling") or present.get("rope_parameters") or {}
        ),  # of both, the old name: the other is passed over
        **{name: present[name] for name in ("original_max_position_embeddings",) if name in present},
    }
    return {
        "max_position_embeddings": length,
        "num_key_value_heads": heads,
        "head_dim": present.get("hidden_size", 0) // max(1, heads),
        "dtype": present.get("torch_dtype", "float32"),
        **present,
        "rope": {"rope_type": rope.get("type", "default"), **{name: value for name, value in rope.items() if value is not None}},
        "windows": sliding_windows.of_layers(present),
    }


def _check(folder: Path, configuration: ModelConfig, raw: dict[str, Any]) -> None:
    """Raise ModelError for settings that the backends would compute wrongly."""
    quantised.require_plain(folder, raw)
    if configuration.rope.rope_type not in ROPES or configuration.rope.partial_rotary_factor != 1.0:
        raise NotOnFastPathError(f"Waggle does not know {configuration.rope.rope_type} rope.", f"It knows {', '.join(ROPES)}.")
    if not sliding_windows.are_known(raw, configuration.windows) or (configuration.windows and raw["model_type"] == "llama"):
        raise NotOnFastPathError(f"Waggle does not know these types of layers in models of type {raw['model_type']}.", ANOTHER)
    if configuration.hidden_act != "silu":
        raise NotOnFastPathError(f"Waggle does not know the activation {configuration.hidden_act}.", "Choose a plain model.")
    if configuration.dtype not in PRECISIONS:
        raise ModelError(f"Waggle does not know weights in {configuration.dtype}.", f"It knows {', '.join(PRECISIONS)}.")


def _require_computable(folder: Path, configuration: ModelConfig) -> None:
    """Raise ModelError for numbers that are valid one by one but not together."""
    if configuration.head_dim % 2 or configuration.num_attention_heads % configuration.num_key_value_heads:
        raise ModelError(f"The heads of the model in {folder} cannot be shared out.", ANOTHER)
    if not (math.isfinite(configuration.rms_norm_eps) and configuration.rms_norm_eps >= 0.0):
        raise ModelError(f"The layers of the model in {folder} cannot be normalised.", ANOTHER)
    if not _turns(configuration):
        raise ModelError(f"The positions of the model in {folder} cannot be turned.", ANOTHER)


def _turns(configuration: ModelConfig) -> bool:
    """Whether all rotary frequencies are finite and positive, as transformers would compute them."""
    rope = configuration.rope
    if rope.rope_type == "llama3" and not 0.0 < rope.low_freq_factor < rope.high_freq_factor:
        return False
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            turns = configuration.frequencies()
    except FloatingPointError:
        return False
    return bool(turns.min() > 0.0 and turns.max() < np.inf)  # false for NaN


def _llama3(rope: RopeConfig, plain: NDArray[np.float32]) -> NDArray[np.float32]:
    """Llama 3.1: divide low frequencies by `factor`, keep high ones, and interpolate between them."""
    turns = rope.original_max_position_embeddings * plain / (2 * math.pi)  # rotations within the original context
    share = np.clip((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0)
    blended: NDArray[np.float32] = (1.0 - share) * plain / rope.factor + share * plain
    return blended


def _unreadable(folder: Path, why: object) -> ModelError:
    return ModelError(f"The model in {folder} cannot be read: {why}.", "Copy or download it again.")
