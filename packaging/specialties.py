#!/usr/bin/env python3
"""Writes resources/specialties.jsonl: audited datasets of reasoning-gym in up to three difficulties, with sample questions.

And resources/adjustable.jsonl: which settings of each a charter may hold. With `--adjustable` that file only.
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

LEVELS = {"easy": 0, "hard": 2}  # of reasoning-gym's own curricula; "standard" is what it makes without being asked
TOPICS = {"algorithmic": "algorithms", "arc": "patterns", "induction": "patterns", "cognition": "patterns", "code": "logic"}
TITLES = {
    "ab": "Cancelling A and B", "acre": "Which of them light up", "aiw": "Alice's family", "gcd": "Greatest common divisor",
    "lcm": "Least common multiple", "gsm_symbolic": "Word problems", "knights_knaves": "Knights and knaves", "jugs": "Water jugs",
    "count_bits": "Counting bits", "count_primes": "Counting primes", "emoji_mystery": "Hidden in an emoji",
    "number_format": "Comparing numbers", "path_star": "Paths in a star", "self_reference": "Statements about themselves",
    "game_of_life": "Game of Life", "tower_of_hanoi": "Tower of Hanoi",
}  # fmt: skip
LONGEST = 1500  # characters of a question that a small model can be asked
SLOWEST = 0.2  # seconds of making one: eight are made a round
SAMPLES = 12


def settings(dataset: str, level: str) -> dict[str, Any] | None:
    """What a charter says of this difficulty; None where there is no such difficulty."""
    eased = {one.dataset: one for one in first_swarm().specialties}
    if level == "standard":
        return {}
    if level == "easy" and dataset in eased:
        return dict(eased[dataset].settings)
    if not factory.has_curriculum(dataset):
        return None
    curriculum = factory.create_curriculum(dataset)
    for name, one in curriculum.attributes.items():
        curriculum.set_attr_level(name, min(LEVELS[level], len(one.levels) - 1))
    try:
        made = dataclasses.asdict(curriculum.generate_configuration())
    except (TypeError, ValueError, AssertionError):  # a curriculum of reasoning-gym that does not fit its own dataset
        return None
    plain = dataclasses.asdict(factory.DATASETS[dataset][1]())
    found = {name: value for name, value in made.items() if name not in ("seed", "size") and value != plain[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()} or None


def sample(dataset: str, wanted: dict[str, Any]) -> tuple[str, int] | None:
    """A short question, and the characters of the longest of a dozen; None where the verifier's child cannot make them."""
    try:
        specialty = Specialty(dataset=dataset, title=dataset[:40], settings=wanted)
        verifier = Verifier(Charter(name="sample", specialties=(specialty,)))
    except (WaggleError, TypeError):
        return None
    try:
        began = time.monotonic()
        texts = [one.text for one in verifier.questions([(dataset, seed) for seed in range(2, 2 + SAMPLES)])]
        slow = (time.monotonic() - began) / SAMPLES > SLOWEST
    except WaggleError:
        return None
    finally:
        verifier.close()
    longest = max(map(len, texts))
    return None if slow or longest > LONGEST or len(set(texts)) < SAMPLES // 2 else (min(texts, key=len), longest)


def line(dataset: str) -> dict[str, Any] | None:
    titles = {one.dataset: one.title for one in first_swarm().specialties}
    room = factory.DATASETS[dataset][0].__module__.split(".")[1]
    levels = {}
    for level in ("easy", "standard", "hard"):
        wanted = settings(dataset, level)
        made = sample(dataset, wanted) if wanted is not None else None
        if made:
            levels[level] = {"settings": wanted, "sample": made[0], "longest": made[1]}
    title = titles.get(dataset, TITLES.get(dataset, dataset.replace("_", " ").capitalize()))
    return {"dataset": dataset, "title": title, "topic": TOPICS.get(room, room), "levels": levels} if levels else None


def adjustable(dataset: str, offered: list[dict[str, Any]]) -> dict[str, Any]:
    """Its switches, its numbers as far as they were tried, and lists of those words that Waggle itself offers."""
    config = factory.DATASETS[dataset][1]
    hints, plain = typing.get_type_hints(config), config()
    found: dict[str, Any] = {}
    for name in sorted(set(hints) - {"seed", "size"}):
        known = [getattr(plain, name), *(settings[name] for settings in offered if name in settings)]
        if hints[name] is bool:
            found[name] = {"kind": "switch"}
        elif hints[name] in (int, float):
            whole = hints[name] is int and not any(isinstance(one, float) for one in known)
            found[name] = {"kind": "whole" if whole else "number", "least": min(known), "most": max(known)}
        elif words := sorted({word for said in known[1:] for word in said}):
            found[name] = {"kind": "words", "words": words}
    return {"dataset": dataset, "settings": found}


def put(name: str, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)
    (ROOT / "resources" / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(lines)} datasets, {len(text)} bytes")


def main() -> int:
    audit = shipped()
    assert audit.heading.reasoning_gym == version("reasoning-gym")
    listed = [name for name, found in sorted(audit.findings.items()) if found.listed and name in factory.DATASETS]
    if "--adjustable" not in sys.argv:
        put("specialties.jsonl", [made for name in listed if (made := line(name))])
    offered = map(json.loads, (ROOT / "resources" / "specialties.jsonl").read_text(encoding="utf-8").splitlines())
    levels = {one["dataset"]: [level["settings"] for level in one["levels"].values()] for one in offered}
    put("adjustable.jsonl", [adjustable(name, levels.get(name, [])) for name in listed])
    return 0


if __name__ == "__main__":
    sys.exit(main())
