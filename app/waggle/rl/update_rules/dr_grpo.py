"""Dr. GRPO (arXiv 2503.20783): GRPO without its two biases, to long wrong answers and to very easy or hard questions."""

from waggle.rl.advantage import centred_rewards
from waggle.rl.update_rules.interface import Rule, ScoredGroup, TokenAdvantages, per_token


def teach(scored: ScoredGroup) -> TokenAdvantages:
    """Section 3.2: r - mean, not divided by std; the sum over tokens divided by the constant `longest`, not by the length.

    So a token weighs the same in a long wrong answer as in a short one. Each group counts 1 / groups.
    """
    size = len(scored.lengths)
    return TokenAdvantages(
        advantage=per_token(centred_rewards(scored.rewards, scored.crumb_span), scored.lengths),
        weight=per_token([1.0 / (scored.groups * size * scored.longest)] * size, scored.lengths),
    )


RULE = Rule(name="dr_grpo", teach=teach)
