"""Update rules, one a file: how the rewards of a group become advantages and weights of its tokens.

A file is registered by being here. It holds `RULE`, and its own name, that of the rule, is a value of the setting
`learning.rule`. What a rule is: interface.py.
"""

import importlib

from waggle.core.errors import SettingsError
from waggle.core.module_names import module_names
from waggle.rl.update_rules.interface import Rule


def table() -> dict[str, Rule]:
    """Every update rule of this folder by its name, in alphabetical order."""
    return {name: importlib.import_module(f"{__name__}.{name}").RULE for name in module_names("rl/update_rules")}


def rule(name: str) -> Rule:
    """The rule of that name; raises SettingsError."""
    rules = table()
    if name not in rules:
        raise SettingsError(f"There is no update rule {name}.", f"There are {', '.join(rules)}.")
    return rules[name]
