"""The Windows that these tests use: built once, in a folder outside of the repository."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from windows.rig import PYTHON_PROGRAM, REPOSITORY, Rig

FOLDER = "WAGGLE_WINDOWS_RIG"


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """A running Windows with a copy of this repository in C:\\waggle, and no homes."""
    if not os.environ.get(FOLDER):
        pytest.skip(f"{FOLDER} names no folder for it")
    if os.geteuid():
        pytest.skip("it needs root, for chroot")
    windows = Rig(Path(os.environ[FOLDER]))
    if not windows.is_whole:
        windows.build()
    windows.copy_source(REPOSITORY)
    with windows.running():
        yield windows


@pytest.fixture(scope="session")
def waggle(rig) -> list[str]:
    """The command of Waggle there."""
    return [*rig.inside(), "wine", PYTHON_PROGRAM, "-m", "waggle"]
