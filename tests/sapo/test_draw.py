"""The draw: which levels a round asks about, with which numbers of the epoch, and what takes the place of other questions."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest

from sapo.test_round import CHARTER, LINES, RULES, external, node
from waggle.core.errors import CharterError
from waggle.sapo.question_mix import FLOOR, QuestionMix
from waggle.sapo.round import draw, play
from waggle.sapo.stages import Drawn, Judged, Node
from waggle.tasks.charter import Specialty
from waggle.tasks.questions import Question, QuestionKey, split_of
from waggle.tasks.sandbox.verifier import Verifier

LEVELS = msgspec.structs.replace(
    CHARTER,
    specialties=(
        Specialty(dataset="chain_sum", title="Sums", levels=("easy", "hard")),
        Specialty(dataset="bf", title="Programs", levels=("easy",)),
    ),
)


class Invented:
    """A verifier that calls a function for the text of each question and records the keys."""

    def __init__(self, text: Callable[[QuestionKey], str]) -> None:
        self._text = text
        self.keys: list[list[QuestionKey]] = []

    def questions(self, keys: Sequence[QuestionKey]) -> list[Question]:
        self.keys.append(list(keys))
        return [Question(dataset=key.dataset, seed=key.seed, text=self._text(key), level=key.level) for key in keys]


def text_of(split: str, key: QuestionKey) -> str:
    """A text that belongs to this split."""
    return next(text for number in range(10_000) if split_of(key.dataset, text := f"{key.seed} {number}?") == split)


def train(key: QuestionKey) -> str:
    return text_of("train", key)


def of_levels(verifier: object, **changes: object) -> Node:
    return dataclasses.replace(node(verifier), charter=LEVELS, **changes)


def levels_of(drawn: Drawn) -> list[tuple[str, int]]:
    return [(group.id.dataset, group.id.level) for group, _ in drawn.groups]


@pytest.fixture(scope="module")
def of_two_levels() -> Iterator[Verifier]:
    own = Verifier(LEVELS)
    yield own
    own.close()


def test_a_number_is_used_once_in_a_round_and_not_by_the_next_one() -> None:
    me = of_levels(Invented(train))
    rounds = [[group.id.number for group, _ in draw(number, 100, me, RULES).groups] for number in range(20)]
    numbers = [number for each in rounds for number in each]
    assert len(set(numbers)) == len(numbers) == 20 * RULES.questions


def test_a_skipped_question_uses_up_its_number_and_the_next_round_does_not_use_it_either(verifier: Verifier) -> None:
    me = node(verifier)
    rounds = [[group.id.number for group, _ in draw(number, 100, me, RULES).groups] for number in range(60)]
    first = [2 * number * RULES.questions for number in range(60)]
    assert all(len(set(each)) == RULES.questions for each in rounds)
    assert any(max(each) - start >= RULES.questions for each, start in zip(rounds, first, strict=True)), "some were reserved"
    numbers = [number for each in rounds for number in each]
    assert len(set(numbers)) == len(numbers)


def test_questions_are_of_the_level_that_their_id_names(of_two_levels: Verifier) -> None:
    me = of_levels(of_two_levels)
    counts = Counter[tuple[str, int]]()
    for number in range(10):
        drawn = draw(number, 100, me, RULES)
        counts.update(levels_of(drawn))
        for group, question in drawn.groups:
            assert (question.dataset, question.level) == (group.id.dataset, group.id.level)
            assert of_two_levels.questions([group.id.key(LEVELS.digest, me.origin)]) == [question]
    assert set(counts) == {("chain_sum", 0), ("chain_sum", 1), ("bf", 0)}
    assert min(counts.values()) > 10, "about a third each"


def test_a_node_asks_about_all_levels_of_its_own_specialties_only() -> None:
    me = of_levels(Invented(train), specialties=("chain_sum",))
    counts = Counter(level for number in range(20) for level in levels_of(draw(number, 100, me, RULES)))
    assert set(counts) == {("chain_sum", 0), ("chain_sum", 1)}


def test_a_level_that_teaches_is_asked_about_more_and_the_others_at_the_floor() -> None:
    me = of_levels(Invented(train), mix=QuestionMix({"chain_sum/0": 0.0, "chain_sum/1": 1.0, "bf/0": 0.0}))
    total = 200 * RULES.questions
    counts = Counter(level for number in range(200) for level in levels_of(draw(number, 100, me, RULES)))
    assert counts["chain_sum", 1] / total == pytest.approx(1 - FLOOR * 2 / 3, abs=0.05)
    for level in (("chain_sum", 0), ("bf", 0)):
        assert counts[level] / total == pytest.approx(FLOOR / 3, abs=0.04)


def test_a_reserved_question_gives_way_to_another_one_of_its_level() -> None:
    first: list[int] = []

    def text(key: QuestionKey) -> str:
        if len(first) < RULES.questions:
            first.append(key.seed)
        return text_of("test" if key.seed in first else "train", key)

    questions = Invented(text)
    drawn = draw(3, 100, of_levels(questions), RULES)
    reserved, replacements = ([(key.dataset, key.level) for key in keys] for keys in questions.keys)
    assert reserved == replacements == levels_of(drawn)
    assert [group.id.number for group, _ in drawn.groups] == list(range(7 * RULES.questions, 8 * RULES.questions))


@pytest.mark.parametrize(
    ("silent", "instead"),
    [(("chain_sum", 0), ("chain_sum", 1)), (("chain_sum", 1), ("bf", 0)), (("bf", 0), ("chain_sum", 0))],
)
def test_a_question_that_does_not_exist_gives_way_to_one_of_the_next_level(
    silent: tuple[str, int], instead: tuple[str, int]
) -> None:
    questions = Invented(lambda key: "" if (key.dataset, key.level) == silent else train(key))
    drawn = draw(0, 100, of_levels(questions), dataclasses.replace(RULES, questions=24))
    first, replacements = (Counter((key.dataset, key.level) for key in keys) for keys in questions.keys)
    assert first[silent] > 0
    assert replacements == {instead: first[silent]}
    assert Counter(levels_of(drawn)) == first + replacements - Counter({silent: first[silent]})


def test_a_question_that_is_too_long_gives_way_to_one_of_the_next_level() -> None:
    me = of_levels(Invented(lambda key: "x" * 500 if key.dataset == "chain_sum" else train(key)))
    drawn = draw(0, 100, me, dataclasses.replace(RULES, context=RULES.max_new + 100))
    assert set(levels_of(drawn)) == {("bf", 0)}


@pytest.mark.parametrize("questions", [15, 16, 17, 64])
def test_an_epoch_of_few_numbers_is_exhausted_and_named(questions: int) -> None:
    """A question is reserved now and then, so a round of sixteen needs more numbers than an epoch of sixteen has."""
    few = msgspec.structs.replace(LEVELS, questions_per_epoch=16)
    first: list[int] = []

    def text(key: QuestionKey) -> str:
        first.append(key.seed)
        return text_of("test" if key.seed == first[0] else "train", key)

    me = dataclasses.replace(of_levels(Invented(text)), charter=few)
    rules = dataclasses.replace(RULES, questions=questions)
    if questions < 16:
        assert {group.id.number for group, _ in draw(0, 100, me, rules).groups} == set(range(1, 16))
        return
    with pytest.raises(CharterError, match=f"too few questions for {questions} a round"):
        next(play(0, 100, me, rules))


def test_late_in_an_epoch_numbers_begin_again_and_stay_below_the_limit() -> None:
    few = msgspec.structs.replace(LEVELS, questions_per_epoch=20)
    me = dataclasses.replace(of_levels(Invented(train)), charter=few)
    for number in range(12):
        numbers = [group.id.number for group, _ in draw(number, 100, me, RULES).groups]
        assert len(set(numbers)) == RULES.questions
        assert max(numbers) < 20


def test_a_round_moves_the_mix_by_its_own_groups_and_by_none_of_a_peer(verifier: Verifier) -> None:
    me = node(verifier, lines=LINES, pool=[external(number) for number in range(8)])
    stages = list(play(0, 100, me, RULES))
    judged = next(stage for stage in stages if isinstance(stage, Judged))
    expected = QuestionMix()
    expected.update(judged.groups, RULES.crumb_span)
    assert me.mix.state == expected.state
    assert set(me.mix.state) == {f"{group.question.dataset}/{group.question.level}" for group in judged.groups}
