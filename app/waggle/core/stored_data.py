"""What Waggle stores on this computer, with sizes, and its removal.

Only files that Waggle writes are listed, by their names, in its two folders: the home of a node and the cache. A folder without
the marks of a home belongs to somebody else, whatever the names of its files. Links are not followed: a link counts as itself.
"""

import os
import stat
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, get_args

import msgspec

from waggle.core import paths
from waggle.core.message import Message
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of

DataKind = Literal["identity", "settings", "checkpoints", "history", "record", "swarms", "log", "models", "cuda", "cache"]
KINDS: tuple[DataKind, ...] = get_args(DataKind)
KEPT_BY_DEFAULT: tuple[DataKind, ...] = ("identity",)  # unless a person names it
BROKEN = ("settings.toml.broken", "settings.toml.broken-[0-9]*")
LOCK = "window*.lock"  # one for each computer that a window here controls
QT_SETTINGS = "qt"  # of a home: Qt's own settings, such as where a file was chosen last
LOGIN = ("login-window.xml", "login-engine.xml")  # of tasks of Windows
ROUND, HASH = "r" + "[0-9]" * 8, "[0-9a-f]" * 64
STAMP = "[0-9]" * 8 + "T" + "[0-9]" * 6
RECORD = f"{STAMP}-{'[0-9]' * 6}.jsonl"


def _file_names(*names: str) -> tuple[str, ...]:
    """The names of files that are written atomically, with their temporary names and those of damaged files set aside."""
    ends = (".new", ".damaged", ".damaged-[0-9]*")  # an early version wrote into name.new, not into name.json.new
    return tuple(pattern for name in names for pattern in (name, f"{name}.new", *(name.rpartition(".")[0] + end for end in ends)))


OF_MODEL: dict[DataKind, tuple[str, ...]] = {
    "checkpoints": (f"checkpoints/{ROUND}/**", f"checkpoints/damaged-{ROUND}/**", "checkpoints/.writing-[0-9]*/**",
                    f"checkpoints/journal-{ROUND}", f"checkpoints/damaged-journal-{ROUND}",
                    f"album/{ROUND}.safetensors", f"album/{ROUND}.safetensors.new", f"album/earlier-{ROUND}.safetensors",
                    *_file_names("prompt_form.json", "checkpoints/model.json")),
    "history": tuple(f"history.{which}{beside}" for which in ("sqlite", "damaged", "damaged-[0-9]*", "rebuilding")
                     for beside in ("", "-wal", "-shm", "-journal")),
}  # fmt: skip
OF_ALL = {kind: (*names, *(f"models/*/{name}" for name in names)) for kind, names in OF_MODEL.items()}
MARKS = ("control/engine.sock", "control/engine.lock", "control/engine.port", "control/engine.port.new", "control/window*.sock",
         "control/window*.pipe", "control/window*.pipe.new")  # fmt: skip
OF_HOME: dict[DataKind, tuple[str, ...]] = {
    "identity": ("identity.key", f"identity.{STAMP}.{'[0-9a-f]' * 4}.key", "identity.new", "identity.????????.new"),
    "settings": (*_file_names("settings.toml", "window.json", "frugality.json", "asked.json", "opening.json", "streams.json",
                              "energy.json"),
                 *(f"{QT_SETTINGS}/{name}" for name in ("QtProject.conf", "QtProject.conf.lock", "QtProject.conf.??????")),
                 *LOGIN, *BROKEN, LOCK, f"{LOCK}.rmlock", ".doctor", "seed_port", "seed_port.new", *MARKS),
    "checkpoints": (*OF_ALL["checkpoints"], *_file_names("models.json")),
    "history": OF_ALL["history"],
    "record": (f"events/{RECORD}", "events/writing.part"),
    "swarms": _file_names(
        "swarms.json", "standings.json", "known_peers.json", f"known_peers/{HASH}.json", f"charters/{HASH}.json",
        f"charters/{HASH}.key", f"marks/{HASH}.msgpack", f"questions/{HASH}.piece",
    ),
    "log": ("logs/waggle.log", "logs/waggle.log.[0-9]"),
}  # fmt: skip
OF_CACHE: dict[DataKind, tuple[str, ...]] = {
    "models": ("models/**",), "cuda": ("cuda/**",), "cache": ("bench/**", "churn.jsonl", "fuzz/**", "lab/**", "shapes/**"),
}  # fmt: skip

SHARED: tuple[DataKind, ...] = tuple(OF_CACHE)  # by all homes of this user


class StoredFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files of one kind."""

    kind: DataKind
    files: tuple[Path, ...]
    size: int  # bytes


class FailedRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be removed, and why."""

    path: str
    reason: Message


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed of one kind."""

    kind: DataKind
    files: int
    size: int
    spared: tuple[FailedRemoval, ...] = ()


def is_usual(home: paths.Home) -> bool:
    """Whether this is the home that Waggle has without --home."""
    try:
        return _real(home.root) == _real(paths.home_in(None).root)
    except OSError:  # this user has no home folder, so there is no usual one
        return False


def kept_by_default(home: paths.Home) -> tuple[DataKind, ...]:
    """What a window does not tick: the identity, and for another home than the usual one also what all homes share."""
    return KEPT_BY_DEFAULT if is_usual(home) else (*KEPT_BY_DEFAULT, *SHARED)


def is_home(home: paths.Home) -> bool:
    """Whether Waggle ever used this folder: every command that writes makes `control`, and only Waggle writes its files."""
    try:
        sockets = [f"control/{path.name}" for path in home.control.iterdir()]
    except OSError:  # it is not there
        return os.path.lexists(home.identity)
    marked = any(fnmatchcase(name, mark) for name in sockets for mark in MARKS)
    return not sockets or marked or os.path.lexists(home.identity)


def stored_files(home: paths.Home, cache: Path) -> tuple[StoredFiles, ...]:
    """All stored files in the order of KINDS, without empty kinds."""
    ours = _list_files(home.root, OF_HOME) if is_home(home) else ()
    listed = [*ours, *_list_files(cache, OF_CACHE)]
    return tuple(
        StoredFiles(kind=kind, files=tuple(path for path, _ in files), size=sum(size for _, size in files))
        for kind in KINDS
        if (files := [(path, size) for of, path, size in listed if of == kind])
    )


def remove(home: paths.Home, cache: Path, kinds: Collection[DataKind]) -> tuple[Removal, ...]:
    """Remove files of these kinds, and folders that are empty then. Files that cannot be removed are named in the result."""
    ours = is_home(home)
    done = tuple(
        _remove(stored, (_real(home.root), _real(cache))) for stored in stored_files(home, cache) if stored.kind in kinds
    )
    _tidy(cache, _tops(OF_CACHE))
    if ours:
        tidy(home)  # after the cache, which is inside the home on Windows
    return done


def tidy(home: paths.Home) -> None:
    """Remove empty folders of a home, the root last. `control` stays while it alone marks the folder as a home with files."""
    rest = os.path.lexists(home.identity) or not any(_list_files(home.root, OF_HOME))
    _tidy(home.root, _tops(OF_HOME) - (set() if rest else {home.control.name}))


def _tidy(root: Path, tops: set[str]) -> None:
    for top in tops:
        if not _is_link(root / top):
            _remove_empty(root / top)
    _rmdir(root)


def _list_files(root: Path, patterns: dict[DataKind, tuple[str, ...]]) -> Iterator[tuple[DataKind, Path, int]]:
    """Every known file below a root, without following links."""
    root = _real(root)
    for path in _leaves(root, patterns):
        kind = _kind_of(path.relative_to(root).as_posix(), patterns)
        if kind is not None:
            try:
                yield kind, path, path.lstat().st_size
            except OSError:  # it was removed meanwhile
                continue


def _kind_of(name: str, patterns: dict[DataKind, tuple[str, ...]]) -> DataKind | None:
    parts = name.split("/")
    return next((kind for kind, each in patterns.items() if any(_fits(parts, pattern.split("/")) for pattern in each)), None)


def _fits(parts: list[str], pattern: list[str]) -> bool:
    """Whether a path matches a pattern. `**` at its end stands for anything below."""
    if pattern[-1] == "**":
        return len(parts) >= len(pattern) - 1 and _fits(parts[: len(pattern) - 1], pattern[:-1])
    return len(parts) == len(pattern) and all(fnmatchcase(part, glob) for part, glob in zip(parts, pattern, strict=True))


def _leaves(root: Path, patterns: dict[DataKind, tuple[str, ...]]) -> Iterator[Path]:
    """Files and links in a root, and in those of its folders that a pattern names."""
    tops = _tops(patterns)
    for path in _inside(root):
        if _is_link(path) or not path.is_dir():
            yield path
        elif path.name in tops:
            yield from _below(path)


def _tops(patterns: dict[DataKind, tuple[str, ...]]) -> set[str]:
    return {pattern.partition("/")[0] for each in patterns.values() for pattern in each if "/" in pattern}


def _below(folder: Path) -> Iterator[Path]:
    for path in _inside(folder):
        if _is_link(path) or not path.is_dir():
            yield path
        else:
            yield from _below(path)


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # missing, or not ours to read: so nothing in it is ours to remove
        return []


def _is_link(path: Path) -> bool:
    """Whether it is a link, including Windows' reparse points other than symbolic links."""
    try:
        status = path.lstat()
    except OSError:  # it was removed meanwhile
        return False
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & 0x400)  # FILE_ATTRIBUTE_REPARSE_POINT


def _remove(stored: StoredFiles, roots: tuple[Path, ...]) -> Removal:
    spared, files, size = [], 0, 0
    for path in stored.files:
        try:
            freed = path.lstat().st_size
            if not any(_real(path.parent).is_relative_to(root) for root in roots):
                raise OSError(0, "a link leads out of Waggle's folder")
            _unlink(path)
        except FileNotFoundError:  # another process removed it, which is what we want
            continue
        except OSError as error:
            if fnmatchcase(path.name, LOCK):  # of a running window: Windows lets nobody else remove it
                continue
            spared.append(FailedRemoval(path=str(path), reason=fault_of(error).reason))
            continue
        files, size = files + 1, size + freed
    return Removal(kind=stored.kind, files=files, size=size, spared=tuple(spared))


def _unlink(path: Path) -> None:
    """Remove a file. Windows refuses to remove read-only files, and key files are read-only."""
    if os.name == "nt" and not _is_link(path):
        path.chmod(stat.S_IWRITE)
    file_moves.unlink(path)


def _remove_empty(folder: Path) -> None:
    for path in _inside(folder):
        if not _is_link(path) and path.is_dir():
            _remove_empty(path)
    _rmdir(folder)


def _rmdir(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # it is not empty, or does not exist: both are fine
        return


def _real(path: Path) -> Path:
    """The real path of a folder: a person may have moved Waggle's folder and left a link."""
    return Path(os.path.realpath(path))
