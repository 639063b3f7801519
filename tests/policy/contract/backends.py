"""The backends that obey the contract, each with how closely it agrees with the reference."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from waggle.policy.training import Training


@dataclass(frozen=True)
class Backend:
    """`logp` is absolute and `gradient` relative. Metal adds up in no fixed order: what is exact elsewhere is close there."""

    name: str
    logp: float = 2e-5
    gradient: float = 1e-5
    exact: bool = True

    @contextlib.contextmanager
    def at_work(self) -> Iterator["Backend"]:
        """With MLX on the right device; skipped where that is not here."""
        if self.name == "torch":
            pytest.importorskip("torch")
            yield self
            return
        mx = pytest.importorskip("mlx.core")
        if self.name == "metal" and not mx.metal.is_available():
            pytest.skip("there is no Metal here")
        before = mx.default_device()
        mx.set_default_device(mx.gpu if self.name == "metal" else mx.cpu)
        yield self
        mx.set_default_device(before)

    def open(self, folder: Path, **training: Any) -> Any:
        """A policy."""
        if self.name == "torch":
            from waggle.policy.torch_policy import TorchPolicy

            return TorchPolicy(folder, training=Training(**training))
        from waggle.policy.mlx_policy import MlxPolicy

        return MlxPolicy(folder, training=Training(**training))


BACKENDS = (Backend("torch"), Backend("mlx"), Backend("metal", logp=2e-3, gradient=2e-3, exact=False))
