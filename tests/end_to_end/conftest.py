"""Figures that a run measures: `pytest tests/end_to_end --figures FILE` writes them down as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, help="write what the end-to-end runs measured to this file")


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Iterator[dict[str, float]]:
    """Tests put their figures here."""
    measured: dict[str, float] = {}
    yield measured
    if path := pytestconfig.getoption("--figures"):
        path.write_text(json.dumps(measured, indent=2))
