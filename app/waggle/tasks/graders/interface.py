"""What a grader has to define: which true answers it can grade, and how it scores a text.

The text and the true answer come from strangers. A grader must not evaluate, import or open anything, and must not compile a
regular expression from either. `waggle.tasks.answer_text` reads words, numbers, lists and JSON within these rules.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Grader:
    """One way to grade.

    `check(answer)` returns the reason why it cannot grade this true answer, in words that follow "the answer ..."; empty if it
    can. `score(text, answer, tolerance)` returns a reward from 0 to 1 for a text, given a true answer that passed `check`. It
    takes any text and never raises, and takes time and memory at most in proportion to the text. A smaller reward than 1 for a
    partly right answer must not be within reach of a text that fits all questions: the graders of Waggle pay 1 or nothing.

    `title` is for people. `tolerance` is a number of the question file, 0 if `uses_tolerance` is false.
    """

    title: str
    check: Callable[[str], str]
    score: Callable[[str, str, float], float]
    uses_tolerance: bool = False
