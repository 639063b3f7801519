"""DAPO (arXiv 2503.14476): GRPO's advantages, the same weight for every token of a training set, an asymmetric clip.

Left out: dynamic sampling (the sharing strategy chooses the groups: sapo/sharing/filtered.py) and the overlong penalty (rewards
come from the verifier alone, and a completion that is too long for its reader is dropped).
"""

from waggle.rl.advantage import group_advantages
from waggle.rl.objective import Clip
from waggle.rl.update_rules.interface import Rule, ScoredGroup, TokenAdvantages, per_token


def teach(scored: ScoredGroup) -> TokenAdvantages:
    """Equations 8 and 9: (r - mean) / std at every token, summed and divided by the tokens of the whole training set.

    Equation 8 divides by the tokens of one question's group; here, as in the authors' code, all groups of a step are one batch.
    So long completions and large groups pull harder than under GRPO.
    """
    return TokenAdvantages(
        advantage=per_token(group_advantages(scored.rewards, scored.crumb_span), scored.lengths),
        weight=per_token([1.0 / max(1, scored.tokens)] * len(scored.lengths), scored.lengths),
    )


RULE = Rule(name="dapo", teach=teach, clip=Clip(low=0.2, high=0.28))
