#!/usr/bin/env python3
"""Writes resources/specialties.jsonl: audited datasets of reasoning-gym in up to three levels, with sample questions."""

import dataclasses
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "app"))

from waggle.tasks.sandbox.reasoning_gym_patches import stub_pycosat  # noqa: E402

stub_pycosat()

from reasoning_gym import factory  # noqa: E402

from waggle.core.errors import WaggleError  # noqa: E402
from waggle.tasks.audit_results import shipped_audit  # noqa: E402
from waggle.tasks.questions import QuestionKey  # noqa: E402
from waggle.tasks.sandbox.messages import DatasetLevels  # noqa: E402
from waggle.tasks.sandbox.verifier import Verifier  # noqa: E402
from waggle.tasks.shipped_swarms import first_swarm  # noqa: E402

EASED: dict[str, dict[str, Any]] = {  # what the starter model is trained on: easier than the easiest of reasoning-gym's curricula
    "base_conversion": {"min_base": 2, "max_base": 9, "min_value": 1, "max_value": 60},
    "basic_arithmetic": {
        "min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 1, "operators": ["+", "-", "*"],
        "allow_parentheses": False, "allow_negation": False,
    },
    "arc_1d": {"min_size": 10, "max_size": 10, "num_train": 2},
    "bf": {"difficulty": 1},
    "fraction_simplification": {"min_value": 1, "max_value": 30, "min_factor": 2, "max_factor": 12, "styles": ["plain"]},
    "decimal_arithmetic": {
        "min_num_decimal_places": 1, "max_num_decimal_places": 1, "min_terms": 2, "max_terms": 2, "precision": 4,
    },
    "calendar_arithmetic": {"offset_upper_bound": 14},
    "binary_matrix": {"min_n": 3, "max_n": 4},
}  # fmt: skip
LEVELS = {"easy": 0, "hard": 2}  # of reasoning-gym's curricula; "standard" is the dataset with its default settings
TOPICS = {"algorithmic": "algorithms", "arc": "patterns", "induction": "patterns", "cognition": "patterns", "code": "logic"}
TITLES = {
    "ab": "Cancelling A and B", "acre": "Which of them light up", "aiw": "Alice's family", "gcd": "Greatest common divisor",
    "lcm": "Least common multiple", "gsm_symbolic": "Word problems", "knights_knaves": "Knights and knaves", "jugs": "Water jugs",
    "count_bits": "Counting bits", "count_primes": "Counting primes", "emoji_mystery": "Hidden in an emoji",
    "number_format": "Comparing numbers", "path_star": "Paths in a star", "self_reference": "Statements about themselves",
    "game_of_life": "Game of Life", "tower_of_hanoi": "Tower of Hanoi",
}  # fmt: skip
WITHOUT_DOUBT: dict[str, dict[str, Any]] = {  # settings of every difficulty, without which some keys are false
    "aiw": {"task_type_weights": [0, 1, 0]},  # siblings and colleagues: their keys count people whom the text leaves open
    # A "horizontal" mirror swaps the rows of reasoning-gym, and a rotation has no direction. Weights are exponents.
    "manipulate_matrix": {"w_hmirror": -1000, "w_vmirror": -1000, "w_rotate": -1000},
    "number_filtering": {"min_decimals": 2, "max_decimals": 2},  # the same value written in two ways is kept once or twice
    "power_function": {"min_base": 1.0},  # -2.5^2 is -6.25 to mathematicians, and 6.25 to reasoning-gym
}
BY_LEVEL: dict[str, dict[str, dict[str, Any]]] = {  # settings in place of those of one difficulty, each for a reason
    "arc_1d": {"hard": {"max_size": 40}},  # larger grids: one of the tasks may never end
    "base_conversion": {"standard": {"min_value": 1}},  # zero has no digits
    "bf": {"standard": {"difficulty": 2}},  # that of reasoning-gym is the easy one; 3 takes a second for a question
    "chain_sum": {"easy": {"max_terms": 2, "max_digits": 2}},  # here and in the next lines: at least 1,000 different questions
    "count_bits": {"easy": {"min_n": 10, "max_n": 10_000}},
    "leg_counting": {"easy": {"min_animals": 2, "max_animals": 2, "min_instances": 2, "max_instances": 4}},
    "prime_factorization": {
        "easy": {"min_value": 10, "max_value": 2000}, "standard": {"min_value": 10, "max_value": 5000},
    },
    "products": {"easy": {"max_digits": 2}},
    "modulo_grid": {  # with fewer holes, a grid with any symbol in its hole is right more often than not
        "easy": {"max_divisor": 3, "max_target": 1, "max_holes": 5},
        "standard": {"max_divisor": 5, "max_target": 3, "max_holes": 10},
    },
    "simple_geometry": {  # angles with which the last one is below 180 degrees, as in a convex polygon
        "easy": {"min_sides": 3, "max_sides": 4, "min_angle": 61, "max_angle": 89},
        "standard": {"min_sides": 5, "max_sides": 6, "min_angle": 109, "max_angle": 134},
        "hard": {"min_sides": 12, "max_sides": 17, "min_angle": 158, "max_angle": 163},
    },
    "syllogism": {  # with "some", conclusions depend on whether anything of a kind exists; without balance, "Yes" wins
        "standard": {"allow_some": False, "allow_some_not": False, "inversion_probability": 0.0, "invalid_ratio": 0.5},
    },
}  # fmt: skip
LEFT_OUT: dict[str, str] = {  # datasets whose questions cannot be mended by settings, and why
    "circuit_logic": "the constant 0 is right in 62 of 100 circuits",
    "color_cube_rotation": "turns are ambiguous: a quarter of the keys is false",
    "emoji_mystery": "all levels hide the same few hundred sentences",
    "jugs": "all levels have fewer than 1,000 different questions, or take too long to make them",
    "letter_jumble": "many words have another anagram that is a word",
    "mahjong_puzzle": "a sixth of the keys is false",
    "number_sequence": "a few numbers continue in several ways",
    "palindrome_partitioning": "it says that all partitions may be given, and pays only for all of them",
    "propositional_logic": "a premise copied from the question is a right answer; logic_deduction takes its place",
    "sentence_reordering": "most words can be put in several orders",
    "string_manipulation": "the middle character of an even number of characters is any of two",
    "string_synthesis": "its rules can be applied in two orders with different results",
    "tower_of_hanoi": "it has fewer than 1,000 different questions of which a small model could write the answers",
    "tsumego": "the given move is not the best one in up to 29 of 100 positions",
}
LEFT_OUT_LEVELS: dict[tuple[str, str], str] = {
    ("family_relationships", "standard"): "relations by marriage are told the wrong way round",
    ("family_relationships", "hard"): "relations by marriage are told the wrong way round",
    ("self_reference", "easy"): "it is the standard level",
    ("self_reference", "hard"): "it is the standard level",
    ("syllogism", "easy"): "its true questions are those of the standard level",
    ("syllogism", "hard"): "its true questions are those of the standard level",
}
LONGEST = 1500  # characters of a question; small models cannot handle longer ones
SLOWEST = 0.2  # seconds to generate a question: a round needs eight
SAMPLES = 12


def settings(dataset: str, level: str) -> dict[str, Any] | None:
    """The settings of this difficulty; None if the dataset does not have it."""
    if dataset in LEFT_OUT or (dataset, level) in LEFT_OUT_LEVELS:
        return None
    level_settings = BY_LEVEL.get(dataset, {}).get(level) or upstream_settings(dataset, level)
    return None if level_settings is None else level_settings | WITHOUT_DOUBT.get(dataset, {})


def upstream_settings(dataset: str, level: str) -> dict[str, Any] | None:
    if level == "standard":
        return {}
    if level == "easy" and dataset in EASED:
        return EASED[dataset]
    if not factory.has_curriculum(dataset):
        return None
    curriculum = factory.create_curriculum(dataset)
    for name, attribute in curriculum.attributes.items():
        curriculum.set_attr_level(name, min(LEVELS[level], len(attribute.levels) - 1))
    try:
        generated = dataclasses.asdict(curriculum.generate_configuration())
    except (TypeError, ValueError, AssertionError):  # some curricula of reasoning-gym do not fit their own dataset
        return None
    plain = dataclasses.asdict(factory.DATASETS[dataset][1]())
    changed = {name: value for name, value in generated.items() if name not in ("seed", "size") and value != plain[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()} or None


def sample(dataset: str, dataset_settings: dict[str, Any]) -> tuple[str, int] | None:
    """The shortest of a dozen questions and the length of the longest; None if they are unsuitable or cannot be generated."""
    try:
        verifier = Verifier(first_swarm(), datasets=(DatasetLevels(dataset, (dataset_settings,)),))
    except (WaggleError, TypeError):
        return None
    try:
        began = time.monotonic()
        texts = [question.text for question in verifier.questions([QuestionKey(dataset, seed) for seed in range(2, 2 + SAMPLES)])]
        slow = (time.monotonic() - began) / SAMPLES > SLOWEST
    except WaggleError:
        return None
    finally:
        verifier.close()
    longest = max(map(len, texts))
    return None if slow or longest > LONGEST or len(set(texts)) < SAMPLES // 2 else (min(texts, key=len), longest)


def line(dataset: str) -> dict[str, Any] | None:
    titles = {specialty.dataset: specialty.title for specialty in first_swarm().specialties}
    room = factory.DATASETS[dataset][0].__module__.split(".")[1]
    levels = {}
    for level in ("easy", "standard", "hard"):
        level_settings = settings(dataset, level)
        sampled = sample(dataset, level_settings) if level_settings is not None else None
        if sampled:
            levels[level] = {"settings": level_settings, "sample": sampled[0], "longest": sampled[1]}
    title = titles.get(dataset, TITLES.get(dataset, dataset.replace("_", " ").capitalize()))
    return {"dataset": dataset, "title": title, "topic": TOPICS.get(room, room), "levels": levels} if levels else None


def put(name: str, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in lines)
    (ROOT / "resources" / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(lines)} datasets, {len(text)} bytes")


def main() -> int:
    audit = shipped_audit()
    assert audit.heading.reasoning_gym == version("reasoning-gym")
    listed = [name for name, finding in sorted(audit.findings.items()) if finding.listed and name in factory.DATASETS]
    put("specialties.jsonl", [entry for name in listed if (entry := line(name))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
