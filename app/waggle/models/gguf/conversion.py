"""Converts a GGUF file to an ordinary transformers folder, once, and finds the folder of one that was converted.

    CACHE/.gguf-DIGEST/NAME/              complete; DIGEST stands for the file's path, size and time
    CACHE/.gguf-DIGEST/.converting-NAME/  not complete

A process with bounds on memory and time reads the file (process.py), and this one writes what it sends, weight by weight.
"""

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.core.message import Figure, Message
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.models.gguf import header
from waggle.models.gguf.messages import DescribeModel, ModelDescription, Piece, ReadPiece, Refused, Reply, StoredWeight, reply_of
from waggle.models.shared import model_files, weight_files
from waggle.models.shared.configuration import quantised
from waggle.tasks.sandbox.child_process import ChildKilled, ChildProcess, ChildStarved

ENDING, FOLDER, CONVERTING = ".gguf", ".gguf-", ".converting-"
BESIDE = "mmproj"  # how the names of files for pictures begin, which lie beside a model
VERSION = 1  # of the conversion: a folder of another one is not used
DIGITS, LONGEST_NAME = 16, 80
START_SECONDS, WORK_SECONDS = 300.0, 120.0  # for each reply, wall-clock and CPU time: importing the libraries takes 5 s
MEMORY_BYTES, MEMORY_FACTOR = 3 << 30, 4  # of the child with its libraries, and for each byte of the file
GROWTH = 24  # bytes of weights for each byte of the file: 2 bits take a sixteenth of float32's
ROOM = 100_000_000  # bytes that stay free on the disk
Progress = Callable[[int, int], None]  # (bytes that are written, all bytes)
Examine = Callable[[Path], None]


def is_gguf(path: Path) -> bool:
    """Whether a path is of a GGUF file, by its name."""
    return path.suffix.lower() == ENDING and not path.is_dir()


def file_in(folder: Path) -> Path | None:
    """The GGUF file of a folder that has no model in another form, if there is one. Raises ModelError if there are several."""
    if not folder.is_dir() or (folder / "config.json").exists():
        return None
    files = sorted(path for path in folder.iterdir() if is_gguf(path) and not path.name.lower().startswith(BESIDE))
    if len(files) > 1:
        raise ModelError(
            Message("There are %1 GGUF files in %2.", len(files), folder),
            Message("Choose one of them, such as %1.", files[0].name),
        )
    return files[0] if files else None


def converted(path: Path) -> Path | None:
    """The folder of a file that was converted; None if it has to be. Raises ModelError if the file cannot be read."""
    folder = _folder_of(path)
    return folder if folder.is_dir() else None


def convert(
    path: Path, progress: Progress = lambda done, total: None, examine: Examine = lambda folder: None
) -> Path:  # fmt: skip
    """The folder of a file, after converting it if necessary, which takes seconds to minutes. Raises ModelError.

    `progress` is called after every piece; an exception of it stops the conversion. `examine` may refuse the model when all but
    its weights is written.
    """
    if (known := converted(path)) is not None:
        return known
    _require_libraries(path)
    from filelock import FileLock

    folder = _folder_of(path)
    unfinished = folder.with_name(f"{CONVERTING}{folder.name}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(unfinished.with_name(f"{unfinished.name}.lock")):
            if folder.is_dir():  # another program has just finished
                return folder
            file_moves.remove_tree(unfinished, ignore_errors=True)  # of a process that was killed
            unfinished.mkdir()
            try:
                with _described(path) as (child, described):
                    _require_room(path, unfinished, described.weights)
                    _write_texts(unfinished, described)
                    examine(unfinished)
                    _write_weights(child, path, unfinished, described.weights, progress)
                file_moves.replace(unfinished, folder)
            finally:
                file_moves.remove_tree(unfinished, ignore_errors=True)
            return folder
    except OSError as error:  # short of disk, memory or processes
        raise _interrupted(path, fault_of(error).reason) from error


def write_headers(path: Path, folder: Path) -> None:
    """Write what a file is converted to into a folder, but for the content of its weights. Raises ModelError."""
    _require_libraries(path)
    try:
        with _described(path) as (_, described):
            _require_plausible(path, described.weights)
            _write_texts(folder, described)
            tensors = {weight.name: (weight.precision, weight.shape) for weight in described.weights}
            weight_files.write_pieces(folder / weight_files.WEIGHTS, tensors, lambda name: ())
            with (folder / weight_files.WEIGHTS).open("r+b") as file:
                file.truncate(file.seek(0, os.SEEK_END) + sum(map(_size, described.weights)))  # a hole, which takes no room
    except OSError as error:
        raise _interrupted(path, fault_of(error).reason) from error


def _require_libraries(path: Path) -> None:
    if find_spec("transformers") is None or find_spec("torch") is None or find_spec("gguf") is None:
        raise quantised.refuse_gguf(path, "it has to be converted, which this version of Waggle cannot do")


def _folder_of(path: Path) -> Path:
    try:
        status = path.stat()
        model_files.size_of(path, header.LARGEST_FILE)
    except OSError as error:
        raise ModelError(Message("%1 cannot be read: %2.", path, fault_of(error).reason), fault_of(error).advice) from error
    named = repr((VERSION, os.fspath(path.resolve()), status.st_size, status.st_mtime_ns))
    digest = hashlib.sha256(named.encode(errors="surrogateescape")).hexdigest()[:DIGITS]
    return paths.models() / f"{FOLDER}{digest}" / (path.stem[:LONGEST_NAME].lstrip(".") or "model")


@contextmanager
def _described(path: Path) -> Iterator[tuple[ChildProcess[Reply], ModelDescription]]:
    """A child that has read a file but for its weights. Raises ModelError and OSError."""
    limit = MEMORY_BYTES + MEMORY_FACTOR * path.stat().st_size
    child = ChildProcess("waggle.models.gguf.process", reply_of, memory_bytes=limit)
    try:
        described = _ask(child, DescribeModel(os.fsencode(path)), path)
        if not isinstance(described, ModelDescription):
            raise _nonsense(path)
        yield child, described
    finally:
        child.end()


def _write_texts(folder: Path, described: ModelDescription) -> None:
    for name in ("config", "tokenizer", "tokenizer_config", "generation_config"):
        (folder / f"{name}.json").write_text(getattr(described, name), encoding="utf-8")


def _write_weights(
    child: ChildProcess[Reply], path: Path, folder: Path, weights: tuple[StoredWeight, ...], progress: Progress
) -> None:
    total, done = sum(map(_size, weights)), 0
    sizes = {weight.name: _size(weight) for weight in weights}

    def pieces(name: str) -> Iterator[bytes]:
        nonlocal done
        missing = sizes[name]
        while missing > 0:
            piece = _ask(child, ReadPiece(name), path)
            if not isinstance(piece, Piece) or not 0 < len(piece.content) <= missing:
                raise _nonsense(path)
            yield piece.content
            missing, done = missing - len(piece.content), done + len(piece.content)
            progress(done, total)

    weight_files.write_pieces(
        folder / weight_files.WEIGHTS, {weight.name: (weight.precision, weight.shape) for weight in weights}, pieces
    )


def _size(weight: StoredWeight) -> int:
    return weight_files.STORED[weight.precision].itemsize * math.prod(weight.shape)


def _require_plausible(path: Path, weights: tuple[StoredWeight, ...]) -> None:
    if not weights or any(weight.precision not in weight_files.STORED for weight in weights):
        raise _nonsense(path)
    if sum(map(_size, weights)) > GROWTH * path.stat().st_size + ROOM:
        raise _nonsense(path)


def _require_room(path: Path, folder: Path, weights: tuple[StoredWeight, ...]) -> None:
    _require_plausible(path, weights)
    needed, free = sum(map(_size, weights)), shutil.disk_usage(folder).free
    if needed + ROOM > free:
        raise ModelError(
            Message(
                "The converted %1 needs %2 MB, and the disk has %3 MB free.",
                path.name,
                Figure(needed / 1e6),
                Figure(free / 1e6),
            ),
            Message("Make room, or choose a smaller model; %1 MB are to stay free.", Figure(ROOM / 1e6)),
        )


def _ask(child: ChildProcess[Reply], request: msgspec.Struct, path: Path) -> Reply:
    try:
        reply = child.ask(request, START_SECONDS, WORK_SECONDS)
    except (ChildStarved, ChildKilled) as error:  # the computer's fault, not the model's
        raise _interrupted(path, str(error)) from error
    except TimeoutError as error:
        raise quantised.refuse_gguf(path, "it takes too long to read") from error
    except EOFError as error:
        raise quantised.refuse_gguf(path, f"it ends the program that reads it ({error})") from error
    if isinstance(reply, Refused):
        raise quantised.refuse_gguf(path, reply.why, is_damaged=reply.is_damaged)
    return reply


def _nonsense(path: Path) -> ModelError:
    return quantised.refuse_gguf(path, "it makes its reader talk nonsense")


def _interrupted(path: Path, why: str) -> ModelError:
    return ModelError(Message("%1 cannot be converted now: %2.", path.name, why), "Try again later.")
