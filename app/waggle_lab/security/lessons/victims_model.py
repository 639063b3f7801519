"""What every attacker has: the victims' first model, which ships with Waggle, its tokenizer, and how they learn."""

from functools import cache

from waggle.core import paths
from waggle.models.tokenizer import Tokenizer, load
from waggle.sapo.stages import RoundSettings

MOST_TOKENS = RoundSettings().longest_external  # of a completion, its stop token included


@cache
def tokenizer() -> Tokenizer:
    return load(paths.starter())
