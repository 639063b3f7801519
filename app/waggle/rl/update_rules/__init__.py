"""Update rules, one a file: how the rewards of a group become advantages and weights of its tokens.

A file is registered by being here. It holds `RULE`, and its own name, that of the rule, is a value of the setting
`learning.rule`. What a rule is: interface.py.
"""

from waggle.core.errors import SettingsError
from waggle.core.message import Message
from waggle.core.module_names import load, module_names
from waggle.rl.update_rules.interface import Rule


def table() -> dict[str, Rule]:
    """Every update rule of this folder by its name, in alphabetical order."""
    return {name: rule(name) for name in module_names("rl/update_rules")}


def rule(name: str) -> Rule:
    """The rule of that name. Raises SettingsError if there is none, and ExtensionError if its file cannot be used."""
    names = module_names("rl/update_rules")
    if name not in names:
        raise SettingsError(Message("There is no update rule %1.", name), Message("There are %1.", ", ".join(names)))
    loaded: Rule = load(__name__, name, "RULE")
    return loaded
