"""Print the peak memory (GiB) of a process that opens a model and learns twice from a group of 8 completions of 64 tokens.

    PYTHONPATH=app .venv/bin/python -P tests/measured/peak_of_learning.py mlx|torch full|lora FOLDER

The precision is fp32, activations are recomputed, and the prompt has 150 tokens.
"""

import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from waggle.models.shared.training_mode import TrainingMode
from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup


def main(backend: str, method: Any, folder: Path) -> None:
    policy = open_policy(backend, folder, TrainingMode(method=method, recompute=True))
    noise = np.random.default_rng(0)
    prompt = noise.integers(2, 500, 150).astype(np.int32)
    completions = tuple(noise.integers(2, 500, 64).astype(np.int32) for _ in range(8))
    count = sum(map(len, completions))
    batch = TrainingGroup(
        prompt, completions, np.linspace(-1, 1, count).astype(np.float32), np.full(count, 1 / count, np.float32)
    )
    policy.sample([prompt], noise.random((8, 2), dtype=np.float32), SamplingParams(max_new=2, stops=(1,)))
    for _ in range(2):
        assert policy.step([batch], StepParams(learning_rate=1e-6)).applied
    print(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20), 2))


def open_policy(backend: str, folder: Path, training: TrainingMode) -> Any:
    if backend == "mlx":
        from waggle.models.mlx.policy import MlxPolicy

        return MlxPolicy(folder, training=training)
    from waggle.models.torch.policy import TorchPolicy

    return TorchPolicy(folder, training=training)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
