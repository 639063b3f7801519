"""Files of a model's folder, which strangers wrote: only regular ones are read, and only up to a bound.

A pipe would block its reader for ever, and a device has no end. A link to a regular file is fine: caches of the hub are made of
them.
"""

import stat
from pathlib import Path

from waggle.core.errors import ModelError
from waggle.core.message import Figure, Message
from waggle.core.system.os_faults import fault_of

COPY_AGAIN = Message("Copy or download the model again.")


def require_files(folder: Path) -> None:
    """Raise ModelError if a folder holds anything but files, folders and links to them."""
    for path in folder.iterdir():
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ModelError(Message("%1 is not a file.", path), COPY_AGAIN)


def size_of(path: Path, limit: int) -> int:
    """The bytes of a regular file. Raises ModelError if it is none, or has more than `limit`, and OSError."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(Message("%1 is not a file.", path), COPY_AGAIN)
    if status.st_size > limit:
        raise ModelError(Message("%1 is too large: it has more than %2 MB.", path, Figure(limit / 1e6)), "Choose another model.")
    return status.st_size


def unread(what: Path, error: Exception) -> ModelError:
    """The error for a model, or one of its files, that cannot be read. Only where its content is to blame another copy helps."""
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
        return ModelError(Message("%1 cannot be read: %2.", what, fault_of(error).reason), fault_of(error).advice)
    return ModelError(Message("%1 cannot be read: %2.", what, error), COPY_AGAIN)


def content_of(path: Path, limit: int) -> bytes:
    """The content of a regular file. Raises ModelError as `size_of` does, and OSError."""
    size_of(path, limit)
    with path.open("rb") as file:
        content = file.read(limit + 1)  # some files of the system claim to be empty
    if len(content) > limit:
        raise ModelError(Message("%1 is too large: it has more than %2 MB.", path, Figure(limit / 1e6)), "Choose another model.")
    return content
