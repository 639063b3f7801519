"""The catalogue: all entries are audited and described, and invites recognise them."""

from contextlib import closing

import pytest

from waggle.core.errors import CharterError
from waggle.tasks import audit_results, catalogue, charter
from waggle.tasks.charter import first_swarm
from waggle.tasks.sandbox.verifier import Verifier

LARGEST_SEED = (1 << 63) - 1


def test_all_that_is_offered_may_stand_in_a_charter():
    offers = catalogue.catalogue_entries()
    assert len(offers) > 40
    for offer in offers:
        assert not audit_results.shipped_audit().refusal(offer.dataset, catalogue.FOR_ANY_MODEL_CHARACTERS), offer.dataset
        assert all(level.sample.strip() for level in offer.levels.values())


@pytest.mark.parametrize("difficulty", ["easy", "standard", "hard"])
def test_all_that_is_offered_makes_questions_of_seeds_as_large_as_those_of_a_swarm(difficulty):
    datasets = [offer.dataset for offer in catalogue.catalogue_entries() if difficulty in offer.levels]
    for some in (datasets[::2], datasets[1::2]):
        with closing(Verifier(catalogue.charter_of("All", [(dataset, difficulty) for dataset in some]))) as verifier:
            questions = verifier.questions([(dataset, LARGEST_SEED - number) for dataset in some for number in range(4)])
        assert {question.dataset for question in questions if question.text} == set(some)


def test_the_swarm_that_ships_is_the_easy_form_of_nine():
    assert {catalogue.recognise(specialty)[0] for specialty in first_swarm().specialties} == {"easy"}


def test_a_charter_is_made_and_read_again():
    own_charter = catalogue.charter_of("  Two\tlaptops ", [("bf", "easy"), ("chain_sum", "standard")])
    assert own_charter.name == "Two laptops"
    assert charter.decode(charter.encode(own_charter), expected=own_charter.digest) == own_charter
    assert "model_hint" not in charter.encode(own_charter).decode(), "as older versions wrote it, so that its hash is the same"


def test_a_hint_of_a_model_brings_a_prompt_that_says_how_to_answer():
    own_charter = catalogue.charter_of("Lab", [("bf", "easy")], model_hint="Qwen2.5 0.5B")
    assert (own_charter.model_hint, "<answer>" in own_charter.prompt) == ("Qwen2.5 0.5B", True)


@pytest.mark.parametrize(
    ("name", "chosen", "refusal"),
    [
        ("", [("bf", "easy")], "needs a name"),
        ("x" * 61, [("bf", "easy")], "cannot be made"),
        ("Nothing", [], "cannot be made"),
        ("Odd", [("codeio", "easy")], "no specialty codeio"),
        ("Odd", [("bf", "fiendish")], "difficulty fiendish"),
        ("Twice", [("bf", "easy"), ("bf", "standard")], "each specialty once"),
        ("\u202eevil", [("bf", "easy")], "plain words"),
    ],
)
def test_what_cannot_be_a_swarm_is_refused_in_words(name, chosen, refusal):
    with pytest.raises(CharterError, match=refusal):
        catalogue.charter_of(name, chosen)
