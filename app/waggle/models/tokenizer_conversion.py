"""Converts tokenizers of older forms to `tokenizer.json`, once: SentencePiece's, or vocab.json with merges.txt.

A process with bounds on memory and time does it through transformers, on copies of the files that it needs.
"""

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.child_process import ChildKilled, ChildProcess, ChildStarved

TOKENIZER = "tokenizer.json"
SOURCES = (("tokenizer.model",), ("vocab.json", "merges.txt"))
BESIDE = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
FILES = ("tokenizer.model", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json")  # beyond a usual model's
LARGEST = 1 << 25  # bytes of a file
START_SECONDS, CONVERT_SECONDS = 240.0, 60.0  # wall-clock time, and CPU time: importing transformers takes 4 s, a large file 20 s


def is_possible(names: set[str]) -> bool:
    """Whether a folder with files of these names has a tokenizer that can be converted."""
    return any(names.issuperset(source) for source in SOURCES)


def convert(folder: Path) -> None:
    """Write tokenizer.json into the folder of a model that has its tokenizer in another form. Raises ModelError."""
    if not is_possible({path.name for path in folder.iterdir()} if folder.is_dir() else set()):
        raise ModelError(Message("There is no tokenizer.json in %1.", folder), "Choose a complete transformers folder.")
    if find_spec("transformers") is None:
        raise ModelError(
            Message("The tokenizer in %1 has to be converted, which this version of Waggle cannot do.", folder),
            "Choose a model with a tokenizer.json.",
        )
    content = _converted(folder)
    try:
        paths.write_atomically(folder / TOKENIZER, content)
    except OSError as error:
        raise ModelError(
            Message("The converted tokenizer cannot be written to %1: %2.", folder, fault_of(error).reason),
            "Copy the model to a folder of yours.",
        ) from error


def _converted(folder: Path) -> bytes:
    try:
        with tempfile.TemporaryDirectory(prefix="waggle-tokenizer-") as copies:
            for name in {*BESIDE, *FILES}:
                if (folder / name).is_file():
                    if (folder / name).stat().st_size > LARGEST:
                        raise _unconvertible(folder, f"{name} is too large")
                    shutil.copyfile(folder / name, Path(copies) / name)
            return _ask(folder, copies)
    except OSError as error:  # short of disk, memory or processes
        raise _interrupted(folder, fault_of(error).reason) from error


def _ask(folder: Path, copies: str) -> bytes:
    child = ChildProcess("waggle.tasks.sandbox.tokenizer_process", messages.tokenizer_reply)
    try:
        reply = child.ask(messages.ConvertTokenizer(copies), START_SECONDS, CONVERT_SECONDS)
    except (ChildStarved, ChildKilled) as error:  # the computer's fault, not the model's
        raise _interrupted(folder, str(error)) from error
    except (EOFError, TimeoutError) as error:
        raise _unconvertible(folder, str(error)) from error
    finally:
        child.end()
    if isinstance(reply, messages.Failed):
        raise _unconvertible(folder, reply.reason.rstrip("."))
    return reply.content


def _unconvertible(folder: Path, why: str) -> ModelError:
    return ModelError(
        Message("The tokenizer in %1 cannot be converted: %2.", folder, why), "Choose a model with a tokenizer.json."
    )


def _interrupted(folder: Path, why: str) -> ModelError:
    return ModelError(Message("The tokenizer in %1 cannot be converted now: %2.", folder, why), "Try again later.")
