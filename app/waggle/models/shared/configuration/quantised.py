"""Quantised models, of which most are refused with the name of the model that they were made from.

The name stands in the model card (README.md), in config.json, or in a GGUF file's own description
(https://github.com/ggml-org/ggml, docs/gguf.md). Strangers wrote all of them: only what can be the name of a model on the hub
is repeated.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from waggle.core.errors import ModelError
from waggle.core.message import Message

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
CARD_BYTES, TEXT_BYTES, FIELDS = 1 << 16, 1 << 12, 200  # the most that are read
HUB = "https://huggingface.co/"
GGUF_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a number by its type
GGUF_TEXT = 8
NEED_PACKAGE = {"gptq": "GPTQ", "awq": "AWQ"}  # transformers opens both with the package gptqmodel
DESCRIBED = ("general.base_model.0.repo_url", "general.source.huggingface.repository", "general.repo_url", "general.source.url")


def require_plain(folder: Path, table: dict[str, Any]) -> None:
    """Raise ModelError if config.json, whose content is `table`, is of a quantised model."""
    if not (table.get("quantization_config") or table.get("quantization")):
        return
    settings = table.get("quantization_config")
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if isinstance(method, str) and method in NEED_PACKAGE:
        raise ModelError(
            Message(
                "This model was quantised with %1. Opening it needs gptqmodel, which Waggle does not include.",
                NEED_PACKAGE[method],
            ),
            advice(made_from(folder, table)),
        )
    raise ModelError("Waggle does not train quantised models.", advice(made_from(folder, table)))


def refuse_gguf(path: Path, why: str, *, is_damaged: bool = False) -> ModelError:
    """The error for a GGUF file that cannot be opened; `why` is a clause. Another copy of a damaged one may be whole."""
    advised = Message("Copy or download the model again.") if is_damaged else advice(_from_gguf(path))
    return ModelError(Message("%1 cannot be opened: %2.", path.name, why), advised)


def made_from(folder: Path, table: dict[str, Any]) -> str:
    """The name of the model that a quantised one was made from; empty if neither its card nor config.json, `table`, names one."""
    return _from_card(folder) or hub_name(table.get("_name_or_path"))


def advice(name: str) -> Message:
    """What to choose instead of a model that was made from the model of this name, which may be empty."""
    return Message("Choose %1, which it was made from.", name) if name else Message("Choose the model that it was made from.")


def _from_card(folder: Path) -> str:
    """`base_model` of the card's front matter, which is YAML: a name, or a list whose first entry is on the next line."""
    try:
        with (folder / "README.md").open(encoding="utf-8", errors="replace") as file:
            card = file.read(CARD_BYTES)
    except OSError:
        return ""
    front = card[3:].partition("\n---")[0] if card.startswith("---") else ""
    named = re.search(r"^base_model:[ \t]*(?:\n\s*-\s*)?[\"']?([^\s\"']+)", front, re.MULTILINE)
    return hub_name(named[1]) if named else ""


def _from_gguf(path: Path) -> str:
    try:
        with path.open("rb") as file:
            fields = dict(_fields(file))
    except (OSError, struct.error, UnicodeError):
        return ""
    return next((name for label in DESCRIBED if (name := hub_name(fields.get(label, "").removeprefix(HUB)))), "")


def _fields(file: BinaryIO) -> Iterator[tuple[str, str]]:
    """The texts before the first list of a GGUF file: its description. Raises struct.error and UnicodeError."""
    magic, version, _, count = struct.unpack("<4sIQQ", file.read(24))
    if magic != b"GGUF" or version < 2:
        return
    for _ in range(min(count, FIELDS)):
        label = _text(file)
        (kind,) = struct.unpack("<I", file.read(4))
        if kind == GGUF_TEXT:
            yield label, _text(file)
        elif kind in GGUF_SIZES:
            file.seek(GGUF_SIZES[kind], 1)
        else:
            return


def _text(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > TEXT_BYTES:
        raise struct.error("a long text")
    return file.read(length).decode()


def hub_name(value: Any) -> str:
    """The name of a model on the hub; empty for anything else that a stranger wrote, such as a path."""
    return value if isinstance(value, str) and len(value) <= 200 and NAME.fullmatch(value) else ""
