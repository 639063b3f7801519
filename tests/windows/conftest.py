"""The Windows that these tests use: built once, in a folder outside of the repository."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from windows.rig import PYTHON_PROGRAM, REPOSITORY, Rig

FOLDER = "WAGGLE_WINDOWS_RIG"
KEEP = "WAGGLE_WINDOWS_KEEP_RESULTS"


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
        windows.end_programs()  # of a run that was ended from outside
        yield windows


@pytest.fixture(autouse=True)
def same_priority() -> None:
    """In place of the check of all other tests: the system may lower the priority of what runs for so long."""


@pytest.fixture(scope="session")
def results_folder(rig) -> Path:
    """Where the results of suites stay. The command that measures clears it for a new commit; without it, each session is new."""
    folder = rig.drive / "results"
    if not os.environ.get(KEEP):
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def waggle(rig) -> list[str]:
    """The command of Waggle there."""
    return [*rig.inside(), "wine", PYTHON_PROGRAM, "-m", "waggle"]
