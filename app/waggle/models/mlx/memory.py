"""Memory in MLX: the working set that Metal recommends, and out-of-memory errors as MemoryShort."""

import contextlib
from collections.abc import Iterator

import mlx.core as mx

from waggle.core.errors import MemoryShort


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryShort for out-of-memory errors within this context. Afterwards cached memory is returned to the system."""
    try:
        yield
        mx.synchronize()  # Metal may report a failed allocation only here
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and "alloc" not in str(error) and "Memory" not in str(error):
            raise
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error
    finally:
        mx.clear_cache()


def recommended_bytes() -> int | None:
    """The largest working set that Metal recommends, in bytes; None without Metal."""
    return int(mx.device_info()["max_recommended_working_set_size"]) if mx.metal.is_available() else None
