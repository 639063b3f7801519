"""The answer length: how many tokens an answer may have, from what a model's readable answers needed."""

import math
from collections.abc import Sequence

from waggle.sapo.prompt_form import CLOSING_TAG, Prompter
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import Completion

MOST = 0.95  # of the readable answers are no longer than what the limit is computed from
MARGIN = 1.5  # times that length: an answer to another question, or of a model that learned something, is longer
FLOOR = 24  # tokens: what the starter has; a word before the answer must be possible
STEP = 8  # the limit is a multiple of it
ENOUGH = 6  # readable answers from which a length can be learned
MORE = 0.25  # more of the answers than in the trial are cut off before they can be read: then the limit is too low


def tokens_needed(prompter: Prompter, question: Question, completion: Completion) -> int:
    """Tokens of a completion up to its closing tag, and a stop token. What the model says after that is not judged."""
    prompt, prefill = prompter.prompt(question), prompter.form.prefill
    head, tag, _ = completion.text.partition(CLOSING_TAG)
    tokens = prompter.continuation(prompt, head + tag)
    opening = prompt.continuation(prefill) if prefill and completion.text.startswith(prefill) else ()
    return len(tokens) - len(opening) + 1


def needed_limit(lengths: Sequence[int], ceiling: int) -> int:
    """The limit for a model whose readable answers needed so many tokens each; 0 if they are too few to say."""
    if len(lengths) < ENOUGH:
        return 0
    usual = sorted(lengths)[math.ceil(MOST * len(lengths)) - 1]
    return min(ceiling, max(FLOOR, STEP * math.ceil(MARGIN * usual / STEP)))


def is_too_low(answers: int, readable: int, cut: int, readable_in_trial: float) -> bool:
    """Whether many more of some answers were cut off unread than when the limit was learned."""
    unread = max(0, cut - readable) / max(1, answers)  # at the least: a readable answer may be cut off as well
    return unread >= min(0.9, 1.0 - readable_in_trial + MORE)
