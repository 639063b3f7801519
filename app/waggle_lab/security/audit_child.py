"""The child process that audits one dataset; it is started again whenever a text has stalled or ended it."""

import math
import signal
from collections.abc import Sequence

import msgspec

from waggle.core.errors import LabError
from waggle.core.message import Message
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.child_process import ChildProcess

START_SECONDS = 120.0  # long enough to import reasoning-gym from a slow disk
ANSWER_SECONDS = 60.0  # for one answer on a busy computer; where the kernel can limit CPU time, it ends the child much earlier
BATCH_SIZE = 100  # of answers that are known not to stall
OUT_OF_MEMORY = "MemoryError"
OUT_OF_TIME = (None, -getattr(signal, "SIGPROF", 0))  # exit codes of a child that still runs, or that the kernel ended
PROCESS_ENDED = "the end of the process"


class UnusableDataset(Exception):
    """The dataset cannot generate questions in the sandbox; the message says why."""


class AuditChild:
    """A child process for one dataset; close it. Every method may raise UnusableDataset."""

    def __init__(self, request: messages.ExamineDataset, *, hash_seed: int = 0) -> None:
        self._request = request
        self._hash_seed = hash_seed
        self._start()

    def _start(self) -> None:
        self._child = _child(self._hash_seed)
        self._generated_seeds: set[int] = set()
        try:
            reply = self._child.ask(self._request, START_SECONDS)
        except (EOFError, TimeoutError) as error:
            self._child.end()
            raise UnusableDataset(str(error)) from error
        if isinstance(reply, messages.Failed):
            self._child.end()
            raise UnusableDataset(reply.reason)

    def generate(self, seeds: Sequence[int]) -> messages.GeneratedQuestions:
        """Generate the questions and answers of these seeds from scratch, in this order."""
        try:
            reply = self._child.ask(messages.GenerateEntries(list(seeds)), START_SECONDS)
        except EOFError as error:
            raise UnusableDataset(str(error)) from error
        except TimeoutError as error:
            raise UnusableDataset(Message("some of them take minutes")) from error
        if not isinstance(reply, messages.GeneratedQuestions):
            raise UnusableDataset(reply.reason if isinstance(reply, messages.Failed) else Message("no answer"))
        self._generated_seeds = set(seeds)
        return reply

    def score(self, seed: int, text: str) -> messages.AnswerScore:
        """Score a text. A scorer that stalls or exhausts memory took infinite time; one that dies counts as an exception."""
        if seed not in self._generated_seeds:  # so that it does not count as time of the answer
            self.generate([seed])
        try:
            (scored,) = self._ask([(seed, text)])
        except (TimeoutError, EOFError) as error:
            took_too_long = isinstance(error, TimeoutError) or self._child.process.poll() in OUT_OF_TIME
            self._restart()
            return messages.AnswerScore(0.0, "" if took_too_long else PROCESS_ENDED, [], math.inf)
        return msgspec.structs.replace(scored, seconds=math.inf) if scored.raised == OUT_OF_MEMORY else scored

    def score_quick(self, items: Sequence[tuple[int, str]]) -> list[messages.AnswerScore]:
        """Score many texts that did not stall before; if one stalls now, the rest is missing from the result."""
        scores: list[messages.AnswerScore] = []
        for first in range(0, len(items), BATCH_SIZE):
            try:
                scores += self._ask(items[first : first + BATCH_SIZE])
            except (TimeoutError, EOFError):  # the caller compares and notices the missing ones
                break
        return scores

    def _ask(self, items: Sequence[tuple[int, str]]) -> list[messages.AnswerScore]:
        reply = self._child.ask(messages.ScoreAnswers(list(items)), ANSWER_SECONDS)
        if not isinstance(reply, messages.AnswerScores):
            raise UnusableDataset(reply.reason if isinstance(reply, messages.Failed) else Message("no answer"))
        return reply.scores

    def _restart(self) -> None:
        self._child.end()
        self._start()

    def close(self) -> None:
        self._child.end()


def catalogue() -> messages.DatasetList:
    """The version and the datasets of the installed reasoning-gym; raises LabError."""
    child = _child(0)
    try:
        reply = child.ask(messages.ListDatasets(), START_SECONDS)
    except (EOFError, TimeoutError) as error:
        raise LabError(f"The datasets of reasoning-gym cannot be listed: {error}.") from error
    finally:
        child.end()
    if not isinstance(reply, messages.DatasetList):
        raise LabError("The datasets of reasoning-gym cannot be listed.")
    return reply


def _child(hash_seed: int) -> ChildProcess[messages.AuditReply]:
    return ChildProcess("waggle.tasks.sandbox.audit_process", messages.audit_reply, hash_seed=hash_seed)
