"""The clipped objective, one table of hand-worked numbers run through numpy and torch."""

import math

import numpy as np
import pytest
import torch

from waggle.rl.objective import Clip, clipped_objective, is_clipped

CLIP = Clip(low=0.2, high=0.28)
# (ratio, advantage, value of min(r A, clip(r) A), whether the gradient is cut)
TABLE = [
    (1.0, 2.0, 2.0, False),
    (1.0, -2.0, -2.0, False),
    (1.5, 1.0, 1.28, True),  # above the range and pulled up: cut
    (1.5, -1.0, -1.5, False),  # above the range but pushed down: free to come back
    (0.5, 1.0, 0.5, False),  # below the range but pulled up: free to come back
    (0.5, -1.0, -0.8, True),  # below the range and pushed down: cut
    (1.28, 1.0, 1.28, False),
    (0.8, -1.0, -0.8, False),
]


@pytest.mark.parametrize(("ratio", "advantage", "value", "cut"), TABLE)
@pytest.mark.parametrize("namespace", [np, torch])
def test_the_objective_clips_on_the_side_the_advantage_pulls_to(namespace, ratio, advantage, value, cut):
    make = np.array if namespace is np else torch.tensor
    logp, old = make([math.log(ratio) - 3.0]), make([-3.0])
    loss = clipped_objective(namespace, logp, old, make([advantage]), make([0.5]), CLIP)
    assert float(loss) == pytest.approx(-0.5 * value, rel=1e-5)
    if ratio not in (1.28, 0.8):  # on the very edge rounding decides
        assert bool(is_clipped(logp, old, make([advantage]), CLIP)[0]) is cut


def test_the_gradient_vanishes_exactly_where_the_clip_cuts():
    for ratio, advantage, _, cut in TABLE[:6]:
        logp = torch.tensor([math.log(ratio)], requires_grad=True)
        clipped_objective(torch, logp, torch.zeros(1), torch.tensor([advantage]), torch.ones(1), CLIP).backward()
        assert (logp.grad.item() == 0.0) is cut
        if not cut:
            assert logp.grad.item() == pytest.approx(-ratio * advantage, rel=1e-5)
