"""DAPO (arXiv 2503.14476): the same weight for every token, an asymmetric clip, a penalty on length, dynamic sampling.

Its four techniques, and where they are:

    clip-higher (section 3.1)       `RULE.clip`: 1 - 0.2 to 1 + 0.28
    dynamic sampling (3.2)          own groups: `RULE.lots`, with which sapo/round.py draws again while too few of them teach;
                                    peers' groups: those that teach nothing never reach a training set, under any rule
    token-level loss (3.3)          the weights of `teach`
    overlong reward shaping (3.4)   `overlong_penalty`

The sharing strategy `filtered` leaves out own groups that teach nothing. It is no part of this rule: their gradient is 0 anyway.
"""

import numpy as np

from waggle.rl.advantage import group_advantages, teaches
from waggle.rl.objective import Clip
from waggle.rl.update_rules.interface import Floats, Rule, ScoredGroup, TokenAdvantages, per_token

BUFFER = 0.2  # share of the longest completion in which the penalty grows: 4,096 of 20,480 tokens in the paper
LOTS = 3  # of questions in one round; the paper draws until its batch is full, however long that takes


def teach(scored: ScoredGroup) -> TokenAdvantages:
    """Equations 8, 9 and 13: (r - mean) / std of the rewards with their penalty; divided by the tokens of the training set.

    Equation 8 is for groups with right and wrong answers only, so a group whose rewards differ by length alone teaches nothing.
    It divides by the tokens of one question's group; here, as in the authors' code, all groups of a round are one batch. So long
    completions and large groups pull harder than under GRPO.
    """
    advantage = np.zeros(len(scored.rewards), np.float32)
    if teaches(scored.rewards, scored.crumb_span):
        shaped = scored.rewards + overlong_penalty(np.asarray(scored.lengths), scored.longest)
        advantage = group_advantages([float(reward) for reward in shaped], span=0.0)
    return TokenAdvantages(
        advantage=per_token(advantage, scored.lengths),
        weight=per_token([1.0 / max(1, scored.tokens)] * len(scored.lengths), scored.lengths),
    )


def overlong_penalty(lengths: np.ndarray[tuple[int], np.dtype[np.int64]], longest: int) -> Floats:
    """Equation 13, for completions (G,) of these lengths: 0 up to the buffer, then falling to -1 at `longest` tokens."""
    buffer = BUFFER * longest
    penalty: Floats = np.clip((longest - buffer - lengths) / buffer, -1.0, 0.0).astype(np.float32)
    return penalty


RULE = Rule(name="dapo", teach=teach, clip=Clip(low=0.2, high=0.28), lots=LOTS)
