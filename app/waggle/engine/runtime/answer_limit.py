"""The answer limit: as a person set it, as the trial of prompt forms found it, or the usual one; higher if it proves too low."""

import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from waggle.engine.runtime import form_choice
from waggle.protocol.events import AnswerLength, PromptFormChoice, RoundSummary
from waggle.sapo.answer_length import is_too_low

log = logging.getLogger(__name__)

ROUNDS = 10  # in a row that have to say that a limit is too low


def answer_length(setting: int, usual: int, form: PromptFormChoice, file: Path) -> AnswerLength:
    """The limit of a model that is asked in a form. `usual` is the most that memory was calculated for.

    `setting` is what a person set, 0 if nothing; `file` is where the trial stored its choice.
    """
    stored = form_choice.read(file)
    if setting:
        return AnswerLength(tokens=usual, why="setting")
    if form.why == "starter" or stored is None or stored.form != form.form or not stored.answer_tokens:
        return AnswerLength(tokens=usual, why="usual")
    return AnswerLength(tokens=min(usual, stored.answer_tokens), why="raised" if stored.raised else "trial")


@dataclass
class AnswerLimit:
    """The limit that a trial found, watched round by round. Used in the policy thread."""

    length: AnswerLength
    ceiling: int  # tokens
    file: Path
    _rounds: deque[RoundSummary] = field(default_factory=lambda: deque(maxlen=ROUNDS), init=False)

    def review(self, summary: RoundSummary) -> AnswerLength | None:
        """Take a round into account. A new limit, twice as high and stored, if many answers were cut off unread for a while."""
        stored = form_choice.read(self.file)
        if self.length.why not in ("trial", "raised") or self.length.tokens >= self.ceiling or stored is None:
            return None
        self._rounds.append(summary)
        answers, readable, cut = (
            sum(getattr(each, name) for each in self._rounds) for name in ("completions", "readable", "cut")
        )
        if len(self._rounds) < ROUNDS or not is_too_low(answers, readable, cut, stored.readable / max(1, stored.total)):
            return None
        self._rounds.clear()
        self.length = AnswerLength(tokens=min(self.ceiling, 2 * self.length.tokens), why="raised")
        log.info("answers may have %d tokens now: many were cut off", self.length.tokens)
        with suppress(OSError):  # a full disk: the next start learns it again
            form_choice.store(self.file, msgspec.structs.replace(stored, answer_tokens=self.length.tokens, raised=True))
        return self.length
