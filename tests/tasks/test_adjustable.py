"""What a charter may set: everything that is offered or usual, and nothing by which a stranger names a file or floods memory."""

import msgspec
import pytest

from waggle.errors import CharterError
from waggle.tasks import adjustable, audited, offered
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
        ("basic_arithmetic", {"max_terms": 2_000_000_000}),
        ("basic_arithmetic", {"max_terms": -2_000_000_000}),
        ("basic_arithmetic", {"max_terms": 10**400}),
        ("basic_arithmetic", {"max_terms": 3.5}),
        ("basic_arithmetic", {"max_terms": True}),
        ("basic_arithmetic", {"max_terms": [3]}),
        ("aiw", {"task_type_weights": [1] * 17}),
        ("aiw", {"task_type_weights": [1, "0"]}),
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
    for offer in offered.shipped():
        for level in offer.levels.values():
            assert adjustable.refused(offer.dataset, level.settings) is None, offer.dataset


def test_other_numbers_than_those_on_offer_may_be_set():
    made = setting("basic_arithmetic", min_terms=5, max_terms=9, operators=["*"], allow_negation=True)
    assert decode(encode(made)) == made
    assert decode(encode(made := setting("syllogism", invalid_ratio=0.25))) == made
    assert decode(encode(made := setting("aiw", task_type_weights=[1, 0, 0]))) == made


def test_the_list_is_of_what_is_listed_and_holds_no_free_text():
    listed = {name for name, found in audited.shipped().findings.items() if found.listed}
    known = adjustable.shipped()
    assert set(known) == listed
    ranges = [(name, one) for settings in known.values() for name, one in settings.items()]
    assert len(ranges) > 250
    assert {name for name, one in ranges if one.kind == "words"} == {"operators", "tasks", "styles"}
    assert not {"seed", "size", "data_file", "delimiter", "male_names"} & {name for name, _ in ranges}
