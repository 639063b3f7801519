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

from reasoning_gym import factory  # noqa: E402

from waggle.core.errors import WaggleError  # noqa: E402
from waggle.tasks.audit_results import shipped_audit  # noqa: E402
from waggle.tasks.charter import first_swarm  # noqa: E402
from waggle.tasks.questions import QuestionKey  # noqa: E402
from waggle.tasks.sandbox.messages import DatasetLevels  # noqa: E402
from waggle.tasks.sandbox.verifier import Verifier  # noqa: E402

EASED: dict[str, dict[str, Any]] = {  # what the starter model is trained on: easier than the easiest of reasoning-gym's curricula
    "base_conversion": {"min_base": 2, "max_base": 9, "min_value": 1, "max_value": 60},
    "basic_arithmetic": {
        "min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 1, "operators": ["+", "-", "*"],
        "allow_parentheses": False, "allow_negation": False,
    },
    "arc_1d": {"min_size": 10, "max_size": 10, "num_train": 2},
    "bf": {"difficulty": 1},
    "propositional_logic": {
        "min_vars": 2, "max_vars": 4, "min_statements": 2, "max_statements": 3, "min_complexity": 1, "max_complexity": 2,
    },
    "fraction_simplification": {"min_value": 1, "max_value": 20, "min_factor": 2, "max_factor": 12, "styles": ["plain"]},
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
    "power_function": {"min_base": 1.0},  # -2.5^2 is -6.25 to mathematicians, and 6.25 to reasoning-gym
}
LONGEST = 1500  # characters of a question; small models cannot handle longer ones
SLOWEST = 0.2  # seconds to generate a question: a round needs eight
SAMPLES = 12


def settings(dataset: str, level: str) -> dict[str, Any] | None:
    """The settings in a charter for this difficulty; None if the dataset does not have it."""
    level_settings = upstream_settings(dataset, level)
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
