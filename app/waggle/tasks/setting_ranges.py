"""Which settings of a dataset a charter may hold, and how far: switches, numbers and a few known words, never free text.

Charters come from strangers, and a setting of reasoning-gym may name a file, or ask for a question that takes minutes, or
never ends (`max_base` 2 of base_conversion). So a number lies between the least and the most that was tried, which is what
reasoning-gym or Waggle itself sets. `packaging/specialties.py` writes the list.
"""

import functools
from collections.abc import Mapping
from typing import Literal

import msgspec

from waggle.core import paths
from waggle.core.errors import CharterError

Setting = int | float | bool | str | list[int | str]
LONGEST_SHOWN = 40  # characters of what a stranger wrote


class Range(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one setting may be: a number from `least` to `most`, or some of `words`."""

    kind: Literal["switch", "whole", "number", "words"]
    least: float = 0
    most: float = 0
    words: tuple[str, ...] = ()

    def holds(self, value: Setting) -> bool:
        match self.kind:
            case "switch":
                return isinstance(value, bool)
            case "whole":
                return isinstance(value, int) and self._reaches(value)
            case "number":
                return self._reaches(value)
        return isinstance(value, list) and set(value) <= set(self.words) and len(set(value)) == len(value)

    def _reaches(self, value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and self.least <= value <= self.most


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset of the file."""

    dataset: str
    settings: dict[str, Range]


@functools.cache
def shipped() -> dict[str, dict[str, Range]]:
    """All that came with this Waggle; raises CharterError."""
    try:
        lines = (paths.resources() / "adjustable.jsonl").read_bytes().splitlines()
        read = [msgspec.json.decode(line, type=Line) for line in lines]
        return {entry.dataset: entry.settings for entry in read}
    except (OSError, ValueError) as error:
        raise CharterError("The list of settings of specialties cannot be read.", "Install Waggle again.") from error


def refused(dataset: str, settings: Mapping[str, Setting]) -> tuple[str, str] | None:
    """The first setting that a charter may not hold, and to what it was set, as a person may read them."""
    known = shipped().get(dataset, {})
    for name, value in settings.items():
        if name not in known or not known[name].holds(value):
            return _quoted(name), _quoted(value)
    return None


def _quoted(value: Setting) -> str:
    words = value if isinstance(value, str) and value and value.isprintable() else repr(value)
    return words if len(words) <= LONGEST_SHOWN else f"{words[:LONGEST_SHOWN]}..."
