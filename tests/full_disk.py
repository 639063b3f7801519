"""A full disk, as far as this process sees it: files that become longer than allowed cannot be written."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """Within the context, writing fails where a file would become longer than `size` bytes. Windows has no such limit: skips."""
    if sys.platform == "win32":
        pytest.skip("Windows has no limit for the size of files")
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
