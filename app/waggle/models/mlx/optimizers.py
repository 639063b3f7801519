"""AdamW (arXiv 1711.05101) in MLX, with bias correction, without weight decay; one weight after another, never two whole models.

mlx.optimizers' own leaves bias correction out unless asked, and counts one step for all weights; a value head may be younger.
"""

from collections.abc import Mapping

import mlx.core as mx
import numpy as np

from waggle.models.storage.checkpoint import Arrays

BETAS = (0.9, 0.95)
TINY = 1e-8
KINDS = ("exp_avg", "exp_avg_sq")


class AdamW:
    """The moments of named weights, in fp32, and how many steps each has seen."""

    def __init__(self) -> None:
        self._moments: dict[str, tuple[mx.array, mx.array]] = {}
        self._steps: dict[str, int] = {}

    def step(self, weights: dict[str, mx.array], gradient: dict[str, mx.array], rate: float, shrink: float) -> None:
        """Move `weights` where `gradient`, multiplied by `shrink`, has their names; takes the gradient out."""
        for name in list(weights):
            if name not in gradient:
                continue
            number = self._steps[name] = self._steps.get(name, 0) + 1
            pull = gradient.pop(name) * shrink
            mean, square = self._moments.pop(name) if number > 1 else (mx.zeros(pull.shape), mx.zeros(pull.shape))
            mean = mean + (1.0 - BETAS[0]) * (pull - mean)
            square = BETAS[1] * square + (1.0 - BETAS[1]) * pull * pull
            spread = mx.sqrt(square) / (1.0 - BETAS[1] ** number) ** 0.5 + TINY
            weights[name] = weights.pop(name) - (rate / (1.0 - BETAS[0] ** number)) * (mean / spread)
            self._moments[name] = (mean, square)
            del pull, mean, square, spread
            mx.eval(weights[name], self._moments[name])

    def steps(self, name: str) -> int:
        return self._steps.get(name, 0)

    def moments(self, weights: Mapping[str, mx.array]) -> Arrays:
        """What a checkpoint keeps: `KIND.NAME` for each weight."""
        moments: Arrays = {}
        for name, weight in weights.items():
            for kind, moment in zip(KINDS, self._moments.get(name, (None, None)), strict=True):
                moments[f"{kind}.{name}"] = np.zeros(weight.shape, np.float32) if moment is None else np.asarray(moment)
        return moments

    def restore(self, weights: Mapping[str, mx.array], moments: Arrays, steps: int) -> None:
        """Take moments over, each out of what is given; where there are none of this kind, begin anew."""
        for name in weights:
            if steps and f"{KINDS[0]}.{name}" in moments:
                first, second = (mx.array(moments.pop(f"{kind}.{name}")) for kind in KINDS)
                self._moments[name] = first, second
                self._steps[name] = steps
        mx.eval(self._moments)
