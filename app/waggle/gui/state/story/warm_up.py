"""A question for the person while the engine starts: one of the shipped example, with the tries of an untrained model at it."""

from functools import cache

import msgspec

from waggle.core import paths
from waggle.gui.state.story.tries import Try, essence, kind_of, merged_tries, most_telling
from waggle.protocol import json_lines
from waggle.protocol.events import GroupsJudged, QuestionsDrawn
from waggle.protocol.state import Card, State, apply

LONGEST = 40  # characters of a question that is read at a glance


class WarmUp(msgspec.Struct, frozen=True):
    """A question, its answer, and what an untrained model wrote eight times."""

    question: str
    truth: str
    tries: tuple[Try, ...]


@cache
def warm_up() -> WarmUp | None:
    """The shortest telling question of the example's first round; None if there is none."""
    state = State()
    try:
        for event in json_lines.recording(paths.example()):
            if isinstance(event, QuestionsDrawn | GroupsJudged):
                state = apply(state, event)
            if isinstance(event, GroupsJudged):
                break
    except OSError:  # the program's files were moved meanwhile
        return None
    return next(filter(None, map(_of_card, most_telling(state.cards))), None)


def _of_card(card: Card) -> WarmUp | None:
    right = [answer for answer in card.completions if kind_of(answer) in ("right", "untagged")]
    if not right or len(card.question) > LONGEST:
        return None
    return WarmUp(card.question, essence(right[0]), tuple(merged_tries(card.completions)))


def is_right(warm_up: WarmUp, answer: str) -> bool:
    """Whether a person's answer is the true one, apart from case and white space."""
    return "".join(answer.split()).casefold() == "".join(warm_up.truth.split()).casefold()
