"""The optimizer steps of a round: its training set in minibatches, and the log-probs that their ratios refer to.

A round of one step has no ratio: the policy that learns is the one that sampled, and what differs is rounding. In a round of
several steps, the policy has moved away from the second step on, and the ratio is its probability over that before the first one.
For the node's own completions that is the probability with which they were sampled. A peer's completion counts as if the node's
own policy had written it (SAPO, arXiv 2509.08721): its old log-probs are the own policy's, from one forward pass before
the first step. Whether peers' text counts less because it is unlikely here is decided by the sharing strategy.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from waggle.rl.batch import Floats, TrainingGroup
from waggle.sapo.interfaces import Policy

# Nats by which sampling and learning may differ at any token. In float32 they differ by 4e-5 at most, in bfloat16 by .6: there a
# clip would cut rounding errors, and GSPO's would cut nothing else (docs/decisions/0036-ratios-refer-to-ones-own-policy.md).
TOLERANCE = 1e-3


def minibatches(batches: Sequence[TrainingGroup], updates: int, policy: Policy, temperature: float) -> list[list[TrainingGroup]]:
    """The batches of each step: at most `updates`, none of them empty. Groups stay whole, and are dealt out in turns.

    So each minibatch has its part of local and of external groups, and none has only the right answers to a question. The mean of
    the steps' gradients, taken at the same weights, is the gradient of the whole training set.
    """
    number = min(updates, len(batches))
    if number <= 1:
        return [[replace(batch, old_logp=None, values=None) for batch in batches]] if batches else []
    known = _with_old_logp(batches, policy, temperature)
    return [[replace(batch, weight=batch.weight * np.float32(number)) for batch in known[i::number]] for i in range(number)]


def _with_old_logp(batches: Sequence[TrainingGroup], policy: Policy, temperature: float) -> list[TrainingGroup]:
    """The batches with log-probs of the policy as it is now.

    Those from sampling are kept if the policy gives the same when it learns. The group with the least likely token shows that:
    where a policy is sure of each token, rounding hardly changes a log-prob.
    """
    sampled = {i: batch.old_logp for i, batch in enumerate(batches) if batch.old_logp is not None}
    least_likely = sorted(sampled, key=lambda i: float(sampled[i].min()))
    compared = least_likely[:1]
    to_measure = compared + [i for i in range(len(batches)) if i not in sampled]
    old = sampled | _measured(batches, to_measure, policy, temperature)
    if any(np.abs(old[i] - sampled[i]).max() > TOLERANCE for i in compared):
        old |= _measured(batches, least_likely[1:], policy, temperature)
    return [replace(batch, old_logp=old[i]) for i, batch in enumerate(batches)]


def _measured(
    batches: Sequence[TrainingGroup], positions: Sequence[int], policy: Policy, temperature: float
) -> dict[int, Floats]:
    if not positions:
        return {}
    return dict(zip(positions, policy.logprobs([batches[i] for i in positions], temperature), strict=True))
