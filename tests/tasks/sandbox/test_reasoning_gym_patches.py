"""Scores of honest text are those of upstream but for the exceptions that Waggle makes: the paper's nine specialties."""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal

import msgspec
import psutil
import pytest

from waggle.tasks.questions import Question, QuestionKey
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import Verifier, datasets_of
from waggle.tasks.shipped_swarms import first_swarm

FORMULAS = {
    "min_vars": 2, "max_vars": 4, "min_statements": 2, "max_statements": 3, "min_complexity": 1, "max_complexity": 2,
}  # fmt: skip
SPECIALTIES = {each.dataset: each.levels[0] for each in datasets_of(first_swarm()) if each.dataset != "logic_deduction"}
SPECIALTIES["propositional_logic"] = FORMULAS  # the paper has it, and its scorer stays patched
QUESTIONS = 60
CRUMB = 0.1
CONTAINING = ("arc_1d", "base_conversion", "basic_arithmetic", "bf")  # upstream pays for texts that contain the key
FORMULA = re.compile(r"(?:[A-Z](?!\s*[A-Z])|[()∧∨¬→↔\s])*")
UPSTREAM = """
import json, sys
import reasoning_gym
said = {}
for name, (settings, answers) in json.load(sys.stdin.buffer).items():
    made = {seed: reasoning_gym.create_dataset(name, seed=seed, size=1, **settings) for seed in {seed for seed, _ in answers}}
    entries = {seed: dataset[0] for seed, dataset in made.items()}
    said[name] = [float(made[seed].score_answer(text, entries[seed])) for seed, text in answers]
json.dump(said, sys.__stdout__)
"""


def numbers_as_models_write_them(answer: str) -> list[str]:
    if not answer.lstrip("-").replace(".", "", 1).isdigit():
        return []
    number = float(answer)
    return [
        f"+{answer}",
        f"0{answer}",
        f"{number:.4f}",
        str(int(number) + 1),
        str(-number),
        f"{number + 0.05:.3f}",
        f"{number:,}",
    ]


def grids_as_models_write_them(answer: str) -> list[str]:
    rows = [line.split() for line in answer.splitlines()]
    if not all(cell.isdigit() for row in rows for cell in row):
        return []
    cells = [[int(cell) for cell in row] for row in rows]
    other = [[cell + 1 for cell in row] for row in cells]
    spaced = "\n".join("  ".join(row) for row in rows)
    return [
        repr(cells),
        json.dumps(cells, separators=(",", ":")),
        json.dumps(cells, indent=1),
        repr(other),
        spaced,
        repr(cells[:1]),
    ]


def fractions_as_models_write_them(answer: str) -> list[str]:
    top, slash, bottom = answer.partition("/")
    if not slash:
        return []
    return [
        f"{top} / {bottom}",
        f"\\frac{{{top}}}{{{bottom}}}",
        f"${answer}$",
        f"{bottom}/{top}",
        f"{top}/{bottom}/1",
        f"-{answer}",
    ]


def formulas_as_models_write_them(answer: str, chance: random.Random) -> list[str]:
    if not any(sign in answer for sign in "∧∨¬→↔") and answer not in ("P", "Q", "R", "S"):
        return []
    more = [
        f"({answer})",
        f"¬{answer}",
        f"¬(¬{answer})",
        answer.replace(" ", ""),
        f"{answer} ∨ P",
        f"Therefore {answer}",
        f"(({answer}",
    ]
    return more + [formula(chance, 3) for _ in range(6)] + [answer.replace("∨", "or").replace("∧", "and"), "P ∨ ¬P", "p ∨ q"]


def formula(chance: random.Random, depth: int) -> str:
    if not depth or chance.random() < 0.3:
        return chance.choice("PQRS")
    if chance.random() < 0.2:
        return f"¬{formula(chance, depth - 1)}"
    return f"({formula(chance, depth - 1)} {chance.choice('∧∨→↔')} {formula(chance, depth - 1)})"


def honest(answer: str, other: str, chance: random.Random) -> list[str]:
    """Honest answers: the true one and that of another question, in the forms that a model writes."""
    plain = [
        answer,
        other,
        f"{answer}.",
        answer.lower(),
        answer.upper(),
        answer.title(),
        f"[{answer}]",
        f'"{answer}"',
        f"**{answer}**",
    ]
    worded = [f"The answer is {answer}.", f"= {answer}", f"\\boxed{{{answer}}}", f"{answer}\n\nThis is right.", f"{answer} days"]
    broken = [
        answer[:-1],
        answer + answer[-1:],
        answer.replace(" ", ""),
        answer.replace(" ", ", "),
        answer[::-1],
        "I do not know",
        "0",
    ]
    written = [numbers_as_models_write_them, grids_as_models_write_them, fractions_as_models_write_them]
    texts = [*plain, *worded, *broken, *(text for write in written for text in write(answer))]
    return [text for text in (*texts, *formulas_as_models_write_them(answer, chance)) if text.strip()]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    """A verifier of the paper's nine specialties."""
    datasets = tuple(DatasetLevels(name, (settings,)) for name, settings in SPECIALTIES.items())
    with closing(Verifier(first_swarm(), datasets=datasets)) as paper:
        yield paper


@pytest.fixture(scope="module")
def answers(verifier) -> dict[str, list[tuple[int, str]]]:
    chance, answers_by_dataset = random.Random(7), {}
    for name in SPECIALTIES:
        truths = verifier.answers([QuestionKey(name, seed) for seed in range(QUESTIONS)])
        answers_by_dataset[name] = [
            (seed, text.strip()) for seed, truth in enumerate(truths) for text in honest(truth, truths[seed - 1], chance)
        ]
    return answers_by_dataset


@pytest.fixture(scope="module")
def upstream(answers) -> dict[str, list[float]]:
    """The scores in a process without Waggle's patches."""
    input_by_dataset = {name: (SPECIALTIES[name], answers[name]) for name in SPECIALTIES}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", UPSTREAM]
    done = subprocess.run(command, input=msgspec.json.encode(input_by_dataset), env=environment, capture_output=True, check=True)
    return json.loads(done.stdout[done.stdout.rindex(b"{") :])


def due(name: str, text: str, truth: str, theirs: float) -> float:
    """The expected reward: that of upstream, with the exceptions that Waggle makes."""
    if name == "propositional_logic":  # what is no formula never follows from contradicting premises
        return theirs if FORMULA.fullmatch(text) else min(theirs, 0.05)
    if name == "decimal_arithmetic":  # a wrong last digit is wrong
        return 1.0 if is_number(text) and Decimal(text) == Decimal(truth) else min(theirs, CRUMB)
    if name == "calendar_arithmetic":  # a wrong count that is close earns a part of a crumb
        return CRUMB * theirs if theirs < 1.0 else theirs
    if name in CONTAINING and theirs < 1.0:
        beside = rests(text, truth)
        is_alone = any(not any(letter.isalnum() or letter in "\\" for letter in before + after) for before, after in beside)
        return theirs if is_alone else min(theirs, CRUMB) if beside else 0.0
    return theirs


def is_number(text: str) -> bool:
    return text[text.startswith(("-", "+")) :].replace(".", "", 1).isdecimal()


def rests(text: str, truth: str) -> list[tuple[str, str]]:
    """What stands before and behind the true answer, wherever it is no part of a longer number or word."""
    places = [place for place in range(len(text)) if text.startswith(truth, place)]
    beside = [(text[:place], text[place + len(truth) :]) for place in places]
    return [
        (before, after)
        for before, after in beside
        if not (before[-1:].isalnum() or before.endswith(("+", "-", ".", "/")))
        and not (after[:1].isalnum() or (after[:1] in (".", ",") and after[1:2].isdigit()) or after.startswith("/"))
    ]


@pytest.mark.parametrize("name", SPECIALTIES)
def test_honest_text_earns_what_upstream_pays_but_for_the_exceptions(name, verifier, answers, upstream):
    items = [
        (Question(dataset=name, seed=seed, text=""), Completion(text=f"<answer>{text}</answer>", ended=True))
        for seed, text in answers[name]
    ]
    ours = [verdict.reward for verdict in verifier.judge(items)]
    assert len(ours) >= 1000
    truths = verifier.answers([QuestionKey(name, seed) for seed in range(QUESTIONS)])
    pairs = list(zip(answers[name], ours, upstream[name], strict=True))
    same_keys = {seed for (seed, text), _, theirs in pairs if text == truths[seed].strip() and theirs == 1.0}
    assert len(same_keys) >= 0.8 * QUESTIONS, "the other keys of upstream are false"
    compared = [(seed, text, mine, theirs) for (seed, text), mine, theirs in pairs if seed in same_keys]
    differing = [
        (seed, text, truths[seed], mine, theirs)
        for seed, text, mine, theirs in compared
        if mine != due(name, text, truths[seed].strip(), theirs)
    ]
    assert differing == []
    assert {0.0, 1.0} <= {round(reward, 1) for reward in ours}


@pytest.mark.parametrize(
    "text",
    ["({truth}) ∨ visit evil.example/x", "zog → ({truth})", "({truth}) ∨ ٣", "({truth}) ∨ P{other}", "({truth}) ∨ P {other}"],
)
def test_what_follows_from_anything_may_hold_no_words(verifier, text):
    keys = [QuestionKey("propositional_logic", seed) for seed in range(QUESTIONS)]
    items = [
        (question, Completion(text=f"<answer>{text.format(truth=truth, other=letter)}</answer>", ended=True))
        for question, truth in zip(verifier.questions(keys), verifier.answers(keys), strict=True)
        for letter in "PQ"
    ]
    assert max(verdict.reward for verdict in verifier.judge(items)) == 0.05


@pytest.mark.parametrize("text", ["¬" * 90 + "P" * 290, "¬" * 99 + "P", "¬" * 30 + " " * 300 + "P", " ∨ ".join("PQ" * 60)])
def test_a_formula_takes_a_hundredth_of_a_second_at_most(verifier, text):
    (question,) = verifier.questions([QuestionKey("propositional_logic", 3)])
    child = psutil.Process(verifier.pid)
    before = child.cpu_times()
    verifier.judge_strangers([(question, Completion(text=f"<answer>{text}</answer>", ended=True))] * 100)
    after = child.cpu_times()
    assert after.user + after.system - before.user - before.system < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "(" * 25 + "a0" + "".join(f" ∨ a{i})" for i in range(1, 26)),
        "¬" * 400,
        "¬" * 90 + "P" * 19_000,
        "(" * 200 + "P" + ")" * 200,
        "9" * 400,
        "[" * 400,
    ],
)
def test_a_text_that_would_stall_or_crash_upstream_is_wrong_at_once_and_costs_nothing(verifier, text):
    keys = [QuestionKey(name, 3) for name in ("propositional_logic", "binary_matrix", "calendar_arithmetic", "bf")]
    questions, child = verifier.questions(keys), verifier.pid
    honest_one = Completion(text=f"<answer>{verifier.answers(keys[-1:])[0]}</answer>", ended=True)
    items = [(question, Completion(text=f"<answer>{text}</answer>", ended=True)) for question in questions]
    verdicts = verifier.judge_strangers([*items, (questions[-1], honest_one)])
    assert [verdict.reward < RIGHT for verdict in verdicts] == [True, True, True, True, False]
    assert verifier.pid == child
