"""Export as one GGUF file, which llama.cpp, Ollama, LM Studio and others read (https://github.com/ggml-org/ggml, docs/gguf.md).

For some kinds of the fast path, with byte-level tokens; others are refused with a reason, and so are models with sliding windows,
which llama.cpp passes over in these kinds. Weights keep their precision, but vectors are float32, as those programs want them.
llama.cpp rotates neighbouring numbers of a head of a Llama and transformers its two halves, so rows of queries and keys change
places.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import ExportError, ModelError
from waggle.core.message import NOTHING, Message
from waggle.models import chat_template
from waggle.models.chat_template import ChatTemplateError
from waggle.models.shared import weight_files
from waggle.models.shared.configuration import model_config
from waggle.models.shared.configuration.model_config import ModelConfig, NotOnFastPathError
from waggle.models.shared.weight_files import STORED, StoredArray, as_fp32
from waggle.models.tokenizer import load as load_tokenizer

FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}  # "mostly" in that precision
WITHOUT_IT = Message("Export without the GGUF file.")
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # kinds of tokens
PERMUTED = ("q_proj", "k_proj")
KINDS = ("llama", "mistral", "qwen2", "qwen3")
AS_LLAMA = ("llama", "mistral")  # kinds that are written as llama
GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
LLAMA3 = (
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)
QWEN2 = LLAMA3.replace("\\p{N}{1,3}", "\\p{N}")
SPLITS = {(GPT2,): "gpt-2", ("digits", GPT2): "smollm", (LLAMA3,): "llama-bpe", (QWEN2,): "qwen2"}  # as llama.cpp calls them


def refusal(folder: Path) -> Message:
    """Why the model in a transformers folder cannot be a GGUF file, in one sentence; empty if it can."""
    try:
        shape = model_config.read(folder)
        if shape.model_type not in KINDS:
            return _of_another_kind(folder)
        if shape.windows:
            raise ModelError("Waggle writes no GGUF files of models with sliding windows.", WITHOUT_IT)
        _splits(_words(folder))
    except NotOnFastPathError:
        return _of_another_kind(folder)
    except ModelError as error:
        return error.title
    return NOTHING


def _of_another_kind(folder: Path) -> Message:
    kind = model_config.table_of(folder).get("model_type")
    return Message("Waggle writes GGUF files of %1, and this model is of type %2.", ", ".join(KINDS), kind)


def write(folder: Path, path: Path, name: str) -> None:
    """Write the model of a transformers folder to a new file. Raises ExportError, ModelError, OSError and SafetensorError."""
    try:
        from gguf import GGMLQuantizationType, GGUFWriter
    except ImportError as error:
        raise ExportError("GGUF files need the package gguf, which is not installed.", "Install Waggle again.") from error
    shape = model_config.read(folder)
    arrays = weight_files.of_model(folder, shape.weights())
    writer = GGUFWriter(path, _architecture(shape))
    _describe(writer, shape, name, FILE_TYPES[arrays[model_config.EMBEDDING].precision])
    _add_tokens(writer, folder, shape.vocab_size)
    tensors = list(_tensors(shape, arrays))
    try:
        for each in tensors:
            size = math.prod(each.shape) * STORED[each.precision].itemsize
            kind = GGMLQuantizationType[each.precision]
            writer.add_tensor_info(each.label, each.shape, np.dtype(np.float32), size, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for each in tensors:
            writer.write_tensor_data(each.read())
    finally:
        writer.close()


@dataclass(frozen=True)
class _Tensor:
    """A tensor under its name in GGUF; `read` returns its numbers, which are too many to hold all of them at once."""

    label: str
    precision: str  # in the terms of safetensors, which are also ggml's
    shape: tuple[int, ...]
    read: Callable[[], NDArray[Any]]


def _architecture(shape: ModelConfig) -> str:
    return "llama" if shape.model_type in AS_LLAMA else shape.model_type


def _describe(writer: Any, shape: ModelConfig, name: str, file_type: int) -> None:
    writer.add_name(name)
    writer.add_file_type(file_type)
    writer.add_vocab_size(shape.vocab_size)
    writer.add_context_length(shape.max_position_embeddings)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(shape.num_hidden_layers)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.num_attention_heads)
    writer.add_head_count_kv(shape.num_key_value_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope.rope_theta)
    if shape.rope.rope_type == "linear":
        from gguf import RopeScalingType

        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(shape.rope.factor)


def _tensors(shape: ModelConfig, arrays: Mapping[str, StoredArray]) -> Iterator[_Tensor]:
    """Raises ExportError."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    architecture = next(number for number, label in MODEL_ARCH_NAMES.items() if label == _architecture(shape))
    names = get_tensor_name_map(architecture, shape.num_hidden_layers)
    if shape.rope.rope_type == "llama3":  # by how much each frequency is divided
        factors = (shape.rope.plain_frequencies(shape.head_dim) / shape.frequencies()).astype(np.float32)
        yield _Tensor("rope_freqs.weight", "F32", factors.shape, lambda: factors)
    for name, stored in arrays.items():
        label = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if label is None:
            raise ExportError(Message("GGUF has no name for %1.", name), "Export without the GGUF file.")
        precision = stored.precision if len(stored.shape) > 1 else "F32"
        yield _Tensor(label, precision, stored.shape, partial(_numbers, shape, name, stored))


def _numbers(shape: ModelConfig, name: str, stored: StoredArray) -> NDArray[Any]:
    numbers = stored.read()
    module = name.split(".")[-2]
    if shape.model_type in AS_LLAMA and module in PERMUTED:
        heads = shape.num_attention_heads if module == "q_proj" else shape.num_key_value_heads
        halves = numbers.reshape(heads, 2, shape.head_dim // 2, *numbers.shape[1:])
        numbers = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(numbers.shape)
    return as_fp32(numbers) if numbers.ndim == 1 else numbers


def _add_tokens(writer: Any, folder: Path, rows: int) -> None:
    table = _words(folder)
    texts, kinds = [f"[unused {i}]" for i in range(rows)], [UNUSED] * rows
    for text, token in table["model"]["vocab"].items():
        texts[token], kinds[token] = text, NORMAL
    for each in table.get("added_tokens") or ():
        texts[each["id"]], kinds[each["id"]] = each["content"], CONTROL if each["special"] else USER_DEFINED
    tokenizer = load_tokenizer(folder, rows=rows)
    for stop in tokenizer.stops:
        kinds[stop] = CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_splits(table))
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in table["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.stop_for(chat=tokenizer.has_chat_template))
    first = tokenizer.prompt("").ids
    writer.add_add_bos_token(len(first) > 0)
    if len(first):
        writer.add_bos_token_id(int(first[0]))
    with suppress(ChatTemplateError):  # the model is trained without it, too
        if chat := chat_template.read(folder):
            writer.add_chat_template(chat.template)


def _words(folder: Path) -> dict[str, Any]:
    """tokenizer.json, whose byte pairs GGUF takes. Raises ModelError."""
    table = model_config.table_in(folder / "tokenizer.json")
    model = table.get("model") or {}
    if model.get("type") != "BPE" or not model.get("vocab") or model.get("byte_fallback") or table.get("normalizer"):
        raise ModelError("Waggle writes GGUF files of models with byte-level tokens, and this model has others.", WITHOUT_IT)
    return table


def _splits(table: dict[str, Any]) -> str:
    """llama.cpp's name for the way in which a tokenizer splits texts into words. Raises ModelError if it has none."""
    splitter = table.get("pre_tokenizer") or {}
    steps = splitter.get("pretokenizers", [splitter])
    patterns: list[str] = []
    for step in steps:
        match step:
            case {"type": "Digits", "individual_digits": True}:
                patterns.append("digits")
            case {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated"}:
                patterns.append(pattern)
            case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": bool(by_words)}:
                patterns += [GPT2] if by_words else []
            case _:
                patterns.append("another step")
    if tuple(patterns) not in SPLITS:
        raise ModelError("Waggle does not know how GGUF calls the tokens of this model.", WITHOUT_IT)
    return SPLITS[tuple(patterns)]
