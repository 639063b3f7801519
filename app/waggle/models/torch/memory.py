"""Turn the out-of-memory errors of torch and its libraries into MemoryShort, and return free memory to the system."""

import contextlib
import re
from collections.abc import Iterator

import torch

from waggle.core.errors import MemoryShort

# Texts of RuntimeErrors. "could not create a primitive descriptor" is not one: oneDNN says that of unsupported operations.
SHORT = re.compile(
    "DefaultCPUAllocator|could not create a primitive(?! descriptor)|out of memory|STATUS_ALLOC_FAILED|OUT_OF_DEVICE_MEMORY|"
    "OUT_OF_HOST_MEMORY|Cannot allocate memory"
)


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryShort for any out-of-memory error within this context."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        plain = not isinstance(error, torch.OutOfMemoryError | MemoryError)
        if plain and not SHORT.search(str(error)):
            raise
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error


def give_back_on_cards() -> None:
    """Release cached GPU memory for other programs and for libraries with allocators of their own."""
    with contextlib.suppress(RuntimeError):  # after a failed graph capture, torch may believe for ever that one is under way
        torch.cuda.empty_cache()
    torch.xpu.empty_cache()
