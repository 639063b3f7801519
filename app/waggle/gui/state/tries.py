"""The answers to one question, equal ones merged, and what each of them is: right, right without its tag, or wrong."""

from typing import Literal

import msgspec

from waggle.gui.i18n.formatting import later, one_line, tr
from waggle.gui.state.typesetting import NumberGrid, grid_in
from waggle.protocol.events import RIGHT, UNTAGGED, ShownCompletion
from waggle.protocol.state import Card

Kind = Literal["right", "untagged", "close", "wrong", "cut", "written", "writing"]
ORDER: tuple[Kind, ...] = ("right", "untagged", "close", "wrong", "cut", "written", "writing")
CLOSE = 0.2  # the least reward of an answer that is nearly right
TAGS = "<answer>", "</answer>"
KIND_WORDS: dict[str, str] = {
    "right": later("right"), "untagged": later("right, no answer tag yet"), "close": later("close"), "wrong": later("wrong"),
    "cut": later("cut off"), "written": later("written"), "writing": later("writing"),
}  # fmt: skip
KIND_SIGNS: dict[str, tuple[str, str]] = {
    "right": ("good", "check"), "untagged": ("accent", "pen"), "close": ("bare", "off"), "wrong": ("bare", "cross"),
    "cut": ("bare", "cut"), "written": ("bare", "check"), "writing": ("bare", "pen"),
}  # fmt: skip


class Try(msgspec.Struct, frozen=True):
    """An answer that `count` completions gave. `text` is a model's words on one line; `grid` is what they are, if any."""

    text: str
    kind: Kind
    count: int
    grid: NumberGrid | None = None


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
    """What stands in the answer tags, else the whole text without stray tags, on one line."""
    return one_line(_answer_lines(answer)) or tr("(nothing)")


def _answer_lines(answer: ShownCompletion) -> str:
    words = answer.text[answer.start : answer.start + answer.length] if answer.length else answer.text
    for tag in TAGS:
        words = words.replace(tag, " ")
    return words


def merged_tries(answers: tuple[ShownCompletion, ...]) -> list[Try]:
    """Equal answers as one, the best first."""
    counts: dict[tuple[Kind, str, NumberGrid | None], int] = {}
    for answer in answers:
        if answer.human:
            continue
        key = kind_of(answer), essence(answer), grid_in(_answer_lines(answer))
        counts[key] = counts.get(key, 0) + 1
    tries = [Try(words, kind, count, grid) for (kind, words, grid), count in counts.items()]
    return sorted(tries, key=lambda each: (ORDER.index(each.kind), -each.count))


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
