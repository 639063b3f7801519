"""The published rules for learning from other models' rollouts, against numbers worked by hand and against their own losses."""

import math

import numpy as np
import pytest
import torch

from waggle.rl.batch import Floats
from waggle.rl.objective import Clip, clipped_objective
from waggle.rl.update_rules import rule
from waggle.rl.update_rules.interface import ScoredGroup
from waggle.sapo.sharing import strategy
from waggle.sapo.sharing.interface import Candidates, PeerGroup
from waggle.sapo.sharing.sender_logp.off_policy_mask import DELTA
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict

RULES = ("f_tis", "luffy", "off_policy_mask", "success_gated", "topr")
SENDER_RULES = ("f_tis", "off_policy_mask", "topr")
RIGHT, WRONG = 1.0, 0.0


def judged(rewards, sender_logp=None, *, number=1, dataset="bf", level=0, origin=b"p") -> JudgedGroup:
    """A group whose completions have these rewards, and these log-probs as a whole at their sender."""
    logps = sender_logp or [None] * len(rewards)
    return JudgedGroup(
        group=Group(
            origin=origin * 38,
            id=QuestionId(dataset, 5, number, level),
            completions=tuple(Completion(text="x", ended=True, logp=logp) for logp in logps),
        ),
        question=Question(dataset=dataset, seed=number, text="?"),
        verdicts=tuple(Verdict(reward=reward, reason="") for reward in rewards),
    )


def tempered(name, rewards, lengths, own_logp, sender_logp=None, advantage=None) -> Floats:
    """What a strategy that knows of nothing else makes of a group: by default the advantages of GRPO."""
    if advantage is None:
        advantage = grpo_advantage(rewards, lengths)
    logp = None if own_logp is None else np.asarray(own_logp, np.float32)
    peer = PeerGroup(judged(rewards, sender_logp), tuple(lengths), np.asarray(advantage, np.float32), logp)
    result = strategy(name).make().temper(peer)
    assert result.shape == (sum(lengths),)
    assert result.dtype == np.float32
    return result


def grpo_advantage(rewards, lengths) -> Floats:
    scored = ScoredGroup(tuple(rewards), tuple(lengths), groups=8, tokens=sum(lengths), longest=24, crumb_span=0.2)
    return rule("grpo").teach(scored).advantage


# the edges, for each rule


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("rewards", [(RIGHT,) * 3, (WRONG,) * 3])
def test_a_group_that_is_all_right_or_all_wrong_teaches_nothing(name, rewards):
    assert not tempered(name, rewards, (1, 2, 1), [-1.0] * 4, [-1.0, -2.0, -1.0]).any()


@pytest.mark.parametrize("name", [name for name in RULES if name != "success_gated"])
def test_without_log_probs_here_all_completions_count_as_in_plain(name):
    plain = grpo_advantage((RIGHT, WRONG), (2, 1))
    np.testing.assert_array_equal(tempered(name, (RIGHT, WRONG), (2, 1), None, [-2.0, -1.0]), plain)


@pytest.mark.parametrize("name", SENDER_RULES)
def test_without_log_probs_at_the_sender_all_completions_count_as_in_plain(name):
    plain = grpo_advantage((RIGHT, WRONG), (2, 1))
    np.testing.assert_array_equal(tempered(name, (RIGHT, WRONG), (2, 1), [-30.0, -30.0, -90.0]), plain)


@pytest.mark.parametrize("name", SENDER_RULES)
def test_where_one_log_prob_is_missing_that_completion_alone_counts_in_full(name):
    result = tempered(name, (RIGHT, WRONG, WRONG), (1, 1, 1), [-1.0, -99.0, -99.0], [-1.0, None, -1.0])
    np.testing.assert_allclose(result, [2**0.5, -(2**-0.5), 0], rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_a_failure_that_is_hopeless_here_is_not_pushed_down_and_no_number_overflows(name):
    result = tempered(name, (RIGHT, WRONG), (2, 2), [-1.0, -1.0, -1e30, -1e30], [-2.0, -2.0])
    assert np.isfinite(result).all()
    assert (result[:2] > 0).all()
    np.testing.assert_array_equal(result[2:], 0)


@pytest.mark.parametrize("name", SENDER_RULES)
def test_a_completion_that_the_sender_thought_hopeless_overflows_nothing(name):
    result = tempered(name, (RIGHT, WRONG), (1, 1), [-1.0, -1.0], [-1e30, -1e30])
    largest = 2 if name == "f_tis" else 1
    np.testing.assert_allclose(result, [largest, -largest], rtol=1e-3)


# LUFFY


def test_luffy_weighs_each_token_by_gamma_p_over_p_plus_gamma_squared():
    p = [0.1, 0.9, 0.01, 1.0]
    # .1 * .1 / .2^2 = .25; .1 * .9 / 1^2 = .09; .1 * .01 / .11^2 = .08264; .1 / 1.1^2 = .08264
    result = tempered("luffy", (RIGHT, WRONG), (2, 2), np.log(p), advantage=[2, 2, -1, -1])
    np.testing.assert_allclose(result, [0.5, 0.18, -0.0826446, -0.0826446], rtol=1e-5)


def test_luffy_has_the_gradient_of_its_loss_in_the_first_step_and_a_known_share_of_it_in_later_ones():
    start = torch.tensor([0.1, 0.9, 0.01, 0.4, 0.02]).log()
    advantage = torch.tensor([1.5, 1.5, 1.5, -0.5, -0.5])
    weight = torch.full((5,), 0.1)
    own = torch.from_numpy(tempered("luffy", (RIGHT, WRONG), (3, 2), start.numpy(), advantage=advantage.numpy()))
    for moved in (torch.zeros(5), torch.tensor([0.2, 0.05, -0.1, 0.1, -0.2])):  # ratios inside the clip
        logp, shaped = (start + moved).requires_grad_(), (start + moved).requires_grad_()
        clipped_objective(torch, logp, start, own, weight, Clip()).backward()
        p = shaped.exp()
        (-(p / (p + 0.1)) * advantage * weight).sum().backward()
        assert logp.grad is not None
        assert shaped.grad is not None
        share = (shaped.detach().exp() + 0.1) ** 2 / (start.exp() + 0.1) ** 2  # 1 in the first step
        torch.testing.assert_close(logp.grad, shaped.grad * share)


# TOPR


def test_topr_weighs_failures_by_the_ratio_of_whole_completions_and_successes_not_at_all():
    # here .5 * .2 = .1 each, at the sender .5, .5 and .05: ratios .2, .2 and 2, which is truncated
    half, rare = math.log(0.5), math.log(0.05)
    own = np.log([0.5, 0.2] * 3)
    result = tempered("topr", (RIGHT, WRONG, WRONG), (2,) * 3, own, [half, half, rare], [3, 3, -1, -1, -1, -1])
    np.testing.assert_allclose(result, [3, 3, -0.2, -0.2, -1, -1], rtol=1e-5)


def test_topr_has_the_gradient_of_its_loss_in_the_first_step():
    own = np.log([0.5, 0.2, 0.9, 0.3, 0.6])
    lengths, sender, advantage = (2, 2, 1), [-0.5, -0.25, -2.0], [1.0, 1.0, -0.5, -0.5, -0.5]
    own_advantage = torch.from_numpy(tempered("topr", (RIGHT, WRONG, WRONG), lengths, own, sender, advantage))
    logp = torch.tensor(own, dtype=torch.float32, requires_grad=True)
    published = torch.tensor(own, dtype=torch.float32, requires_grad=True)
    clipped_objective(torch, logp, logp.detach(), own_advantage, torch.full((5,), 0.1), Clip()).backward()
    loss = torch.zeros(())
    for whole, theirs, reward in zip(published.split(lengths), sender, (1.0, -0.5, -0.5), strict=True):
        taper = 1.0 if reward >= 0 else float((whole.sum() - theirs).exp().clamp(0, 1).detach())
        loss = loss - 0.1 * taper * reward * whole.sum()
    loss.backward()
    assert logp.grad is not None
    assert published.grad is not None
    torch.testing.assert_close(logp.grad, published.grad)


# the off-policy mask


def test_the_mask_drops_failures_beyond_half_a_nat_a_token_and_nothing_else():
    # the mean distance of two tokens: 2, 2, 1/2 (which is not beyond), 5/8; one that the sender thought less likely: -3
    own = [-3.0, -3.0] * 2 + [-1.0, -2.0, -1.25, -2.0, -0.5, -0.5]
    sender = [-2.0, -2.0, -2.0, -2.0, -7.0]
    advantage = np.repeat([2.0, -0.5, -0.5, -0.5, -0.5], 2)
    result = tempered("off_policy_mask", (RIGHT, *[WRONG] * 4), (2,) * 5, own, sender, advantage)
    np.testing.assert_array_equal(result, np.repeat([2.0, 0.0, -0.5, 0.0, -0.5], 2).astype(np.float32))


def trl_mask(advantages, per_token_logps, sampling_per_token_logps, mask, threshold):
    """TRL's formula (GRPOTrainer.get_off_policy_mask, 1.10): (B, 1), 1 for completions that count."""
    divergence = ((sampling_per_token_logps - per_token_logps) * mask).sum(1, keepdims=True) / np.maximum(
        mask.sum(1, keepdims=True), 1.0
    )
    return ((advantages >= 0) | (divergence <= threshold)).astype(np.float32)


def test_the_mask_is_that_of_trl_on_the_same_numbers():
    noise = np.random.default_rng(7)
    lengths = noise.integers(1, 9, size=200)
    filled = np.arange(8) < lengths[:, None]  # (B, T), the rest is padding
    own, sender = -noise.exponential(1.0, (200, 8)), -noise.exponential(0.6, (200, 8))
    advantages = noise.normal(size=(200, 1)).astype(np.float32)
    expected = trl_mask(advantages, own, sender, filled.astype(np.float64), DELTA)
    result = tempered(
        "off_policy_mask", (RIGHT,) * 200, lengths, own[filled],
        [float(row[inside].sum()) for row, inside in zip(sender, filled, strict=True)], np.repeat(advantages[:, 0], lengths),
    )  # fmt: skip
    np.testing.assert_array_equal(result, np.repeat((advantages * expected)[:, 0], lengths))
    assert 20 < (expected == 0).sum() < 180, "the numbers must try both"


# F-TIS


def test_f_tis_truncates_the_mean_ratio_of_a_token_at_two_and_drops_failures_beyond_fifty_nats():
    # mean ratios: exp(-1), exp(2) truncated to 2, exp(-1); the last failure is 51 nats away in 51 tokens, the third 50 in 50
    lengths = (2, 1, 50, 51)
    own = [-2.0, -2.0, -1.0, *[-2.0] * 101]
    result = tempered(
        "f_tis", (RIGHT, RIGHT, WRONG, WRONG), lengths, own, [-2.0, -3.0, -50.0, -51.0], np.repeat([1, 1, -1, -1], lengths)
    )
    expected = np.repeat([math.exp(-1), 2.0, -math.exp(-1), 0.0], lengths)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_f_tis_keeps_successes_at_any_distance():
    result = tempered("f_tis", (RIGHT, WRONG), (100, 100), [-2.0] * 200, [-100.0, -100.0])
    np.testing.assert_allclose(result[:100], math.exp(-1), rtol=1e-3)
    np.testing.assert_array_equal(result[100:], 0)


# success-gated transfer


def offer(mine, pool, external=4) -> Candidates:
    return Candidates(mine, pool, 4, external, crumb_span=0.2, noise=np.random.default_rng(1))


def test_success_gated_gives_each_right_answer_the_same_pull_and_no_other_any():
    result = tempered("success_gated", (RIGHT, 0.5, RIGHT, WRONG), (2, 1, 1, 3), None)
    np.testing.assert_array_equal(result, [1, 1, 0, 1, 0, 0, 0])
    assert not tempered("success_gated", (0.5, 0.5, WRONG), (1, 1, 1), None).any(), "half right is no success"


def test_success_gated_takes_only_groups_of_levels_in_which_the_node_has_no_success():
    instance = strategy("success_gated").make()
    mixed = (RIGHT, WRONG, WRONG)
    mine = [judged((WRONG,) * 3, origin=b"o", number=number, level=number % 2) for number in range(6)]
    mine += [judged(mixed, origin=b"o", number=9, level=1)]  # one success in level 1
    pool = [judged(mixed, number=number, level=number % 2) for number in range(8)]
    pool += [judged(mixed, number=20, dataset="never asked"), judged((0.5, WRONG, WRONG), number=21)]
    training = instance.choose(offer(mine, pool, external=3))
    assert len(training.external) == 3
    external = instance.choose(offer(mine, pool, external=10)).external
    assert {group.group.id.number for group in external} == {0, 2, 4, 6, 20}
    assert len(instance.choose(offer(mine, pool[1:8:2])).local) == 7, "own groups take the places that closed gates leave"


def test_success_gated_looks_at_the_last_round_that_asked():
    instance = strategy("success_gated").make()
    theirs = judged((RIGHT, WRONG))
    peer = PeerGroup(theirs, (1, 1), np.array([1, -1], np.float32), None)
    for own, open_gate in (((WRONG, WRONG), True), ((RIGHT, WRONG), False), ((WRONG, WRONG), True)):
        chosen = instance.choose(offer([judged(own, origin=b"o")], [theirs])).external
        assert bool(chosen) is open_gate
        np.testing.assert_array_equal(instance.temper(peer), [float(open_gate), 0])
        instance.choose(offer([judged((WRONG, RIGHT), origin=b"o", dataset="another")], []))  # says nothing about this level
