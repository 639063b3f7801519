"""The update rules there are, by name."""

from waggle.core.errors import SettingsError
from waggle.rl.update_rules import dapo, dr_grpo, grpo, ppo
from waggle.rl.update_rules.interface import Rule

RULES = {one.name: one for one in (grpo.RULE, dr_grpo.RULE, dapo.RULE, ppo.RULE)}


def rule(name: str) -> Rule:
    """The rule of that name; raises SettingsError."""
    if name not in RULES:
        raise SettingsError(f"There is no update rule {name}.", f"There are {', '.join(RULES)}.")
    return RULES[name]
