"""Every test of the contract runs with every backend there is here: torch on the CPU and on CUDA, MLX on the CPU and on Metal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.contract.backends import BACKENDS, Backend
from models.tiny_models import KINDS, make_model


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request) -> Iterator[Backend]:
    with request.param.at_work() as ready:
        yield ready


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A small random model of every kind, and one whose head is a weight of its own."""
    tied = {kind: make_model(kind, tmp_path_factory.mktemp("model")) for kind in sorted(KINDS)}
    return tied | {"untied": make_model("llama", tmp_path_factory.mktemp("model"), tied=False)}


@pytest.fixture
def llama(folders) -> Path:
    return folders["llama"]
