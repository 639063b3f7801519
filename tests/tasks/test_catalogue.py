"""The catalogue: all entries are audited and described, and every level makes questions."""

from contextlib import closing

import pytest

from waggle.tasks import audit_results, catalogue, new_charter
from waggle.tasks.questions import QuestionKey
from waggle.tasks.sandbox.verifier import Verifier, datasets_of
from waggle.tasks.shipped_swarms import first_swarm
from waggle.tasks.specialties.interface import Difficulty

LARGEST_SEED = (1 << 63) - 1


def test_all_that_is_offered_may_stand_in_a_charter() -> None:
    offers = catalogue.catalogue_entries()
    assert len(offers) > 40
    for offer in offers:
        assert not audit_results.shipped_audit().refusal(offer.dataset, new_charter.COMPLETION_CHARACTERS), offer.dataset
        assert all(level.sample.strip() for level in offer.levels.values())


@pytest.mark.parametrize("difficulty", ["easy", "standard", "hard"])
def test_all_that_is_offered_makes_questions_of_seeds_as_large_as_those_of_a_swarm(difficulty: Difficulty) -> None:
    datasets = [offer.dataset for offer in catalogue.catalogue_entries() if difficulty in offer.levels]
    for some in (datasets[::2], datasets[1::2]):
        charter = new_charter.new_charter("All", {dataset: [difficulty] for dataset in some})
        with closing(Verifier(charter)) as verifier:
            questions = verifier.questions(
                [QuestionKey(dataset, LARGEST_SEED - number) for dataset in some for number in range(4)]
            )
        assert {question.dataset for question in questions if question.text} == set(some)


def test_a_level_has_the_settings_of_the_list_and_others_do_not_exist() -> None:
    easy = catalogue.level_of("bf", "easy")
    assert easy is not None
    assert easy.settings == {"difficulty": 1}
    assert catalogue.level_of("bf", "hard") is None
    assert catalogue.level_of("no_such", "easy") is None


def test_the_swarm_that_ships_is_the_easy_form_of_nine_with_the_settings_of_the_starter() -> None:
    datasets = datasets_of(first_swarm())
    assert len(datasets) == 9
    for dataset, (settings,) in [(each.dataset, each.levels) for each in datasets]:
        level = catalogue.level_of(dataset, "easy")
        assert level is not None
        assert settings == level.settings != {}, dataset
