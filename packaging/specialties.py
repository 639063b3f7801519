#!/usr/bin/env python3
"""Writes resources/specialties.jsonl: audited datasets of reasoning-gym in up to three difficulties, with sample questions.

Also writes resources/adjustable.jsonl: the settings of each dataset that a charter may set. `--adjustable` writes only this file.
"""

import dataclasses
import json
import sys
import time
import typing
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "app"))

from reasoning_gym import factory  # noqa: E402

from waggle.core.errors import WaggleError  # noqa: E402
from waggle.tasks.audit_results import shipped  # noqa: E402
from waggle.tasks.charter import Charter, Specialty, first_swarm  # noqa: E402
from waggle.tasks.sandbox.verifier import Verifier  # noqa: E402

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
    eased = {specialty.dataset: specialty for specialty in first_swarm().specialties}
    if level == "standard":
        return {}
    if level == "easy" and dataset in eased:
        return dict(eased[dataset].settings)
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
        specialty = Specialty(dataset=dataset, title=dataset[:40], settings=dataset_settings)
        verifier = Verifier(Charter(name="sample", specialties=(specialty,)))
    except (WaggleError, TypeError):
        return None
    try:
        began = time.monotonic()
        texts = [question.text for question in verifier.questions([(dataset, seed) for seed in range(2, 2 + SAMPLES)])]
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


def adjustable(dataset: str, offered: list[dict[str, Any]]) -> dict[str, Any]:
    """The switches of a dataset, its numbers in the range that was tried, and the words that Waggle itself offers."""
    config = factory.DATASETS[dataset][1]
    hints, plain = typing.get_type_hints(config), config()
    choices: dict[str, Any] = {}
    for name in sorted(set(hints) - {"seed", "size"}):
        known = [getattr(plain, name), *(settings[name] for settings in offered if name in settings)]
        if hints[name] is bool:
            choices[name] = {"kind": "switch"}
        elif hints[name] in (int, float):
            whole = hints[name] is int and not any(isinstance(value, float) for value in known)
            choices[name] = {"kind": "whole" if whole else "number", "least": min(known), "most": max(known)}
        elif words := sorted({word for words_on_offer in known[1:] for word in words_on_offer}):
            choices[name] = {"kind": "words", "words": words}
    return {"dataset": dataset, "settings": choices}


def put(name: str, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in lines)
    (ROOT / "resources" / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(lines)} datasets, {len(text)} bytes")


def main() -> int:
    audit = shipped()
    assert audit.heading.reasoning_gym == version("reasoning-gym")
    listed = [name for name, finding in sorted(audit.findings.items()) if finding.listed and name in factory.DATASETS]
    if "--adjustable" not in sys.argv:
        put("specialties.jsonl", [entry for name in listed if (entry := line(name))])
    offered = map(json.loads, (ROOT / "resources" / "specialties.jsonl").read_text(encoding="utf-8").splitlines())
    levels = {entry["dataset"]: [level["settings"] for level in entry["levels"].values()] for entry in offered}
    put("adjustable.jsonl", [adjustable(name, levels.get(name, [])) for name in listed])
    return 0


if __name__ == "__main__":
    sys.exit(main())
