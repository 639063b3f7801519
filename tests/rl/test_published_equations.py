"""Each rule as its paper writes it, with loops over groups, completions and tokens, against what a step computes from it.

Loss and gradient by the log-probs. `tests/measured/rules.py` compares the same with TRL.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from waggle.rl.objective import clipped_objective, sequence_reference
from waggle.rl.update_rules import rule
from waggle.rl.update_rules.interface import ScoredGroup

LONGEST, TINY = 10, 1e-4  # tokens; the constant beside the standard deviation
REWARDS = ((1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.5, 0.0, 0.0, 1.0))
LENGTHS = ((2, 10, 9, 4), (3, 8, 1), (5, 5, 2, 10, 7))


def normalized(rewards: list[float]) -> list[float]:
    mean = sum(rewards) / len(rewards)
    deviation = (sum((reward - mean) ** 2 for reward in rewards) / len(rewards)) ** 0.5
    return [(reward - mean) / (deviation + TINY) for reward in rewards]


def clipped(ratio: float, advantage: float, low: float, high: float) -> float:
    return min(ratio * advantage, min(max(ratio, 1 - low), 1 + high) * advantage)


def grpo(ratios: list[list[list[float]]]) -> float:
    """arXiv 2402.03300, equation 3 without KL, averaged over questions; the clip is SAPO's."""
    total = 0.0
    for group, rewards in zip(ratios, REWARDS, strict=True):
        for tokens, advantage in zip(group, normalized(list(rewards)), strict=True):
            total += sum(clipped(ratio, advantage, 0.2, 0.28) for ratio in tokens) / len(tokens) / len(group)
    return total / len(ratios)


def dr_grpo(ratios: list[list[list[float]]]) -> float:
    """arXiv 2503.20783, section 3.2: no division by the length, nor by the standard deviation; a constant instead."""
    total = 0.0
    for group, rewards in zip(ratios, REWARDS, strict=True):
        mean = sum(rewards) / len(rewards)
        for tokens, reward in zip(group, rewards, strict=True):
            total += sum(clipped(ratio, reward - mean, 0.2, 0.28) for ratio in tokens) / LONGEST / len(group)
    return total / len(ratios)


def dapo(ratios: list[list[list[float]]]) -> float:
    """arXiv 2503.14476, equations 8, 9 and 13, with one sum over the tokens of the batch as in the authors' code."""
    total, count = 0.0, 0
    for group, rewards in zip(ratios, REWARDS, strict=True):
        shaped, buffer = [], LONGEST / 5
        for tokens, reward in zip(group, rewards, strict=True):
            if len(tokens) <= LONGEST - buffer:
                shaped.append(reward)
            else:
                shaped.append(reward + (LONGEST - buffer - len(tokens)) / buffer)
        for tokens, advantage in zip(group, normalized(shaped), strict=True):
            total += sum(clipped(ratio, advantage, 0.2, 0.28) for ratio in tokens)
            count += len(tokens)
    return total / count


def gspo(ratios: list[list[list[float]]]) -> float:
    """arXiv 2507.18071, equations 5 to 7."""
    total = 0.0
    for group, rewards in zip(ratios, REWARDS, strict=True):
        for tokens, advantage in zip(group, normalized(list(rewards)), strict=True):
            sequence = float(np.prod(tokens)) ** (1 / len(tokens))
            total += clipped(sequence, advantage, 3e-4, 4e-4) / len(group)
    return total / len(ratios)


def loss_of_step(name: str, logp: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    chosen, tokens = rule(name), sum(map(sum, LENGTHS))
    taught = [
        chosen.teach(ScoredGroup(rewards, lengths, groups=3, tokens=tokens, longest=LONGEST, crumb_span=0.2))
        for rewards, lengths in zip(REWARDS, LENGTHS, strict=True)
    ]
    if chosen.ratio == "sequence":
        old = sequence_reference(torch, logp.detach(), old, [length for lengths in LENGTHS for length in lengths])
    advantage, weight = (
        torch.tensor(np.concatenate([getattr(each, field) for each in taught]), dtype=torch.float64)
        for field in ("advantage", "weight")
    )
    return clipped_objective(torch, logp, old, advantage, weight, chosen.clip)


def nested(ratios: np.ndarray) -> list[list[list[float]]]:
    values = iter(ratios.tolist())
    return [[[next(values) for _ in range(length)] for length in lengths] for lengths in LENGTHS]


@pytest.mark.parametrize("published", [grpo, dr_grpo, dapo, gspo], ids=lambda each: each.__name__)
@pytest.mark.parametrize("distance", [0.0, 1e-4, 0.3])
def test_loss_and_gradient_are_those_of_the_published_equation(published: Callable[..., float], distance: float):
    noise = np.random.default_rng(1)
    old = noise.normal(-1.0, 0.5, sum(map(sum, LENGTHS)))
    logp = old + noise.normal(0.0, distance, len(old)) if distance else old
    now = torch.tensor(logp, requires_grad=True)
    loss = loss_of_step(published.__name__, now, torch.tensor(old))
    loss.backward()

    assert float(loss.detach()) == pytest.approx(-published(nested(np.exp(logp - old))), rel=1e-5, abs=1e-7)
    small = 1e-7
    slopes = [
        -(published(nested(np.exp(logp + step - old))) - published(nested(np.exp(logp - step - old)))) / (2 * small)
        for step in small * np.eye(len(old))
    ]
    largest = np.abs(slopes).max()
    np.testing.assert_allclose(now.grad.numpy(), slopes, atol=1e-5 * largest)
    if distance == 0.3:
        assert 0 < int((now.grad == 0).sum()) < len(old), "some tokens are clipped, others are not"


def test_ppo_is_the_clipped_objective_of_advantages_by_gae():
    """arXiv 1707.06347, equations 7, 11 and 12 with gamma 1, lambda .95 and the reward at the last token."""
    noise = np.random.default_rng(2)
    values, reward, length = noise.normal(0.4, 0.2, 6), 1.0, 6
    delta = [(values[t + 1] if t + 1 < length else reward) - values[t] for t in range(length)]
    published = [sum(0.95 ** (k - t) * delta[k] for k in range(t, length)) for t in range(length)]
    scored = ScoredGroup((reward, 0.0), (6, 1), 1, 7, LONGEST, 0.2, values=np.append(values, 0.0).astype(np.float32))
    taught = rule("ppo").teach(scored)
    np.testing.assert_allclose(taught.advantage[:6], published, rtol=1e-5)
    np.testing.assert_allclose(taught.returns[:6], published + values, rtol=1e-5)

    ratios = np.exp(noise.normal(0.0, 0.3, 6))
    expected = sum(clipped(ratio, each, 0.2, 0.2) for ratio, each in zip(ratios, published, strict=True)) / 6 / 2
    loss = clipped_objective(np, np.log(ratios), 0.0, taught.advantage[:6], taught.weight[:6], rule("ppo").clip)
    assert float(loss) == pytest.approx(-expected, rel=1e-5)
