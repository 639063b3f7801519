"""A room in which one dataset is examined: the audit's child process, started again whenever a text has stalled or ended it."""

import math
import signal
from collections.abc import Sequence

import msgspec

from waggle.core.errors import LabError
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.child_process import ChildProcess

START_SECONDS = 120.0  # importing reasoning-gym on a slow disk
PATIENCE_SECONDS = 60.0  # for one answer, on a busy computer; where the kernel can, it ends the child long before
TOGETHER = 100  # answers that are known not to stall
SPENT = "MemoryError"
OUT_OF_TIME = (None, -getattr(signal, "SIGPROF", 0))  # exit codes: still running, or ended by the kernel
ENDED = "the end of the process"


class CannotBeMade(Exception):
    """The dataset makes no questions where answers are judged; says why."""


class Room:
    """Raises CannotBeMade at once where the dataset cannot be made ready."""

    def __init__(self, asked: messages.ExamineDataset, *, hash_seed: int = 0) -> None:
        self._asked = asked
        self._hash_seed = hash_seed
        self._open()

    def _open(self) -> None:
        self._child = _child(self._hash_seed)
        self._made: set[int] = set()
        try:
            reply = self._child.ask(self._asked, START_SECONDS)
        except (EOFError, TimeoutError) as error:
            self._child.end()
            raise CannotBeMade(str(error)) from error
        if isinstance(reply, messages.Failed):
            self._child.end()
            raise CannotBeMade(reply.reason)

    def make(self, seeds: Sequence[int]) -> messages.GeneratedQuestions:
        """The questions and answers of these seeds, made from nothing in this order."""
        try:
            reply = self._child.ask(messages.GenerateEntries(list(seeds)), START_SECONDS)
        except EOFError as error:
            raise CannotBeMade(str(error)) from error
        except TimeoutError as error:
            raise CannotBeMade("some of them take minutes") from error
        if not isinstance(reply, messages.GeneratedQuestions):
            raise CannotBeMade(reply.reason if isinstance(reply, messages.Failed) else "no answer")
        self._made = set(seeds)
        return reply

    def score(self, seed: int, text: str) -> messages.AnswerScore:
        """What the scorer did. One that stalls, or takes all memory, took forever; one that dies is told as an exception."""
        if seed not in self._made:  # not on the time of the answer
            self.make([seed])
        try:
            (found,) = self._ask([(seed, text)])
        except (TimeoutError, EOFError) as error:
            late = isinstance(error, TimeoutError) or self._child.process.poll() in OUT_OF_TIME
            self._reopen()
            return messages.AnswerScore(0.0, "" if late else ENDED, [], math.inf)
        return msgspec.structs.replace(found, seconds=math.inf) if found.raised == SPENT else found

    def score_quick(self, items: Sequence[tuple[int, str]]) -> list[messages.AnswerScore]:
        """Many at once, none of which stalled before; the rest is left out if one does now."""
        found: list[messages.AnswerScore] = []
        for first in range(0, len(items), TOGETHER):
            try:
                found += self._ask(items[first : first + TOGETHER])
            except (TimeoutError, EOFError):  # whoever compares finds too few
                break
        return found

    def _ask(self, items: Sequence[tuple[int, str]]) -> list[messages.AnswerScore]:
        reply = self._child.ask(messages.ScoreAnswers(list(items)), PATIENCE_SECONDS)
        if not isinstance(reply, messages.AnswerScores):
            raise CannotBeMade(reply.reason if isinstance(reply, messages.Failed) else "no answer")
        return reply.scores

    def _reopen(self) -> None:
        self._child.end()
        self._open()

    def close(self) -> None:
        self._child.end()


def catalogue() -> messages.DatasetList:
    """The installed reasoning-gym: its version, and its datasets by name. Raises LabError."""
    child = _child(0)
    try:
        reply = child.ask(messages.ListDatasets(), START_SECONDS)
    except (EOFError, TimeoutError) as error:
        raise LabError(f"reasoning-gym cannot be asked: {error}.") from error
    finally:
        child.end()
    if not isinstance(reply, messages.DatasetList):
        raise LabError("reasoning-gym cannot be asked.")
    return reply


def _child(hash_seed: int) -> ChildProcess[messages.AuditReply]:
    return ChildProcess("waggle.tasks.sandbox.audit_process", messages.audit_reply, hash_seed=hash_seed)
