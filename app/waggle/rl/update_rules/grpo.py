"""GRPO (arXiv 2402.03300): rewards normalized within the group; each completion counts the same, however long it is."""

from waggle.rl.advantage import group_advantages
from waggle.rl.update_rules.interface import Rule, ScoredGroup, TokenAdvantages, mean_of_means, per_token


def teach(scored: ScoredGroup) -> TokenAdvantages:
    """Outcome rewards, section 4.1.2: (r - mean) / std at every token, averaged over tokens, completions and groups."""
    return TokenAdvantages(
        advantage=per_token(group_advantages(scored.rewards, scored.crumb_span), scored.lengths),
        weight=mean_of_means(scored),
    )


RULE = Rule(name="grpo", teach=teach)
