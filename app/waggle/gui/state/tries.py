"""The answers to one question, equal ones merged, and what each of them is: right, right without its tag, or wrong."""

from typing import Literal

import msgspec

from waggle.gui.i18n.formatting import later, one_line, tr
from waggle.protocol.events import RIGHT, UNTAGGED, ShownCompletion
from waggle.protocol.state import Card

Kind = Literal["right", "untagged", "close", "wrong", "cut", "writing"]
ORDER: tuple[Kind, ...] = ("right", "untagged", "close", "wrong", "cut", "writing")
CLOSE = 0.2  # the least reward of an answer that is nearly right
TAGS = "<answer>", "</answer>"
KIND_WORDS: dict[str, str] = {
    "right": later("right"), "untagged": later("right, no answer tag yet"), "close": later("close"), "wrong": later("wrong"),
    "cut": later("cut off"), "writing": later("writing"),
}  # fmt: skip
KIND_SIGNS: dict[str, tuple[str, str]] = {
    "right": ("good", "check"), "untagged": ("accent", "pen"), "close": ("bare", "off"), "wrong": ("bare", "cross"),
    "cut": ("bare", "cut"), "writing": ("bare", "pen"),
}  # fmt: skip


class Try(msgspec.Struct, frozen=True):
    """An answer that `count` completions gave. `text` is one line of a model's words."""

    text: str
    kind: Kind
    count: int


def kind_of(answer: ShownCompletion) -> Kind:
    """What an answer is worth; a wrong one without its tag is just wrong."""
    if not answer.judged:
        return "writing"
    if answer.reward >= RIGHT:
        return "right"
    if answer.reason == UNTAGGED:
        return "untagged"
    if answer.reward >= CLOSE:
        return "close"
    return "cut" if answer.reason.startswith("cut off") else "wrong"


def essence(answer: ShownCompletion) -> str:
    """What stands in the answer tags, else the whole text without stray tags, on one line."""
    words = answer.text[answer.start : answer.start + answer.length] if answer.length else answer.text
    for tag in TAGS:
        words = words.replace(tag, " ")
    return one_line(words) or tr("(nothing)")


def merged_tries(answers: tuple[ShownCompletion, ...]) -> list[Try]:
    """Equal answers as one, the best first."""
    counts: dict[tuple[Kind, str], int] = {}
    for answer in answers:
        if answer.human:
            continue
        key = kind_of(answer), essence(answer)
        counts[key] = counts.get(key, 0) + 1
    tries = [Try(words, kind, count) for (kind, words), count in counts.items()]
    return sorted(tries, key=lambda each: (ORDER.index(each.kind), -each.count))


def most_telling(cards: tuple[Card, ...]) -> list[Card]:
    """The judged cards of this computer's newest judged round, those first that show most.

    Right answers, else right ones without their tag, beside others.
    """
    judged = [card for card in cards if card.mine and not card.by_hand and all(answer.judged for answer in card.completions)]
    newest = max((card.round for card in judged), default=0)

    def tells(card: Card) -> tuple[int, bool, int]:
        kinds = [kind_of(answer) for answer in card.completions]
        best = 2 * ("right" in kinds) + ("untagged" in kinds)
        return best, len(set(kinds)) > 1, kinds.count("right") + kinds.count("untagged")

    return sorted((card for card in judged if card.round == newest), key=tells, reverse=True)
