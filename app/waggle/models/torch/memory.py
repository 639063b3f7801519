"""What torch and libraries below it say for want of memory, in many ways, becomes MemoryShort; what is free is given back."""

import contextlib
import ctypes
import re
import sys
from collections.abc import Iterator

import torch

from waggle.core.errors import MemoryShort

# In a RuntimeError of some kind. For what it cannot compute at all, oneDNN could not create "a primitive descriptor".
SHORT = re.compile(
    "DefaultCPUAllocator|could not create a primitive(?! descriptor)|out of memory|STATUS_ALLOC_FAILED|OUT_OF_DEVICE_MEMORY|"
    "OUT_OF_HOST_MEMORY|Cannot allocate memory"
)


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raises MemoryShort."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        plain = not isinstance(error, torch.OutOfMemoryError | MemoryError)
        if plain and not SHORT.search(str(error)):
            raise
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error


def give_back_on_cards() -> None:
    """Let other programs, and whatever keeps memory of its own, have what is free on graphics cards."""
    with contextlib.suppress(RuntimeError):  # where a recording failed, torch may take it for unfinished for ever
        torch.cuda.empty_cache()
    torch.xpu.empty_cache()


def give_back() -> None:
    """Let the system have what is free: glibc keeps it between what is used, and phases of a round need pieces of other sizes."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other libraries of C have none
        if trim is not None:
            trim(0)
