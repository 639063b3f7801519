"""GSPO (arXiv 2507.18071): GRPO's advantages, and one ratio for each completion, which is clipped as a whole.

Equation 5: the mean over completions of min(s_i A_i, clip(s_i, 1 - 3e-4, 1 + 4e-4) A_i), where s_i is the geometric mean of the
ratios of its tokens (equation 7). It is computed as GSPO-token (equations 13 and 14), which has the same value and gradient
where all tokens of a completion have one advantage; a sharing strategy may give them several.
"""

from waggle.rl.advantage import group_advantages
from waggle.rl.objective import Clip
from waggle.rl.update_rules.interface import Rule, ScoredGroup, TokenAdvantages, mean_of_means, per_token


def teach(scored: ScoredGroup) -> TokenAdvantages:
    """Equation 6: (r - mean) / std. A token weighs 1 / length of its completion: together they have the gradient of s_i."""
    return TokenAdvantages(
        advantage=per_token(group_advantages(scored.rewards, scored.crumb_span), scored.lengths),
        weight=mean_of_means(scored),
    )


# Section 5.1. Such a range suits a ratio that is a mean over many tokens: that of a short completion leaves it sooner.
RULE = Rule(name="gspo", teach=teach, clip=Clip(low=3e-4, high=4e-4), ratio="sequence")
