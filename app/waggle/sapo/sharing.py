"""Which groups to train on: I local and J external ones, drawn uniformly (SAPO, algorithm 1, step 4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waggle.rl.advantage import teaches
from waggle.tasks.group import JudgedGroup


@dataclass(frozen=True)
class TrainingSet:
    """`local` holds positions in this round's own groups; `external` the peers' groups themselves."""

    local: tuple[int, ...]
    external: tuple[JudgedGroup, ...]


def draw_training_set(
    own: int, pool: Sequence[JudgedGroup], *, local: int, external: int, noise: np.random.Generator
) -> TrainingSet:
    """Draw from `own` local groups and a pool. External groups that teach nothing are dropped first; where the pool is
    short, own groups take the empty places."""
    useful = [group for group in pool if teaches(group.rewards)]
    gathered = noise.permutation(len(useful))[:external]
    places = min(own, local + external - len(gathered))
    kept = sorted(int(i) for i in noise.permutation(own)[:places])
    return TrainingSet(local=tuple(kept), external=tuple(useful[i] for i in gathered))
