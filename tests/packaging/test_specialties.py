"""The tables of what the catalogue changes or leaves out: names that exist, and levels that are really gone."""

import pytest
import specialties
from reasoning_gym import factory

from waggle.tasks import catalogue


@pytest.mark.parametrize("dataset", specialties.LEFT_OUT)
def test_a_dataset_that_is_left_out_is_in_no_catalogue(dataset: str) -> None:
    assert dataset in factory.DATASETS
    assert specialties.settings(dataset, "standard") is None
    assert dataset not in {entry.dataset for entry in catalogue.catalogue_entries()}


@pytest.mark.parametrize(("dataset", "level"), specialties.LEFT_OUT_LEVELS)
def test_a_level_that_is_left_out_is_in_no_catalogue(dataset: str, level: str) -> None:
    assert specialties.settings(dataset, level) is None
    assert catalogue.level_of(dataset, level) is None


def test_the_catalogue_has_the_settings_of_the_tables() -> None:
    entries = {entry.dataset: entry for entry in catalogue.catalogue_entries() if entry.dataset in factory.DATASETS}
    for dataset, entry in entries.items():
        for difficulty, level in entry.levels.items():
            assert level.settings == specialties.settings(dataset, difficulty), (dataset, difficulty)
    assert specialties.settings("base_conversion", "standard") == {"min_value": 1}
    assert specialties.settings("base_conversion", "hard")["min_value"] == 1000
    assert specialties.settings("number_filtering", "standard") == {"min_decimals": 2, "max_decimals": 2}
    assert set(specialties.BY_LEVEL) | set(specialties.WITHOUT_DOUBT) | set(specialties.EASED) <= set(entries)
