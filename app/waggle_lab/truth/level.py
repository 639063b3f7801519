"""The truth of one level of a dataset: whether its keys are true, which constant wins, and what its scorer pays for."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from waggle.tasks.questions import Question, QuestionId, QuestionKey
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.sandbox.verifier_process import CLOSE
from waggle.tasks.shipped_swarms import first_swarm
from waggle.tasks.specialties.interface import Setting
from waggle_lab.truth import texts
from waggle_lab.truth.interface import Oracle, UnreadableQuestion

CHUNK = 250  # questions at a time: the verifier's child caches those of one chunk
FINALISTS = 3  # constants that are tried on every question, not only on the first chunk
EXAMPLES = 3
LONGEST_EXAMPLE = 600  # characters of a question or an answer in an example
WINS = 0.55  # a constant with a higher mean reward wins
FEW = 0.5  # a smaller share of different questions is worth a remark


class Example(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question with its key, and what was answered or went wrong."""

    seed: int
    question: str
    key: str
    text: str = ""


class PaidAlteration(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of alteration that is paid: the shares of altered keys that earn RIGHT, and that earn less but more than a crumb."""

    alteration: str
    tried: int
    right: float
    partial: float
    example: Example


class RefusedForm(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of equivalent form that is refused: the share that earns less than RIGHT."""

    form: str
    tried: int
    refused: float


class LevelReport(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit's file."""

    dataset: str
    level: str
    settings: Mapping[str, Setting]
    seeds: int
    truth: Literal["checked", "unchecked"]
    questions: int  # seeds that have a question
    distinct: int  # different questions
    checked: int = 0  # keys that the oracle could judge
    false_keys: int = 0
    false_examples: tuple[Example, ...] = ()
    unreadable: int = 0  # questions that the oracle does not understand
    unreadable_examples: tuple[Example, ...] = ()
    unpaid_keys: int = 0  # keys that their own scorer does not pay in full
    constant: str = ""  # the constant answer with the highest mean reward
    constant_reward: float = 0.0
    altered: int = 0  # altered keys that were tried
    altered_paid: tuple[PaidAlteration, ...] = ()
    equivalent: int = 0  # equivalent forms that were tried
    equivalent_refused: tuple[RefusedForm, ...] = ()
    seconds: float = 0.0

    @property
    def reasons(self) -> list[str]:
        """What speaks against the level, in words; what is merely unknown or refused too strictly is not among it."""
        reasons = []
        if self.false_keys:
            reasons.append(f"{self.false_keys} of {self.checked} keys are false")
        if self.unreadable:
            reasons.append(f"the oracle does not understand {self.unreadable} questions")
        if self.unpaid_keys:
            reasons.append(f"{self.unpaid_keys} keys are not paid by their own scorer")
        if self.constant_reward > WINS:
            reasons.append(f"the constant {self.constant!r} earns {self.constant_reward:.2f}")
        reasons += [
            f"{paid.alteration}: {paid.right:.0%} are paid in full, {paid.partial:.0%} in part" for paid in self.altered_paid
        ]
        if self.distinct < FEW * self.questions:
            reasons.append(f"only {self.distinct} of {self.questions} questions differ")
        return reasons


@dataclass
class Observations:
    """What was counted so far."""

    questions: set[str] = field(default_factory=set)
    generated: int = 0
    checked: int = 0
    false_keys: int = 0
    false_examples: list[Example] = field(default_factory=list)
    unreadable: int = 0
    unreadable_examples: list[Example] = field(default_factory=list)
    unpaid_keys: int = 0
    constant_rewards: dict[str, float] = field(default_factory=dict)  # sums
    finalists: tuple[str, ...] = ()
    altered_rewards: dict[str, list[tuple[float, Example]]] = field(default_factory=lambda: defaultdict(list))
    equivalent_rewards: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def audit_level(dataset: str, level: str, settings: Mapping[str, Setting], *, seeds: int, oracle: Oracle | None) -> LevelReport:
    """Audit one level on this many seeds like those of a swarm. Raises WaggleError if the dataset cannot be used."""
    began, observations = time.monotonic(), Observations()
    with closing(Verifier(first_swarm(), datasets=(DatasetLevels(dataset, (dict(settings),)),))) as verifier:
        for first in range(0, seeds, CHUNK):
            chunk = [swarm_seed(dataset, index) for index in range(first, min(first + CHUNK, seeds))]
            _observe(verifier, dataset, chunk, oracle, observations, is_first=not first)
    return _report(dataset, level, settings, seeds, oracle, observations, time.monotonic() - began)


def swarm_seed(dataset: str, index: int) -> int:
    """A seed of 63 bits, drawn as in a swarm."""
    return QuestionId(dataset, 0, index).key(b"truth", b"audit").seed


def _observe(
    verifier: Verifier, dataset: str, seeds: list[int], oracle: Oracle | None, observations: Observations, *, is_first: bool
) -> None:
    generated = verifier.questions([QuestionKey(dataset, seed) for seed in seeds])
    questions = {question.seed: question for question in generated if question.text}
    keys = dict(zip(questions, verifier.answers([question.key for question in questions.values()]), strict=True))
    observations.generated += len(questions)
    observations.questions.update(question.text for question in questions.values())
    bench = _Bench(verifier, {seed: question.text for seed, question in questions.items()}, keys, dataset)
    _check_keys(bench, oracle, observations)
    observations.unpaid_keys += sum(reward < RIGHT for reward in bench.rewards(list(keys.items())))
    if is_first:
        common = [key for key, _ in Counter(keys.values()).most_common()]
        _try_constants(bench, texts.constants(common), observations)
        _try_altered(bench, oracle, observations)
        _try_equivalent(bench, observations)
        ranked = sorted(observations.constant_rewards.items(), key=lambda scored: -scored[1])
        observations.finalists = tuple(constant for constant, _ in ranked[:FINALISTS])
    else:
        _try_constants(bench, observations.finalists, observations)


@dataclass(frozen=True)
class _Bench:
    """The questions and keys of one chunk by their seeds, and the verifier that judges answers to them."""

    verifier: Verifier
    questions: Mapping[int, str]
    keys: Mapping[int, str]
    dataset: str

    def rewards(self, answers: Sequence[tuple[int, str]]) -> list[float]:
        items = [
            (
                Question(dataset=self.dataset, seed=seed, text=self.questions[seed]),
                Completion(text=f"<answer>{text}</answer>", ended=True),
            )
            for seed, text in answers
        ]
        return [verdict.reward for verdict in self.verifier.judge(items)]

    def example(self, seed: int, text: str = "") -> Example:
        question, key, text = (part[:LONGEST_EXAMPLE] for part in (self.questions[seed], self.keys[seed], text))
        return Example(seed=seed, question=question, key=key, text=text)


def _check_keys(bench: _Bench, oracle: Oracle | None, observations: Observations) -> None:
    if oracle is None:
        return
    for seed, key in bench.keys.items():
        try:
            is_true = oracle(bench.questions[seed], key)
        except Exception as error:  # noqa: BLE001 - an oracle that fails in any way has not checked the key
            observations.unreadable += 1
            if len(observations.unreadable_examples) < EXAMPLES:
                reason = str(error) if isinstance(error, UnreadableQuestion) else f"{type(error).__name__}: {error}"
                observations.unreadable_examples.append(bench.example(seed, reason))
            continue
        observations.checked += 1
        if not is_true:
            observations.false_keys += 1
            if len(observations.false_examples) < EXAMPLES:
                observations.false_examples.append(bench.example(seed))


def _try_constants(bench: _Bench, constants: Sequence[str], observations: Observations) -> None:
    for constant in constants:
        rewards = bench.rewards([(seed, constant) for seed in bench.keys])
        observations.constant_rewards[constant] = observations.constant_rewards.get(constant, 0.0) + sum(rewards)


def _try_altered(bench: _Bench, oracle: Oracle | None, observations: Observations) -> None:
    kinds, answers, other = [], [], ""
    for seed, key in bench.keys.items():
        for kind, text in texts.altered(bench.questions[seed], key, other or key, random.Random(seed)):
            if text.strip() != key.strip() and not (_is_true(oracle, bench.questions[seed], text) and not _has_words(kind)):
                kinds.append(kind)
                answers.append((seed, text))
        other = key
    for kind, (seed, text), reward in zip(kinds, answers, bench.rewards(answers), strict=True):
        observations.altered_rewards[kind].append((reward, bench.example(seed, text)))


def _has_words(kind: str) -> bool:
    return kind.startswith(texts.BESIDE)


def _is_true(oracle: Oracle | None, question: str, text: str) -> bool:
    """Whether the oracle takes an altered key for a true answer, as it may where a question has several."""
    try:
        return oracle is not None and oracle(question, text)
    except Exception:  # noqa: BLE001 - an altered key may be anything
        return False


def _try_equivalent(bench: _Bench, observations: Observations) -> None:
    forms = [(kind, seed, form) for seed, key in bench.keys.items() for kind, form in texts.equivalent(key)]
    rewards = bench.rewards([(seed, form) for _, seed, form in forms])
    for (kind, _, _), reward in zip(forms, rewards, strict=True):
        observations.equivalent_rewards[kind].append(reward)


def _report(
    dataset: str,
    level: str,
    settings: Mapping[str, Setting],
    seeds: int,
    oracle: Oracle | None,
    observations: Observations,
    seconds: float,
) -> LevelReport:
    best = max(observations.finalists, key=lambda constant: observations.constant_rewards[constant], default="")
    return LevelReport(
        dataset=dataset,
        level=level,
        settings=settings,
        seeds=seeds,
        truth="unchecked" if oracle is None else "checked",
        questions=observations.generated,
        distinct=len(observations.questions),
        checked=observations.checked,
        false_keys=observations.false_keys,
        false_examples=tuple(observations.false_examples),
        unreadable=observations.unreadable,
        unreadable_examples=tuple(observations.unreadable_examples),
        unpaid_keys=observations.unpaid_keys,
        constant=best,
        constant_reward=round(observations.constant_rewards.get(best, 0.0) / max(1, observations.generated), 4),
        altered=sum(map(len, observations.altered_rewards.values())),
        altered_paid=_paid(observations),
        equivalent=sum(map(len, observations.equivalent_rewards.values())),
        equivalent_refused=_refused(observations),
        seconds=round(seconds, 1),
    )


def _paid(observations: Observations) -> tuple[PaidAlteration, ...]:
    paid = []
    for kind, rewards in sorted(observations.altered_rewards.items()):
        reward, example = max(rewards, key=lambda scored: scored[0])
        if reward > CLOSE:
            right = sum(reward >= RIGHT for reward, _ in rewards) / len(rewards)
            partial = sum(CLOSE < reward < RIGHT for reward, _ in rewards) / len(rewards)
            paid.append(
                PaidAlteration(
                    alteration=kind, tried=len(rewards), right=round(right, 4), partial=round(partial, 4), example=example
                )
            )
    return tuple(paid)


def _refused(observations: Observations) -> tuple[RefusedForm, ...]:
    shares = {
        kind: (len(rewards), sum(reward < RIGHT for reward in rewards) / len(rewards))
        for kind, rewards in sorted(observations.equivalent_rewards.items())
    }
    return tuple(RefusedForm(form=kind, tried=tried, refused=round(share, 4)) for kind, (tried, share) in shares.items() if share)
