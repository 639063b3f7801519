"""Memory in MLX: how much of it Metal recommends to use; what MLX says for want of it becomes MemoryShort."""

import contextlib
from collections.abc import Iterator

import mlx.core as mx

from waggle.core.errors import MemoryShort


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raises MemoryShort; whatever was cached goes back to the system either way."""
    try:
        yield
        mx.synchronize()  # Metal may say only then that what was asked of it found no memory
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and "alloc" not in str(error) and "Memory" not in str(error):
            raise
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error
    finally:
        mx.clear_cache()


def recommended() -> int | None:
    """The bytes that Metal recommends to use at most; None where there is no Metal."""
    return int(mx.device_info()["max_recommended_working_set_size"]) if mx.metal.is_available() else None
