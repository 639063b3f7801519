"""PPO (arXiv 1707.06347) with a learned value head; advantages by GAE (arXiv 1506.02438), reward at the last token only.

Equation 7 is the clipped objective, with the paper's range of 0.2. The squared error of the value head (equation 9) is clipped
with the same range, as in the authors' code. Left out: the entropy bonus of equation 9, more than one pass over the minibatches
of a round, the alternative with a KL penalty (equation 8); and what the paper does not have: KL to a reference model, whitening.
"""

import numpy as np

from waggle.rl.advantage import teaches
from waggle.rl.objective import Clip
from waggle.rl.update_rules.interface import Floats, Rule, ScoredGroup, TokenAdvantages, mean_of_means

LAMBDA = 0.95  # of GAE; gamma is 1: an answer is worth the same, however long it is


def teach(scored: ScoredGroup) -> TokenAdvantages:
    """Each completion against the critic's estimate; weights as in GRPO.

    If the rewards of a group differ by less than `crumb_span`, their mean stands for each of them: the differences teach nothing,
    but the critic still learns the level, and the policy how it compares with the estimate.
    """
    rewards = np.asarray(scored.rewards, np.float64)
    if not teaches(scored.rewards, scored.crumb_span):
        rewards = np.full_like(rewards, rewards.mean())
    values = np.zeros(sum(scored.lengths), np.float32) if scored.values is None else scored.values
    parts = np.split(values, np.cumsum(scored.lengths)[:-1])
    advantage = np.concatenate([advantages(float(reward), part) for reward, part in zip(rewards, parts, strict=True)])
    return TokenAdvantages(advantage=advantage, weight=mean_of_means(scored), returns=advantage + values)


def advantages(reward: float, values: Floats) -> Floats:
    """GAE of one completion, (T,): the sum over l of (gamma lambda)^l delta_(t+l), section 3, equation 16.

    delta_t = V_(t+1) - V_t; after the last token comes the reward, and no further value.
    """
    delta = np.diff(values.astype(np.float64), append=reward)
    advantage = np.zeros(len(delta), np.float32)
    running = 0.0
    for t in reversed(range(len(delta))):
        running = float(delta[t]) + LAMBDA * running
        advantage[t] = running
    return advantage


RULE = Rule(name="ppo", teach=teach, clip=Clip(low=0.2, high=0.2), critic=True, value_clip=0.2)
