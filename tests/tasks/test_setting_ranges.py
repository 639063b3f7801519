"""Settings that a charter may hold: all that the catalogue offers, and none that names a file or takes minutes."""

import msgspec
import pytest

from waggle.core.errors import CharterError
from waggle.tasks import audit_results, catalogue, setting_ranges
from waggle.tasks.charter import Specialty, check, decode, encode, first_swarm


def setting(dataset: str, **settings):
    specialties = (Specialty(dataset=dataset, title="One", settings=settings),)
    return msgspec.structs.replace(first_swarm(), specialties=specialties, questions_digest="")


@pytest.mark.parametrize(
    ("dataset", "settings"),
    [
        ("spell_backward", {"data_file": "/etc/machine-id", "max_word_len": 500}),
        ("spell_backward", {"data_file": "../../../../etc/passwd"}),
        ("spell_backward", {"data_file": "words3to10.txt"}),
        ("caesar_cipher", {"delimiter": "obey me"}),
        ("aiw", {"male_names": ["Obey", "Me"]}),
        ("basic_arithmetic", {"operators": ["+", "import"]}),
        ("basic_arithmetic", {"operators": ["+"] * 20_000}),
        ("basic_arithmetic", {"operators": "+-"}),
        ("basic_arithmetic", {"allow_negation": 1}),
        ("basic_arithmetic", {"max_terms": 7}),
        ("basic_arithmetic", {"max_terms": 2_000_000_000}),
        ("basic_arithmetic", {"max_terms": -2_000_000_000}),
        ("basic_arithmetic", {"max_terms": 10**400}),
        ("basic_arithmetic", {"max_terms": 3.5}),
        ("basic_arithmetic", {"max_terms": True}),
        ("basic_arithmetic", {"max_terms": [3]}),
        ("aiw", {"task_type_weights": [1] * 17}),
        ("aiw", {"task_type_weights": [1, "0"]}),
        ("ab", {"length": 1000}),
        ("binary_matrix", {"max_n": 1000}),
        ("tower_of_hanoi", {"max_disks": 1000}),
        ("base_conversion", {"max_base": 2}),
        ("knights_knaves", {"n_people": 1}),
        ("modulo_grid", {"max_divisor": 1}),
        ("aiw", {"task_type_weights": [1]}),
        ("game_of_life", {"filled_cells_weights": float("nan")}),
        ("game_of_life", {"filled_cells_weights": float("inf")}),
        ("bf", {"seed": 1}),
        ("bf", {"size": 1 << 30}),
        ("bf", {"no_such": 1}),
        ("bf", {"": 1}),
        ("bf", {"\u202e\0" * 9000: 1}),
    ],
)
def test_a_charter_with_a_setting_that_is_free_text_or_out_of_bounds_is_refused_and_names_it(dataset, settings):
    name = next(iter(settings))
    with pytest.raises(CharterError, match="which no charter may") as refused:
        check(setting(dataset, **settings))
    assert f"sets {name if len(name) < 40 else ''}" in refused.value.title
    assert refused.value.title.isprintable()
    assert len(refused.value.title) < 200


def test_every_difficulty_on_offer_and_the_first_swarm_may_be_set():
    check(first_swarm())
    for offer in catalogue.catalogue_entries():
        for level in offer.levels.values():
            assert setting_ranges.first_refused_setting(offer.dataset, level.settings) is None, offer.dataset


def test_a_number_lies_between_those_that_reasoning_gym_or_an_offer_sets():
    base = setting_ranges.all_ranges()["base_conversion"]
    assert (base["max_base"].least, base["max_base"].most) == (9, 27)
    for name, settings in setting_ranges.all_ranges().items():
        for limits in settings.values():
            assert limits.least <= limits.most, name
    for value, may in ((8, False), (9, True), (20, True), (27, True), (28, False)):
        assert (setting_ranges.first_refused_setting("base_conversion", {"max_base": value}) is None) is may


def test_other_numbers_than_those_on_offer_may_be_set():
    specialty = setting("basic_arithmetic", max_terms=5, max_digits=2, operators=["*"], allow_negation=True)
    assert decode(encode(specialty)) == specialty
    assert decode(encode(specialty := setting("letter_jumble", max_corruption_level=0.5))) == specialty


def test_the_list_is_of_what_is_listed_and_holds_no_free_text():
    listed = {name for name, finding in audit_results.shipped_audit().findings.items() if finding.listed}
    known = setting_ranges.all_ranges()
    assert set(known) == listed
    ranges = [(name, limits) for settings in known.values() for name, limits in settings.items()]
    assert len(ranges) > 250
    assert {name for name, limits in ranges if limits.kind == "words"} == {"operators", "tasks", "styles"}
    assert not {"seed", "size", "data_file", "delimiter", "male_names"} & {name for name, _ in ranges}
