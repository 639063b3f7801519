"""Time the same round in Waggle on the generic path, over transformers."""

from pathlib import Path

from waggle.models.generic.policy import GenericPolicy
from waggle_lab.benchmark import waggle
from waggle_lab.benchmark.cells import Cell
from waggle_lab.benchmark.clock import Measurement


def measure(cell: Cell, folder: Path) -> Measurement:
    """Time the rounds of a cell, after a short round that is not timed."""
    return waggle.measure(cell, folder, GenericPolicy)
