"""GGUF files of tiny random models: of a transformers folder, quantised, and of kinds that Waggle itself does not write."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, GGUFWriter, get_tensor_name_map
from gguf.constants import MODEL_ARCH_NAMES, GGMLQuantizationType, GGUFValueType
from gguf.quants import quantize
from transformers import AutoModelForCausalLM

from models.tiny_kinds import make_kind

WORDS = 97  # of the tiny kinds
TYPES = {str: GGUFValueType.STRING, int: GGUFValueType.UINT32, bool: GGUFValueType.BOOL, float: GGUFValueType.FLOAT32}


def quantised(source: Path, path: Path, kind: str, **changed: Any) -> Path:
    """A copy of a file with its matrices in another precision, and with `changed` fields; None leaves a field out."""
    reader = GGUFReader(source)
    writer = GGUFWriter(path, str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        value = changed.pop(name, field.contents())
        if value is not None and not name.startswith("GGUF.") and name != "general.architecture":
            writer.add_key_value(name, value, field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for name, value in changed.items():
        writer.add_key_value(name, value, TYPES[type(value)])
    to = GGMLQuantizationType[kind]
    for tensor in reader.tensors:
        numbers = tensor.data.astype(np.float32).reshape(tuple(reversed(tensor.shape.tolist())))
        packs = numbers.ndim > 1 and numbers.shape[-1] % 32 == 0
        data = quantize(numbers, to) if packs else numbers
        writer.add_tensor(tensor.name, data, raw_dtype=to if packs else GGMLQuantizationType.F32)
    return _write(writer, path)


def of_kind(architecture: str, kind: str, folder: Path, fields: Mapping[str, Any], **settings: Any) -> Path:
    """A file with the labels of an architecture, random numbers, and the shapes of a tiny kind. Its words are letters."""
    make_kind(kind, folder / "source", **settings)
    model = AutoModelForCausalLM.from_pretrained(folder / "source")
    number = next(arch for arch, name in MODEL_ARCH_NAMES.items() if name == architecture)
    labels = get_tensor_name_map(number, model.config.num_hidden_layers)
    noise = np.random.default_rng(0)
    path = folder / f"{architecture}.gguf"
    writer = GGUFWriter(path, architecture)
    for name, value in fields.items():
        if isinstance(value, list):
            writer.add_array(f"{architecture}.{name}", value)
        else:
            writer.add_key_value(f"{architecture}.{name}", value, TYPES[type(value)])
    add_letters(writer)
    for name, weight in model.named_parameters():
        names = (
            name,
            name.removeprefix(f"{model.base_model_prefix}."),
            name.replace("linear_attn.dt_bias", "linear_attn.dt_proj.bias"),
        )
        label = next(label for each in names if (label := labels.get_name(each, (".weight", ".bias"))))
        is_turned = architecture == "gpt2" and label.endswith(".weight") and weight.ndim == 2 and label.startswith("blk.")
        writer.add_tensor(label, _numbers(label, tuple(weight.T.shape if is_turned else weight.shape), noise))
    return _write(writer, path)


def _numbers(label: str, shape: tuple[int, ...], noise: np.random.Generator) -> np.ndarray[Any, Any]:
    numbers = noise.normal(0.0, 0.1, shape).astype(np.float32)
    if "conv" in label and len(shape) == 3:
        numbers = numbers[:, 0]
    if label.endswith("ssm_a") or "ssm_a." in label:
        numbers = -np.exp(numbers)
    return numbers + np.float32(1.0) if "norm.weight" in label else numbers


def add_letters(writer: GGUFWriter) -> None:
    """A vocabulary of bytes: the first tokens are special."""
    words = ["<pad>", "<end>", *(chr(33 + number) for number in range(WORDS - 4)), "Ġ", "ab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([3, 3, *[1] * (WORDS - 2)])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(0)


def _write(writer: GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def of_transformers(path: Path, *, rounded: bool = False) -> Any:
    """transformers' own reading of a file, in float32; with its weights `rounded` to bfloat16, as Waggle converts blocks."""
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    with torch.no_grad():
        for weight in model.parameters() if rounded else ():
            weight.copy_(weight.bfloat16().float())
    return model


def logprobs(model: Any) -> torch.Tensor:
    """Of a fixed text, (1, T, V)."""
    with torch.no_grad():
        return torch.log_softmax(model(torch.arange(3, 60)[None]).logits.float(), -1)
