"""DAPO (arXiv 2503.14476): GRPO's advantages, every token of a training set weighing the same, an asymmetric clip.

Left out: dynamic sampling (which groups are trained on is the sharing strategy's affair: sapo/sharing/filtered.py) and
the overlong penalty (rewards are the verifier's alone, and a completion that is too long for its reader is dropped).
"""

from waggle.rl.advantage import group_advantages
from waggle.rl.objective import Clip
from waggle.rl.update_rules.interface import Rule, Scored, Teaching, per_token


def teach(scored: Scored) -> Teaching:
    """Equations 8 and 9: (r - mean) / std at every token, summed and divided by the tokens of the whole training set.

    Equation 8 divides by the tokens of one question's group; here all groups of a step are one batch, as the authors' own code
    has it. So long completions, and groups of many, pull harder than under GRPO.
    """
    return Teaching(
        advantage=per_token(group_advantages(scored.rewards, scored.crumb_span), scored.lengths),
        weight=per_token([1.0 / max(1, scored.tokens)] * len(scored.lengths), scored.lengths),
    )


RULE = Rule(name="dapo", teach=teach, clip=Clip(low=0.2, high=0.28))
