"""How much longer a tokenizer makes a text: a few rules in a small file can double it dozens of times.

Each rule of a chain multiplies what the rules before it return. The bound holds for any text, also for those that no trial has.
"""

import base64
import binascii
import json
import math
from typing import Any

MOST = 1000.0  # times; tokenizers of honest models stay below 100
CHAINS = ("normalizer", "pre_tokenizer", "decoder")
LISTS = ("normalizers", "pretokenizers", "decoders")  # the rules of a chain, in a rule of type Sequence


def growth_of(content: bytes) -> float:
    """The most by which a rule chain of a tokenizer.json lengthens a text, or a text its tokens. Raises what json raises."""
    table = json.loads(content)
    return max(_of_rule(table.get(chain)) for chain in CHAINS) if isinstance(table, dict) else 1.0


def _of_rule(rule: Any) -> float:
    if not isinstance(rule, dict):
        return 1.0
    chained = [part for name in LISTS for part in rule.get(name) or ()]
    return _of_own(rule) * math.prod(map(_of_rule, chained))


def _of_own(rule: dict[str, Any]) -> float:
    match rule.get("type"):
        case "Replace":
            return _of_replacement(rule)
        case "Prepend":  # to a text of one letter
            return 1.0 + len(str(rule.get("prepend", "")))
        case "Precompiled":
            return _of_charsmap(rule)
        case "ByteLevel":  # some bytes become letters of two bytes
            return 2.0
        case _:
            return 1.0


def _of_replacement(rule: dict[str, Any]) -> float:
    """A text is inserted for each match, which may be empty if the pattern is a regular expression."""
    pattern, inserted = rule.get("pattern"), len(str(rule.get("content", "")))
    text = pattern.get("String") if isinstance(pattern, dict) else pattern
    return max(1.0, inserted / len(text)) if isinstance(text, str) and text else 1.0 + inserted


def _of_charsmap(rule: dict[str, Any]) -> float:
    """The longest text that SentencePiece's map has for a character: behind the size of its trie and the trie."""
    try:
        charsmap = base64.b64decode(str(rule.get("precompiled_charsmap") or ""))
    except binascii.Error:  # loading it reports that
        return 1.0
    texts = charsmap[4 + int.from_bytes(charsmap[:4], "little") :]
    return float(max(1, *map(len, texts.split(b"\0"))))
