"""Groups of random completions, without transformers, whose import takes seconds."""

import numpy as np

from waggle.rl.batch import TrainingGroup


def group(size: int, length: int) -> TrainingGroup:
    noise = np.random.default_rng(0)
    completions = tuple(noise.integers(2, 97, length).astype(np.int32) for _ in range(size))
    return TrainingGroup(np.arange(2, 40, dtype=np.int32), completions, *noise.random((2, size * length), dtype=np.float32))
