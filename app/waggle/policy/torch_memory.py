"""What torch and the libraries below it say for want of memory, in many ways, becomes MemoryShort."""

import contextlib
from collections.abc import Iterator

import torch

from waggle.errors import MemoryShort

SHORT = (  # in a RuntimeError of some kind
    "DefaultCPUAllocator", "could not create a primitive", "out of memory", "STATUS_ALLOC_FAILED", "OUT_OF_DEVICE_MEMORY",
    "OUT_OF_HOST_MEMORY", "Cannot allocate memory",
)  # fmt: skip


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raises MemoryShort."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        plain = not isinstance(error, torch.OutOfMemoryError | MemoryError)
        if plain and not any(words in str(error) for words in SHORT):
            raise
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error
