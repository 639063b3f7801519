"""The backends under test, each with its tolerance against the reference."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from waggle.models.shared.decoding import DecodingBatch
from waggle.models.shared.training_mode import TrainingMode


@dataclass(frozen=True)
class Backend:
    """A backend and its tolerances: `logp` absolute, `gradient` relative. GPUs add in no fixed order: results are close."""

    name: str
    logp: float = 2e-5
    gradient: float = 1e-5
    exact: bool = True

    @property
    def missing(self) -> str:
        """Why the backend cannot be tested here; empty if it can."""
        library = "torch" if self.name in ("torch", "cuda", "generic") else "mlx"
        if find_spec(library) is None:
            return f"{library} is not installed"
        if self.name == "cuda":
            import torch

            return "" if torch.cuda.is_available() else "torch finds no CUDA card here"
        if self.name.startswith("mlx-lm") and find_spec("mlx_lm") is None:
            return "mlx-lm is not installed"
        if self.name in ("metal", "mlx-lm on metal"):
            import mlx.core as mx

            return "" if mx.metal.is_available() else "there is no Metal here"
        return ""

    @contextlib.contextmanager
    def at_work(self) -> Iterator["Backend"]:
        """Select the device of MLX for a test; skip the test if it is missing."""
        if self.missing:
            pytest.skip(self.missing)
        if self.name in ("torch", "cuda", "generic"):
            yield self
            return
        import mlx.core as mx

        before = mx.default_device()
        mx.set_default_device(mx.gpu if self.name in ("metal", "mlx-lm on metal") else mx.cpu)
        yield self
        mx.set_default_device(before)

    @property
    def rows(self) -> type[DecodingBatch]:
        """The decoding batch of the backend."""
        if self.name in ("torch", "cuda"):
            from waggle.models.torch.cuda_graphs import GraphDecodingBatch
            from waggle.models.torch.decoding import TorchDecodingBatch

            return GraphDecodingBatch if self.name == "cuda" else TorchDecodingBatch
        if self.name == "generic":
            from waggle.models.generic.decoding import GenericDecodingBatch

            return GenericDecodingBatch
        if self.name.startswith("mlx-lm"):
            from waggle.models.mlx_generic.decoding import MlxLmDecodingBatch

            return MlxLmDecodingBatch
        from waggle.models.mlx.decoding import MlxDecodingBatch

        return MlxDecodingBatch

    def open(self, folder: Path, **training: Any) -> Any:
        """A policy."""
        if self.name in ("torch", "cuda"):
            from waggle.models.torch.policy import TorchPolicy

            return TorchPolicy(folder, device="cuda" if self.name == "cuda" else "cpu", training=TrainingMode(**training))
        if self.name == "generic":
            if training.get("method") == "lora":
                pytest.importorskip("peft")
            from waggle.models.generic.policy import GenericPolicy

            return GenericPolicy(folder, training=TrainingMode(**training))
        if self.name.startswith("mlx-lm"):
            from waggle.models.mlx_generic.policy import MlxLmPolicy

            return MlxLmPolicy(folder, training=TrainingMode(**training))
        from waggle.models.mlx.policy import MlxPolicy

        return MlxPolicy(folder, training=TrainingMode(**training))


BACKENDS = (
    Backend("torch"),
    Backend("cuda", logp=1e-4, gradient=1e-4, exact=False),
    Backend("generic"),
    Backend("mlx"),
    Backend("mlx-lm"),
    Backend("mlx-lm on metal", logp=2e-3, gradient=2e-3, exact=False),
    Backend("metal", logp=2e-3, gradient=2e-3, exact=False),
)
