"""What a dataset of Waggle's own must define: mistakes in its levels are found when its file is loaded."""

import pytest

from waggle.tasks.specialties.interface import Dataset, Entry, SettingRange

RANGES = {"most": SettingRange(kind="whole", least=1, most=9)}


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ({"easy": {"most": 2}}, "standard"), ({"standard": {"most": 3}}, "standard"),
        ({"standard": {}, "hard": {"most": 10}}, "hard sets most"), ({"standard": {}, "hard": {"least": 1}}, "hard sets least"),
    ],
)  # fmt: skip
def test_levels_without_the_standard_or_outside_of_their_ranges_are_refused(levels: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Dataset(title="t", topic="logic", generate=lambda rng, most=5: Entry("q", "a"), ranges=RANGES, levels=levels)


def test_levels_within_their_ranges_are_fine() -> None:
    levels = {"standard": {}, "easy": {"most": 2}}
    Dataset(title="t", topic="logic", generate=lambda rng, most=5: Entry("q", "a"), ranges=RANGES, levels=levels)
