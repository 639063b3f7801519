"""The opening note: which model is being opened, written down first, so that a death in the middle is noticed at the next start.

The note is removed when the model was opened or could not be, and when the engine is asked to end. If it is still there at the
next start, opening that model ended the engine. Then the model counts as failed until its files change or a person chooses a
model. A kill for memory leads to smaller parts first (see memory_backoff.py): the model fails when there are no smaller ones.
If the computer started anew meanwhile, it may have been a power cut: the model is opened once more, and fails if that is cut off.
"""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil
from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import UNREADABLE, ModelMissing
from waggle.core.message import Message
from waggle.core.settings import ModelSettings
from waggle.core.system import file_moves
from waggle.models.inspection import inspector

log = logging.getLogger(__name__)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class OpenedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model as it was chosen, and a digest of its files' names, sizes and times."""

    name: str
    folder: str
    files: str

    def is_chosen(self, model: ModelSettings) -> bool:
        return (self.name, self.folder) == (model.name, model.folder)


class StoredOpening(msgspec.Struct, frozen=True, kw_only=True):
    """`opening.json`: the model that is being opened, and the one whose opening ended an engine.

    `boot`: the computer's start since which it is being opened. `cut_off`: the one that was being opened when the computer went
    down.
    """

    opening: OpenedModel | None = None
    failed: OpenedModel | None = None
    boot: str = ""
    cut_off: OpenedModel | None = None


class OpeningNote:
    """The note in a home."""

    def __init__(self, home: paths.Home) -> None:
        self._path = home.root / "opening.json"

    def start(self, *, retry: bool) -> None:
        """At the engine's start: a model whose opening ended the last one has failed, unless it is to be opened once more."""
        stored = self._read()
        if stored.opening is None:
            return
        log.info("the last engine ended while it opened %s", stored.opening.name or stored.opening.folder)
        if stored.boot not in ("", boot_id()) and stored.cut_off != stored.opening:
            self._write(StoredOpening(failed=stored.failed, cut_off=stored.opening))
        else:
            self._write(StoredOpening(failed=stored.failed if retry else stored.opening))

    def has_failed(self, model: ModelSettings) -> bool:
        """Whether opening this model ended the engine. Its files may have changed since."""
        failed = self._read().failed
        return failed is not None and failed.is_chosen(model)

    def forget_failure(self) -> None:
        """A person chooses a model: it may be opened, whatever happened before."""
        self._write(replace(self._read(), failed=None, cut_off=None))

    def end(self) -> None:
        """The engine was asked to end: if it is killed because that takes long, the model is not to blame."""
        self._write(replace(self._read(), opening=None, boot="", cut_off=None))

    @contextmanager
    def opening(self, model: ModelSettings, folder: Path) -> Iterator[None]:
        """Note that a model is being opened, until it is open or cannot be.

        Raises ModelMissing for a model that has failed and whose files are the same.
        """
        now = OpenedModel(name=model.name, folder=model.folder, files=_digest_of(folder))
        stored = self._read()
        if stored.failed == now:
            raise ModelMissing(
                Message(
                    "The engine ended while it opened the model in %1. It opens this model only if you choose it "
                    "once more, on the page Models or with `waggle model choose`.",
                    folder,
                ),
                "Choose another model, or this one once more.",
            )
        failed = None if stored.failed is None or stored.failed.is_chosen(model) else stored.failed
        self._write(StoredOpening(opening=now, failed=failed, boot=boot_id(), cut_off=stored.cut_off))
        try:
            yield
        finally:
            self._write(StoredOpening(failed=failed))

    def _read(self) -> StoredOpening:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=StoredOpening)
        except (OSError, *UNREADABLE):  # none, or a damaged one, which says nothing of any model
            return StoredOpening()

    def _write(self, stored: StoredOpening) -> None:
        """Write the file, or remove it if it would say nothing. A full disk is no reason not to open a model."""
        with suppress(OSError):
            if stored == StoredOpening():
                file_moves.unlink(self._path, missing_ok=True)
            elif stored != self._read():
                paths.write_atomically(self._path, msgspec.json.encode(stored))


def boot_id() -> str:
    """What changes when the computer starts anew."""
    with suppress(OSError):
        return BOOT_ID.read_text().strip()
    return f"{psutil.boot_time():.0f}"  # other systems than Linux: the second of the start, as their kernels keep it


def _digest_of(folder: Path) -> str:
    return hashlib.sha256(repr(inspector.stamp_of(folder)).encode()).hexdigest()
