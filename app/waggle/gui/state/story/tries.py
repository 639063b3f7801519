"""The answers to one question, equal ones merged, and what each of them is: right, right without its tag, or wrong."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from waggle.gui.i18n.formatting import later, one_line, tr
from waggle.gui.state.story.typesetting import NumberGrid, grid_in
from waggle.protocol.events import RIGHT, UNTAGGED, ShownCompletion
from waggle.protocol.state import Card

Kind = Literal["right", "untagged", "close", "wrong", "cut", "written", "writing", "truth"]
ORDER: tuple[Kind, ...] = ("right", "untagged", "close", "wrong", "cut", "written", "writing", "truth")
WORTH_A_LOOK: tuple[Kind, ...] = "right", "untagged", "close"
CLOSE = 0.2  # the least reward of an answer that is nearly right
TAGS = "<answer>", "</answer>"
KIND_WORDS: dict[str, str] = {
    "right": later("right"), "untagged": later("right, wrong format"), "close": later("close"), "wrong": later("wrong"),
    "cut": later("cut off"), "written": later("written"), "writing": later("writing"), "truth": later("right answer"),
}  # fmt: skip
KIND_SIGNS: dict[str, tuple[str, str]] = {
    "right": ("good", "check"), "untagged": ("accent", "pen"), "close": ("bare", "off"), "wrong": ("bare", "cross"),
    "cut": ("bare", "cut"), "written": ("bare", "check"), "writing": ("bare", "pen"), "truth": ("bare", "judge"),
}  # fmt: skip


class Try(msgspec.Struct, frozen=True):
    """An answer that `count` completions gave. `text` is a model's words on one line; `grid` is what they are, if any.

    Of kind "truth": no try, but the right answer that none of them found. `effect`: 1 if learning made it likelier, -1 if less
    likely. `human`: a person wrote it, according to its origin.
    """

    text: str
    kind: Kind
    count: int
    grid: NumberGrid | None = None
    effect: int = 0
    human: bool = False


def kind_of(answer: ShownCompletion) -> Kind:
    """What an answer is worth; a wrong one without its tag is just wrong."""
    if not answer.judged:
        return "written" if answer.ended else "writing"
    if answer.reward >= RIGHT:
        return "right"
    if answer.reason == UNTAGGED:
        return "untagged"
    if answer.reward >= CLOSE:
        return "close"
    return "cut" if answer.reason.startswith("cut off") else "wrong"


def essence(answer: ShownCompletion) -> str:
    """What stands in the answer tags, else the whole text, without stray tags unless it has several, on one line."""
    return one_line(_answer_lines(answer)) or tr("(nothing)")


def plain_reply(words: str) -> str:
    """What a model wrote, without answer tags."""
    for tag in TAGS:
        words = words.replace(tag, "")
    return words


def _answer_lines(answer: ShownCompletion) -> str:
    words = answer.text[answer.start : answer.start + answer.length] if answer.length else answer.text
    if words.count(TAGS[0]) > 1:  # which is why it does not count, so the tags are shown
        return words
    for tag in TAGS:
        words = words.replace(tag, " ")
    return words


def merged_tries(answers: tuple[ShownCompletion, ...]) -> list[Try]:
    """Equal answers as one, the best first."""
    return _merged(Try(essence(answer), kind_of(answer), 1, _grid_of(answer)) for answer in answers if not answer.human)


def card_tries(card: Card) -> list[Try]:
    """The tries of a card with what learning did to each. While some are written, none is merged, so none jumps."""
    effects = (*card.effects, *(0 for _ in card.completions))
    if not all(answer.judged for answer in card.completions):
        return [Try(one_line(_answer_lines(answer)), kind_of(answer), 1, human=answer.human) for answer in card.completions]
    merged = _merged(
        Try(essence(answer), kind_of(answer), 1, _grid_of(answer), effect, answer.human)
        for answer, effect in zip(card.completions, effects, strict=False)
    )
    return [*merged, *truth_of(card)]


def truth_of(card: Card) -> list[Try]:
    """The right answer, if it is known and no try has it."""
    if not card.truth or any(kind_of(answer) in ("right", "untagged") for answer in card.completions):
        return []
    return [Try(one_line(card.truth), "truth", 1, grid_in(card.truth))]


def says_more(answer: ShownCompletion) -> bool:
    """Whether the text of an answer is more than its essence: words around its tags."""
    if not answer.length:
        return False
    around = answer.text[: answer.start] + answer.text[answer.start + answer.length :]
    for tag in TAGS:
        around = around.replace(tag, " ")
    return bool(one_line(around).strip())


def is_fruitless(card: Card) -> bool:
    """Whether all tries are judged, none is worth a look, and nothing was learned: one line says enough."""
    fruitless = all(answer.judged and kind_of(answer) not in WORTH_A_LOOK for answer in card.completions)
    return fruitless and bool(card.completions) and not card.by_hand and not any(card.effects)


def _grid_of(answer: ShownCompletion) -> NumberGrid | None:
    return grid_in(_answer_lines(answer))


def _merged(tries: Iterable[Try]) -> list[Try]:
    """Equal ones as one, the best first, and of these the most frequent."""
    merged = [replace(each, count=count) for each, count in Counter(tries).items()]
    return sorted(merged, key=lambda each: (ORDER.index(each.kind), -each.count))


def most_telling(cards: tuple[Card, ...]) -> list[Card]:
    """The judged cards of this computer's newest judged round, those first that show most."""
    rounds = judged_rounds(cards)
    return rounds[max(rounds)] if rounds else []


def judged_rounds(cards: tuple[Card, ...]) -> dict[int, list[Card]]:
    """The judged cards of each of this computer's rounds, those first that show most.

    Right answers, else right ones without their tag, beside others.
    """
    rounds: dict[int, list[Card]] = {}
    for card in cards:
        if card.mine and not card.by_hand and all(answer.judged for answer in card.completions):
            rounds.setdefault(card.round, []).append(card)
    return {number: sorted(judged, key=_shows, reverse=True) for number, judged in rounds.items()}


def _shows(card: Card) -> tuple[int, bool, int]:
    """How much a card shows, for comparing."""
    kinds = [kind_of(answer) for answer in card.completions]
    best = 2 * ("right" in kinds) + ("untagged" in kinds)
    return best, len(set(kinds)) > 1, kinds.count("right") + kinds.count("untagged")
