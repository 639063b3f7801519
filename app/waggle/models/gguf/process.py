"""A process that reads one GGUF file, and sends what a transformers folder of its model consists of. A stranger wrote the file.

It is parsed, not run. Once its libraries are imported, this process can write no files, has no network and starts no program, and
its memory and time are bounded by the file's size. The parent writes the folder.
"""

import math
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from waggle.core.message import Message
from waggle.models.gguf import configuration, header, weights, words
from waggle.models.gguf.header import DamagedError, Header, UnreadableError
from waggle.models.gguf.messages import DescribeModel, ModelDescription, Piece, ReadPiece, Refused, Reply, StoredWeight
from waggle.models.gguf.weights import Weight
from waggle.tasks.sandbox import hardening, messages

SECONDS, BYTES_A_SECOND = 900.0, 2e6  # wall-clock limit in case the parent is gone: so long, and longer for large files
GROWTH_BYTES = 1536 << 20  # beyond what the libraries take; a vocabulary of 262,000 words takes a third of that
COPIES = 4  # of the largest transformed tensor in float32, at once
QUIET = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}  # fmt: skip
DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class _Conversion:
    """The file that this process reads."""

    def __init__(self) -> None:
        self._path = Path()
        self._weights: dict[str, Weight] = {}
        self._name = ""  # of the weight that is being sent, and its pieces
        self._pieces: Iterator[bytes] = iter(())

    def open(self, path: Path) -> tuple[Header, Any]:
        """Read the header with bounded memory, then import libraries and give up everything but reading."""
        self._path = path
        hardening.limit_growth(GROWTH_BYTES)
        head = header.read(path)
        configuration.require_supported(head)
        hardening.limit_growth(sys.maxsize // 2)
        _import_libraries()
        largest = max(math.prod(each.shape) for each in head.tensors.values() if each.name not in weights.LARGE)
        hardening.limit_growth(GROWTH_BYTES + COPIES * 4 * largest)
        hardening.drop_all_but_reading()
        return head, configuration.read(head, weights.rope_factors(path, head))

    def describe(self, path: Path) -> ModelDescription:
        head, config = self.open(path)
        self._weights = weights.plan(head, config)
        config.dtype = DTYPES[weights.precision_of(head)]
        files = words.files(head)
        return ModelDescription(
            config.to_json_string(use_diff=False),
            files["tokenizer.json"],
            files["tokenizer_config.json"],
            files["generation_config.json"],
            tuple(StoredWeight(name, each.precision, each.shape) for name, each in self._weights.items()),
        )

    def next_piece(self, name: str) -> Piece:
        if name != self._name:
            self._name, self._pieces = name, self._read(name)
        piece = next(self._pieces, None)
        if piece is None:
            raise DamagedError("it became shorter")
        return Piece(piece)

    def _read(self, name: str) -> Iterator[bytes]:
        for piece in weights.read(self._path, self._weights[name]):
            yield piece.tobytes()

    def reply(self, request: DescribeModel | ReadPiece) -> Reply:
        try:
            return (
                self.describe(Path(os.fsdecode(request.path)))
                if isinstance(request, DescribeModel)
                else self.next_piece(request.name)
            )
        except UnreadableError as error:
            return Refused(error.title, is_damaged=isinstance(error, DamagedError))
        except MemoryError:
            return Refused(Message("it takes too much memory to read"))
        except BaseException as error:  # noqa: BLE001 - files of strangers may raise anything; panics of Rust are BaseExceptions
            why = " ".join((str(error) or type(error).__name__).encode(errors="replace").decode().split())
            return Refused(Message("transformers cannot read it (%1)", why[: messages.REASON].rstrip(".")))


def _import_libraries() -> None:
    """Import what reads a file while this process may still do so."""
    import gguf  # noqa: F401
    import transformers.core_model_loading
    import transformers.integrations.gguf.gguf_tokenizer_mapping
    import transformers.modeling_gguf_pytorch_utils
    import transformers.models.auto.modeling_auto  # noqa: F401


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches every process of a terminal: the engine ends this one
    os.environ.update(QUIET)
    replies = messages.open_replies()
    sys.dont_write_bytecode = True
    hardening.be_killed_first()
    tempfile.gettempdir()  # torch's imports ask for it; it is found by writing, and remembered
    hardening.write_no_files()
    if sys.platform == "win32":
        hardening.limit_memory()
    conversion = _Conversion()
    while (frame := messages.receive(sys.stdin.buffer)) is not None:
        request = msgspec.msgpack.decode(frame, type=DescribeModel | ReadPiece)
        if isinstance(request, DescribeModel):
            hardening.set_deadline(SECONDS + _size_of(Path(os.fsdecode(request.path))) / BYTES_A_SECOND)
        messages.send(replies, conversion.reply(request))


def _size_of(path: Path) -> int:
    try:
        return min(path.stat().st_size, header.LARGEST_FILE)
    except OSError:  # reading it reports that
        return 0


if __name__ == "__main__":
    main()
