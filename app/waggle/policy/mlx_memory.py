"""What MLX says for want of memory becomes MemoryShort."""

import contextlib
from collections.abc import Iterator

import mlx.core as mx

from waggle.errors import MemoryShort


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raises MemoryShort; whatever was cached goes back to the system either way."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and "alloc" not in str(error) and "Memory" not in str(error):
            raise
        raise MemoryShort("The model ran out of memory.", "Close other programs, or lower learning.group_size.") from error
    finally:
        mx.clear_cache()
