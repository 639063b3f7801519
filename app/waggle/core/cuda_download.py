"""The CUDA pack: torch for NVIDIA graphics cards. It is too large for an installer, so a person can download it.

    CACHE/cuda/.downloading-2.13.0/  an unfinished download
    CACHE/cuda/2.13.0/               complete and checked: the installed app uses it from its next start

The list of its files and their hashes ships with Waggle, so their server cannot change them. The pack leaves out triton, which
compiles kernels that Waggle does not use. It exists for Linux only, because the package index has no CUDA for other systems.
"""

import hashlib
import os
import platform
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from waggle.core import connection_faults, paths, resumable_download
from waggle.core.errors import CudaError
from waggle.core.message import NOTHING, Figure, Message, in_turn
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of

if TYPE_CHECKING:
    import httpx2

ROOM = 500_000_000  # bytes that stay free on the disk
DRIVER = Path("/proc/driver/nvidia/version")
PART_STAYS = Message("What was downloaded is kept.")
OFFERED = Message("an NVIDIA graphics card was found; CUDA, which computes on it, can be downloaded")
UNUSABLE = Message("CUDA is here, but it finds no graphics card that it can use: its driver may be too old, 580 is needed")

Progress = Callable[[int, int], None]  # bytes downloaded, bytes in all


class Wheel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the package index."""

    url: str
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    size: Annotated[int, msgspec.Meta(ge=1)]

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


class CudaPack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files of one version of torch, and the system that they fit."""

    torch: Annotated[str, msgspec.Meta(pattern=r"^[0-9][0-9.]*\Z")]
    python: str
    system: str
    machine: str
    unpacked: int  # bytes on the disk
    wheels: tuple[Wheel, ...]

    @property
    def size(self) -> int:
        return sum(wheel.size for wheel in self.wheels)


PackState = Literal["", "offered", "begun", "here"]


def shipped_pack() -> CudaPack:
    """The pack that this version of Waggle knows."""
    return msgspec.json.decode((paths.resources() / "cuda.json").read_bytes(), type=CudaPack)


def packs_folder() -> Path:
    return paths.cache() / "cuda"


def folder_of(pack: CudaPack, root: Path) -> Path:
    return root / pack.torch


def fits(pack: CudaPack) -> bool:
    """Whether this program can load it: only the installed app can, on the right system."""
    here = (f"{sys.version_info[0]}.{sys.version_info[1]}", sys.platform, platform.machine())
    return bool(getattr(sys, "frozen", False)) and here == (pack.python, pack.system, pack.machine)


def state_of(pack: CudaPack, root: Path) -> PackState:
    """How much of it is here; empty if there is no card to offer it for."""
    if folder_of(pack, root).is_dir():
        return "here"
    if _unfinished_folder(pack, root).is_dir():
        return "begun"
    return "offered" if DRIVER.exists() else ""


def use() -> None:
    """Make this process import torch from the pack, if it is here. The installed app calls it first of all."""
    pack = shipped_pack()
    if fits(pack) and state_of(pack, packs_folder()) == "here":
        sys.path.insert(0, str(folder_of(pack, packs_folder())))


def why_unusable() -> Message:
    """Why torch finds no NVIDIA card, if the pack explains it; else empty."""
    pack = shipped_pack()
    if not fits(pack):
        return NOTHING
    return {"offered": OFFERED, "begun": OFFERED, "here": UNUSABLE, "": NOTHING}[state_of(pack, packs_folder())]


def fetch(pack: CudaPack, root: Path, progress: Progress) -> Path:
    """Download what is missing, check and unpack it. Raises CudaError. An interrupted download keeps what has arrived."""
    from filelock import FileLock, Timeout

    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".lock", timeout=0):
            if not folder_of(pack, root).is_dir():
                _complete(pack, root, progress)
    except Timeout as error:
        raise CudaError("CUDA is being downloaded by another window of Waggle.", "Wait until that is done.") from error
    except OSError as error:
        fault = fault_of(error)
        raise CudaError(
            Message("CUDA cannot be written to the disk: %1.", fault.reason),
            in_turn(PART_STAYS, fault.advice),
        ) from error
    return folder_of(pack, root)


def remove(root: Path) -> None:
    """Remove all packs. Raises CudaError. A process that uses one can continue."""
    try:
        if root.is_dir():
            file_moves.remove_tree(root)
    except OSError as error:
        raise CudaError(Message("CUDA cannot be removed: %1.", fault_of(error).reason), fault_of(error).advice) from error


def _unfinished_folder(pack: CudaPack, root: Path) -> Path:
    return root / f".downloading-{pack.torch}"


def _complete(pack: CudaPack, root: Path, progress: Progress) -> None:
    place = _unfinished_folder(pack, root)
    (place / "site").mkdir(parents=True, exist_ok=True)
    missing = [wheel for wheel in pack.wheels if not (place / f"{wheel.name}.done").exists()]
    _require_room(pack, place, missing)
    done = pack.size - sum(wheel.size for wheel in missing)
    for wheel in missing:
        part = place / f"{wheel.name}.part"
        _get(wheel, part, partial(_add_up, progress, done, pack.size))
        with zipfile.ZipFile(part) as packed:
            packed.extractall(place / "site")
        if hasattr(os, "sync"):
            os.sync()  # the files must be on the disk before the mark says so, even if the power fails
        (place / f"{wheel.name}.done").touch()
        file_moves.unlink(part)
        done += wheel.size
    file_moves.replace(place / "site", folder_of(pack, root))
    for other in root.iterdir():  # earlier versions, and the rest of this download
        if other.is_dir() and other != folder_of(pack, root):
            file_moves.remove_tree(other)


def _add_up(progress: Progress, done: int, total: int, here: int) -> None:
    progress(done + here, total)


def _require_room(pack: CudaPack, place: Path, missing: list[Wheel]) -> None:
    """Raise CudaError if the disk is too full. A file is unpacked when it has arrived, so at most one exists twice."""
    largest = max((wheel.size for wheel in missing), default=0)
    needed = round(pack.unpacked * sum(wheel.size for wheel in missing) / pack.size) + largest
    free = shutil.disk_usage(place).free
    if needed + ROOM > free:
        title = Message(
            "CUDA needs %1 GB more, and the disk has %2 GB free.",
            Figure(needed / 1e9, 1),
            Figure(free / 1e9, 1),
        )
        raise CudaError(title, "Make room on the disk, then go on.")


def _get(wheel: Wheel, part: Path, progress: Callable[[int], None]) -> None:
    """Download one file and check it. A damaged file is thrown away and downloaded once more. Raises CudaError."""
    import httpx2

    connection_faults.require_usable_settings(CudaError)
    for _ in range(2):
        try:
            resumable_download.fetch(part, wheel.size, partial(_request, wheel), progress)
        except httpx2.HTTPError as error:
            raise _in_words(error, wheel) from error
        with part.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() == wheel.sha256:
                return
        file_moves.unlink(part)
    raise CudaError(Message("%1 arrived damaged, twice.", wheel.name), "Something on the way changes files. Try another network.")


def _in_words(error: "httpx2.HTTPError", wheel: Wheel) -> CudaError:
    import httpx2

    if cause := connection_faults.cause_of(error):
        return CudaError(cause.title, in_turn(cause.advice, PART_STAYS))
    if isinstance(error, httpx2.HTTPStatusError):
        title = Message("The package index answered %1 when asked for %2.", error.response.status_code, wheel.name)
        return CudaError(title, "Try again later; what was downloaded is kept.")
    if isinstance(error, httpx2.TransportError):
        return CudaError("The package index cannot be reached.", "What was downloaded is kept. Go on when there is a connection.")
    return CudaError(
        Message("The package index sends %1 in a form that cannot be read, or in circles.", wheel.name),
        "Something on the way changes files. Try another network. What was downloaded is kept.",
    )


@contextmanager
def _request(wheel: Wheel, headers: dict[str, str]) -> "Iterator[httpx2.Response]":
    import httpx2

    with httpx2.stream("GET", wheel.url, headers=headers, timeout=20.0, follow_redirects=True) as response:
        response.raise_for_status()
        yield response
