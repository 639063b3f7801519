"""A process that reads the parts of one model's folder. The files come with models, from strangers.

They are parsed, not run: no code of the model's, no pickles. transformers imports lazily, so this process cannot give up opening
files. It can write none, has no network and starts no program once the chat template was rendered (which a process of its own
does), and its memory and time are bounded. If the system runs out of memory all the same, it is the first to be ended.
"""

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from waggle.core.errors import ModelError
from waggle.core.message import Message
from waggle.models.inspection import checks
from waggle.models.inspection.report import Part, ReadPart, Refused, Reply
from waggle.models.shared.configuration import model_config
from waggle.models.shared.configuration.model_config import ANOTHER, NotOnFastPathError
from waggle.tasks.sandbox import hardening, messages

SECONDS = 900.0  # wall-clock limit in case the parent is gone
GROWTH_BYTES = 2 << 30  # beyond what the libraries take; a tokenizer of 262,000 words takes a quarter of that
QUIET: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "", "HF_DEACTIVATE_ASYNC_LOAD": "1",
}  # fmt: skip
CHECKS: Mapping[Part, Callable[[Path], Reply]] = {
    "template": checks.template, "configuration": checks.configuration, "weights": checks.weights, "tokenizer": checks.words,
}  # fmt: skip


def read(request: ReadPart) -> Reply:
    """Read a part of a model."""
    folder = Path(os.fsdecode(request.folder))
    try:
        return CHECKS[request.part](folder)
    except ModelError as error:
        refusal = error
    except MemoryError:
        refusal = ModelError(Message("The %1 of the model in %2 takes too much memory to read.", request.part, folder), ANOTHER)
    except BaseException as error:  # noqa: BLE001 - files of strangers may raise anything; panics of Rust are BaseExceptions
        why = (str(error) or type(error).__name__)[: messages.REASON]
        refusal = ModelError(Message("The %1 of the model in %2 cannot be read: %3.", request.part, folder, why), ANOTHER)
    return Refused(refusal.title, refusal.advice)


def _import_libraries(folder: Path) -> None:
    """Import what reads a model's configuration while this process may still do so."""
    try:
        model_config.read(folder)
    except NotOnFastPathError:
        with contextlib.suppress(ImportError):  # reading the configuration reports that
            import transformers.models.auto.modeling_auto  # noqa: F401
    except ModelError:  # reading the configuration reports that, too
        return


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches every process of a terminal: the engine ends this one
    os.environ.update(QUIET)
    replies = messages.open_replies()
    sys.dont_write_bytecode = True
    hardening.be_killed_first()
    hardening.set_deadline(SECONDS)
    tempfile.gettempdir()  # torch's imports ask for it; it is found by writing, and remembered
    hardening.write_no_files()
    hardening.limit_growth(GROWTH_BYTES)
    if sys.platform == "win32":
        hardening.limit_memory()
    is_confined = False
    while (frame := messages.receive(sys.stdin.buffer)) is not None:
        request = msgspec.msgpack.decode(frame, type=ReadPart)
        if request.part != "template" and not is_confined:
            hardening.limit_growth(sys.maxsize // 2)
            _import_libraries(Path(os.fsdecode(request.folder)))
            hardening.limit_growth(GROWTH_BYTES)
            hardening.drop_all_but_reading()
            is_confined = True
        messages.send(replies, read(request))


if __name__ == "__main__":
    main()
