"""Lessons that hostile peers teach beside right answers, one a file, and the list of them."""

from waggle_lab.security.lessons import (
    below_bounds,
    chosen_answers,
    false_reasoning,
    long_answers,
    planted_phrase,
    treason,
    twin_identities,
)
from waggle_lab.security.lessons.interface import Lesson

LESSONS: dict[str, Lesson] = {
    "chosen answers": chosen_answers.LESSON,
    "long answers": long_answers.LESSON,
    "false reasoning": false_reasoning.LESSON,
    "planted phrase": planted_phrase.LESSON,
    "treason": treason.LESSON,
    "twin lessons": twin_identities.LESSON,
    "below the bounds": below_bounds.LESSON,
}
