"""What a dataset of Waggle's own must define: mistakes in its levels are found when its file is loaded."""

import pytest

from waggle.tasks.specialties.interface import Dataset, Entry


@pytest.mark.parametrize("levels", [{"easy": {"most": 2}}, {"standard": {"most": 3}}])
def test_levels_without_the_plain_standard_are_refused(levels: dict) -> None:
    with pytest.raises(ValueError, match="standard"):
        Dataset(title="t", topic="logic", generate=lambda rng, most=5: Entry("q", "a"), levels=levels)


def test_levels_with_the_plain_standard_are_fine() -> None:
    levels = {"standard": {}, "easy": {"most": 2}}
    Dataset(title="t", topic="logic", generate=lambda rng, most=5: Entry("q", "a"), levels=levels)
