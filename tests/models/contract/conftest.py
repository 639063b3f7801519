"""Run every test of the contract with every available backend: torch on the CPU and on CUDA, MLX on the CPU and on Metal."""

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
    """Small random models of every architecture, and one with an untied head."""
    tied = {kind: make_model(kind, tmp_path_factory.mktemp("model")) for kind in sorted(KINDS)}
    return tied | {"untied": make_model("llama", tmp_path_factory.mktemp("model"), tied=False)}


@pytest.fixture
def llama(folders) -> Path:
    return folders["llama"]
