"""The settings of a dataset that a charter may hold, and their ranges: switches, numbers and a few known words, never free text.

Charters come from strangers, and a setting of reasoning-gym may name a file, or ask for a question that takes minutes or never
ends (`max_base` 2 of base_conversion). So a number lies between the smallest and the largest that were tried, which are those
that reasoning-gym or Waggle itself sets. `packaging/specialties.py` writes the list; Waggle's own datasets hold their ranges.
"""

import functools
from collections.abc import Mapping

import msgspec

from waggle.core import paths
from waggle.core.errors import CharterError
from waggle.tasks.specialties import waggle_datasets
from waggle.tasks.specialties.interface import Setting, SettingRange

LONGEST_QUOTE = 40  # characters of a stranger's text that an error repeats


class _DatasetRanges(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the file."""

    dataset: str
    settings: dict[str, SettingRange]


@functools.cache
def all_ranges() -> dict[str, Mapping[str, SettingRange]]:
    """The ranges of every setting of every dataset; raises CharterError."""
    try:
        lines = (paths.resources() / "adjustable.jsonl").read_bytes().splitlines()
        datasets = [msgspec.json.decode(line, type=_DatasetRanges) for line in lines]
    except (OSError, ValueError) as error:
        raise CharterError("The list of settings of specialties cannot be read.", "Install Waggle again.") from error
    own = {name: dataset.ranges for name, dataset in waggle_datasets().items()}
    return {dataset.dataset: dataset.settings for dataset in datasets} | own


def first_refused_setting(dataset: str, settings: Mapping[str, Setting]) -> tuple[str, str] | None:
    """The name and value of the first setting that a charter may not hold, shortened and printable; None if it may hold all."""
    ranges = all_ranges().get(dataset, {})
    for name, value in settings.items():
        if name not in ranges or not ranges[name].allows(value):
            return _quoted_value(name), _quoted_value(value)
    return None


def _quoted_value(value: Setting) -> str:
    words = value if isinstance(value, str) and value and value.isprintable() else repr(value)
    return words if len(words) <= LONGEST_QUOTE else f"{words[:LONGEST_QUOTE]}..."
