"""The clipped objective, one table of hand-worked numbers run through numpy and torch."""

import math

import numpy as np
import pytest
import torch

from waggle.rl.objective import Clip, clipped_objective, is_clipped, sequence_reference, value_loss

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


@pytest.mark.parametrize("namespace", [np, torch])
def test_the_ratio_of_a_completion_is_the_geometric_mean_of_its_tokens(namespace):
    make = np.array if namespace is np else torch.tensor
    # completions of 2 and 3 tokens: ratios 2 and 8, mean 4; 1/2, 1/2 and 4, mean 1
    logp, log_ratios = np.array([0.0, 0.0, -1.0, -2.0, -3.0]), np.log([2, 8, 0.5, 0.5, 4])
    reference = sequence_reference(namespace, make(logp), make(logp - log_ratios), [2, 3])
    np.testing.assert_allclose(np.exp(logp - np.asarray(reference)), [4, 4, 1, 1, 1], rtol=1e-6)


def test_the_gradient_of_gspo_is_that_of_its_equation():
    """Equations 5 and 7 with autograd through the geometric mean, against what the backends compute, token by token."""
    noise, lengths, clip = np.random.default_rng(0), [1, 4, 7, 3], Clip(0.05, 0.08)
    old = torch.tensor(noise.normal(size=15))
    start = old + torch.tensor(noise.normal(size=15, scale=0.2))
    advantage = torch.tensor(noise.normal(size=4))

    published = start.clone().requires_grad_()
    ratios = [torch.exp(part.mean()) for part in (published - old).split(lengths)]
    terms = [torch.minimum(s * a, torch.clip(s, 1 - clip.low, 1 + clip.high) * a) for s, a in zip(ratios, advantage, strict=True)]
    loss = -sum(terms) / 4
    loss.backward()

    ours, per_token = start.clone().requires_grad_(), torch.tensor(lengths)
    reference = sequence_reference(torch, start, old, lengths)
    weight = (1 / (4 * per_token.double())).repeat_interleave(per_token)
    objective = clipped_objective(torch, ours, reference, advantage.repeat_interleave(per_token), weight, clip)
    objective.backward()
    assert float(objective.detach()) == pytest.approx(float(loss.detach()), rel=1e-12)
    assert 0 < int((published.grad == 0).sum()) < 15, "some completions are clipped, others are not"
    np.testing.assert_allclose(ours.grad.numpy(), published.grad.numpy(), rtol=1e-9, atol=1e-12)


# (V, V_old, R, larger one of (V - R)^2 and (V_old + clip(V - V_old, -.2, .2) - R)^2)
VALUES = [
    (0.1, 0.0, 1.0, 0.81),  # moved less than .2: its own error
    (0.5, 0.0, 1.0, 0.64),  # moved .5 towards the return: only .2 of it counts
    (-0.5, 0.0, 1.0, 2.25),  # moved .5 away: its own error, which is larger
    (1.5, 0.0, 1.0, 0.64),  # beyond the return: the error of .2 is the larger one
]


@pytest.mark.parametrize(("value", "before", "target", "squared"), VALUES)
@pytest.mark.parametrize("namespace", [np, torch])
def test_a_value_gains_no_more_from_moving_far(namespace, value, before, target, squared):
    make = np.array if namespace is np else torch.tensor
    loss = value_loss(namespace, make([value]), make([before]), make([target]), make([0.5]), 0.2)
    assert float(loss) == pytest.approx(0.5 * 0.5 * squared, rel=1e-6)
