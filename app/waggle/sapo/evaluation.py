"""The held-out score: pass@1 of the node's own policy on reserved questions, which no node trains on."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from waggle.rl.batch import Ids, SamplingParams, nothing
from waggle.rl.random_streams import uniforms
from waggle.sapo.stages import Node, RoundSettings, fits
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import RIGHT, Completion

AT_ONCE = 64  # questions sampled in one call at most: bounds the memory of the KV cache
EXAM_DIGITS = 16  # hexadecimal digits of an exam's name: 64 bits


@dataclass(frozen=True)
class Score:
    """One sampled answer for each question: `right` of `total`. `by_dataset` has (right, total) of each specialty."""

    round: int
    by_dataset: Mapping[str, tuple[int, int]]

    @property
    def right(self) -> int:
        return sum(right for right, _ in self.by_dataset.values())

    @property
    def total(self) -> int:
        return sum(total for _, total in self.by_dataset.values())


def exam_of(questions: Sequence[Question]) -> str:
    """A name that only the same questions in the same order have: scores on other questions cannot be compared."""
    canonical = "\0".join(f"{question.dataset}|{question.text}" for question in questions)
    return hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:EXAM_DIGITS]


def few_of(questions: Sequence[Question], count: int) -> tuple[Question, ...]:
    """About `count` of the questions: the first ones of each specialty, as many of each, and at least one."""
    each = max(1, count // max(1, len({question.dataset for question in questions})))
    places = Counter[str]()
    few: list[Question] = []
    for question in questions:
        places[question.dataset] += 1
        if places[question.dataset] <= each:
            few.append(question)
    return tuple(few)


def measure(
    number: int, node: Node, rules: RoundSettings, questions: Sequence[Question], *, pause_point: Callable[[], None] = nothing,
    report: Callable[[int, int], None] = nothing,
) -> Score:  # fmt: skip
    """Sample one completion at temperature 1 for every question that fits the policy, and count the right ones.

    `report` gets, again and again, how many questions were answered so far, and how many there are.
    """
    items = sample_completions(number, node, rules, questions, purpose="held_out", pause_point=pause_point, report=report)
    by_dataset: dict[str, tuple[int, int]] = {}
    for (question, _), verdict in zip(items, node.verifier.judge(items), strict=True):
        right, total = by_dataset.get(question.dataset, (0, 0))
        by_dataset[question.dataset] = (right + (verdict.reward >= RIGHT), total + 1)
    return Score(number, by_dataset)


def sample_completions(
    number: int, node: Node, rules: RoundSettings, questions: Sequence[Question], *, purpose: str,
    pause_point: Callable[[], None], report: Callable[[int, int], None] = nothing,
) -> list[tuple[Question, Completion]]:  # fmt: skip
    """Sample one completion at temperature 1 for every question that fits the policy. `purpose` names the random stream."""
    questions = [question for question in questions if fits(node, rules, question)]

    def watch(_tokens: Ids, _lengths: Ids, ended: NDArray[np.bool_]) -> None:
        report(len(items) + int(ended.sum()), len(questions))

    params = SamplingParams(
        max_new=rules.max_new, stops=node.tokenizer.stops, temperature=1.0, pause_point=pause_point, watch=watch
    )
    items: list[tuple[Question, Completion]] = []
    noise = uniforms(node.seed, purpose, number, len(questions), 1, rules.max_new)
    at_once = min(AT_ONCE, rules.questions * rules.group_size)  # a round writes as many answers, so there is memory for them
    for first in range(0, len(questions), at_once):
        part = questions[first : first + at_once]
        prompts = [node.prompt(question) for question in part]
        for question, (sampled,) in zip(part, node.policy.sample(prompts, noise[first : first + at_once], params), strict=True):
            items.append((question, node.completion(sampled)))
    return items
