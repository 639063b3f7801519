"""Inspects a model's folder with a child process before this process opens it.

A small file can take a program's memory, its time or its life: a tokenizer of 44 kB did. So a child with bounds reads everything
first that opening the model reads: chat template, configuration, headers of the weights, tokenizer. What can be opened there is
opened here, by the same functions.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.models import tokenizer_conversion
from waggle.models.inspection.report import (
    ConfigurationReport,
    ModelReport,
    Part,
    ReadPart,
    Refused,
    Reply,
    TemplateReport,
    TokenizerReport,
    WeightsReport,
    reply_of,
)
from waggle.models.shared.configuration.model_config import ANOTHER
from waggle.tasks.sandbox.child_process import ChildKilled, ChildProcess, ChildStarved

EVERYTHING: tuple[Part, ...] = ("template", "configuration", "weights", "tokenizer")
CONFIGURATION: tuple[Part, ...] = ("configuration",)
WITHOUT_WEIGHTS: tuple[Part, ...] = ("template", "configuration", "tokenizer")
# For each part: wall-clock time, and CPU time: importing torch and transformers takes 3 s, the largest tokenizers 5 s.
START_SECONDS, WORK_SECONDS = 240.0, 60.0
MEMORY_BYTES = 3 << 30  # of the child with its libraries; on Linux it bounds itself closer
CACHE_SIZE = 32  # reports
REPORTS: Mapping[Part, type[Reply]] = {
    "template": TemplateReport, "configuration": ConfigurationReport, "weights": WeightsReport, "tokenizer": TokenizerReport,
}  # fmt: skip

Stamp = tuple[tuple[str, int, int], ...]


def inspect(folder: Path, parts: tuple[Part, ...] = EVERYTHING) -> ModelReport:
    """Read these parts of a model in a child process. Takes seconds, unless the same files were inspected before.

    Raises ModelError if the model cannot be opened, and for what cannot be read now. Converts a tokenizer of an older form.
    """
    return _inspect(folder.absolute(), parts, stamp_of(folder))


def stamp_of(folder: Path) -> Stamp:
    """The names, sizes and times of the files in a folder: equal if none has changed. Empty if it cannot be read."""
    try:
        return tuple(sorted((path.name, (status := path.stat()).st_size, status.st_mtime_ns) for path in folder.iterdir()))
    except OSError:  # no folder, or a link to nothing in it: reading its parts reports what is wrong
        return ()


@lru_cache(CACHE_SIZE)
def _inspect(folder: Path, parts: tuple[Part, ...], _: Stamp) -> ModelReport:
    try:
        child = ChildProcess("waggle.models.inspection.process", reply_of, memory_bytes=MEMORY_BYTES)
    except OSError as error:  # short of memory or of processes
        raise _interrupted(folder, fault_of(error).reason) from error
    try:
        reports: dict[str, Any] = {part: _read(child, part, folder) for part in parts}
        return ModelReport(**reports)
    finally:
        child.end()


def _read(child: ChildProcess[Reply], part: Part, folder: Path) -> Reply:
    if part == "tokenizer" and not (folder / tokenizer_conversion.TOKENIZER).exists():
        tokenizer_conversion.convert(folder)
    try:
        reply = child.ask(ReadPart(part, os.fsencode(folder)), START_SECONDS, WORK_SECONDS)
    except (ChildStarved, ChildKilled) as error:  # the computer's fault, not the model's
        raise _interrupted(folder, str(error)) from error
    except TimeoutError as error:
        raise ModelError(Message("The %1 of the model in %2 takes too long to read.", part, folder), ANOTHER) from error
    except EOFError as error:
        raise ModelError(
            Message("The %1 of the model in %2 ends the program that reads it: %3.", part, folder, error), ANOTHER
        ) from error
    if isinstance(reply, Refused):
        raise ModelError(reply.title, reply.advice)
    if not isinstance(reply, REPORTS[part]):
        raise ModelError(Message("The %1 of the model in %2 makes its reader talk nonsense.", part, folder), ANOTHER)
    return reply


def _interrupted(folder: Path, why: str) -> ModelError:
    return ModelError(Message("The model in %1 cannot be checked now: %2.", folder, why), "Try again later.")
