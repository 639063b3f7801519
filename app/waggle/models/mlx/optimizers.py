"""AdamW (arXiv 1711.05101) in MLX, with bias correction and without weight decay, one weight after another.

`mlx.optimizers.AdamW` updates all weights in one graph, which takes 1.2 times the model's memory on top. It has one step count,
while a value head may be younger, and rounds differently, so that checkpoints would not continue to the bit (decision 28).
"""

from collections.abc import Mapping

import mlx.core as mx
import numpy as np

from waggle.models.storage.checkpoint import Arrays

BETAS = (0.9, 0.95)
EPSILON = 1e-8
KINDS = ("exp_avg", "exp_avg_sq")


class AdamW:
    """The moments of named weights, in fp32, and the number of steps of each."""

    def __init__(self) -> None:
        self._moments: dict[str, tuple[mx.array, mx.array]] = {}
        self._steps: dict[str, int] = {}

    def step(self, weights: dict[str, mx.array], gradient: dict[str, mx.array], rate: float, shrink: float) -> None:
        """Update `weights` by their gradients, multiplied by `shrink`. Removes the gradients, to free their memory."""
        for name in list(weights):
            if name not in gradient:
                continue
            number = self._steps[name] = self._steps.get(name, 0) + 1
            pull = gradient.pop(name) * shrink
            mean, square = self._moments.pop(name) if number > 1 else (mx.zeros(pull.shape), mx.zeros(pull.shape))
            mean = mean + (1.0 - BETAS[0]) * (pull - mean)
            square = BETAS[1] * square + (1.0 - BETAS[1]) * pull * pull
            spread = mx.sqrt(square) / (1.0 - BETAS[1] ** number) ** 0.5 + EPSILON
            weights[name] = weights.pop(name) - (rate / (1.0 - BETAS[0] ** number)) * (mean / spread)
            self._moments[name] = (mean, square)
            del pull, mean, square, spread
            mx.eval(weights[name], self._moments[name])

    def steps(self, name: str) -> int:
        return self._steps.get(name, 0)

    def moments(self, weights: Mapping[str, mx.array]) -> Arrays:
        """The moments for a checkpoint: `KIND.NAME` for each weight."""
        moments: Arrays = {}
        for name, weight in weights.items():
            for kind, moment in zip(KINDS, self._moments.get(name, (None, None)), strict=True):
                moments[f"{kind}.{name}"] = np.zeros(weight.shape, np.float32) if moment is None else np.asarray(moment)
        return moments

    def restore(self, weights: Mapping[str, mx.array], moments: Arrays, steps: int) -> None:
        """Load moments, removing each from the argument; without moments of AdamW, start with none."""
        for name in weights:
            if steps and f"{KINDS[0]}.{name}" in moments:
                first, second = (mx.array(moments.pop(f"{kind}.{name}")) for kind in KINDS)
                self._moments[name] = first, second
                self._steps[name] = steps
        mx.eval(self._moments)
