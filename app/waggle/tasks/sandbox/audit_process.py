"""The audit's child: scores hostile text as the verifier's child would, and reports what the scorer tries to do.

An audit event at which the verifier's tripwire would end the process is recorded and refused here, so it has no effect.
"""

import contextlib
import datetime
import importlib.metadata
import math
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

from waggle.core.message import Message, as_message
from waggle.tasks import specialties
from waggle.tasks.questions import QuestionKey
from waggle.tasks.sandbox import hardening, mended_datasets, messages, reasoning_gym_patches
from waggle.tasks.sandbox.verifier_process import CharterDatasets, claim_stdout

PATIENCE_SECONDS = 2.0  # CPU time for one answer
FOLDERS = re.compile(r"(?<![^\s'\"])(/[^/\s'\"]+)*/(?=[^/\s])")
SLOW = 0.05  # seconds; a slower answer is scored twice, in case the computer was busy


class AuditEventRecorder:
    """Records audit events while it watches, and refuses them."""

    def __init__(self) -> None:
        self._events: list[str] | None = None
        sys.addaudithook(self._hook)

    def _hook(self, event: str, _: tuple[object, ...]) -> None:
        if self._events is not None and event not in hardening.HARMLESS:
            self._events.append(event)
            raise PermissionError(event)

    def watch(self, act: Callable[[], Any]) -> tuple[Any, str, list[str]]:
        """Call `act`; return (its result, the name of its exception, its audit events)."""
        noted: list[str] = []
        score, raised = None, ""
        self._events = noted
        try:
            score = act()
        except Exception as error:  # noqa: BLE001 - any exception of a scorer is a result here
            raised = type(error).__name__
        finally:
            self._events = None
        return score, raised, list(dict.fromkeys(noted))


class Examination:
    """One dataset with its default settings, prepared as in the verifier's child."""

    def __init__(self, request: messages.ExamineDataset) -> None:
        self._dataset = messages.DatasetLevels(request.dataset, ({},))
        if not request.upstream:
            reasoning_gym_patches.replace_scorers()
            mended_datasets.mend_datasets()
        reasoning_gym_patches.cache_data_files()
        if request.another_day:
            _fake_today()
        self._bench = self._new_bench()
        self._bench.warm()
        self.sandbox = hardening.drop_privileges()
        self.make([1])  # a generator that needs files fails here
        self._bystander = AuditEventRecorder()

    def _new_bench(self) -> CharterDatasets:
        return CharterDatasets((self._dataset,))

    def make(self, seeds: list[int]) -> messages.GeneratedQuestions:
        bench, dataset = self._new_bench(), self._dataset.dataset
        began = time.process_time()
        pairs = [(bench.question(QuestionKey(dataset, seed)), bench.answer(QuestionKey(dataset, seed))) for seed in seeds]
        self._bench = bench
        return messages.GeneratedQuestions(pairs, (time.process_time() - began) / len(seeds))

    def score(self, seed: int, text: str) -> messages.AnswerScore:
        """Score an answer; of two tries at a slow one, the faster counts."""
        dataset, entry = self._bench.entry(QuestionKey(self._dataset.dataset, seed))
        text = text.strip()  # as the verifier does
        outcome = self._look(dataset, entry, text)
        if outcome.seconds < SLOW:
            return outcome
        return msgspec.structs.replace(outcome, seconds=min(outcome.seconds, self._look(dataset, entry, text).seconds))

    def _look(self, dataset: Any, entry: dict[str, Any], text: str) -> messages.AnswerScore:
        began = time.process_time()
        _end_after(PATIENCE_SECONDS)
        score, raised, events = self._bystander.watch(lambda: dataset.score_answer(text, entry))
        seconds = time.process_time() - began
        _end_after(0.0)
        try:
            reward = 0.0 if raised else float(score)
        except (TypeError, ValueError, OverflowError):  # a score that is not a number is a finding, too
            reward = math.nan
        return messages.AnswerScore(reward, raised, events, round(seconds, 4))


def _end_after(seconds: float) -> None:
    """Have the kernel end this process after this much more CPU time; 0 cancels it. On Windows the parent does that."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _fake_today() -> None:
    """Replace `date` and `datetime` in all modules of datasets by classes whose today is a day in 2011."""

    class Date(datetime.date):
        @classmethod
        def today(cls) -> "Date":
            return cls(2011, 7, 15)

    class Moment(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Moment":
            return cls(2011, 7, 15, 13, 14, 15, tzinfo=tz)

    specialties.waggle_datasets()  # to have them imported
    for name, module in list(sys.modules.items()):
        if name.startswith(("reasoning_gym", specialties.__name__)):
            for key, value in list(vars(module).items()):
                if value is datetime.date:
                    vars(module)[key] = Date
                elif value is datetime.datetime:
                    vars(module)[key] = Moment


def _catalogue() -> messages.DatasetList:
    import reasoning_gym.factory

    names = [*reasoning_gym.factory.DATASETS, *specialties.waggle_datasets()]
    return messages.DatasetList(importlib.metadata.version("reasoning-gym"), sorted(names))


def _answer(request: messages.AuditRequest, examination: Examination | None) -> tuple[messages.AuditReply, Examination | None]:
    match request, examination:
        case [messages.ListDatasets(), _]:
            return _catalogue(), examination
        case [messages.ExamineDataset(), None]:
            began = Examination(request)
            return messages.Prepared(began.sandbox), began
        case [messages.GenerateEntries(seeds), Examination()]:
            return examination.make(seeds), examination
        case [messages.ScoreAnswers(items), Examination()]:
            return messages.AnswerScores([examination.score(seed, text) for seed, text in items]), examination
    return messages.Failed(as_message("out of order")), examination


def _failure_message(error: Exception) -> messages.Failed:
    """A short reason without paths of this computer: it goes into a public file."""
    if isinstance(error, OSError):
        return messages.Failed(Message("they need %1 opened", os.path.basename(str(error.filename))))
    message = FOLDERS.sub("", f"{type(error).__name__}: {error}")
    return messages.Failed(as_message(message if len(message) <= 160 else f"{message[:160]}..."))


def main() -> None:
    """Answer until stdin closes."""
    hardening.limit_memory()
    replies = claim_stdout()
    os.dup2(1, 2)  # output of datasets would disturb the progress bar
    warnings.simplefilter("ignore")
    reasoning_gym_patches.stub_matplotlib()
    reasoning_gym_patches.stub_pycosat()
    decoder: msgspec.msgpack.Decoder[messages.AuditRequest] = msgspec.msgpack.Decoder(messages.AuditRequest)
    examination: Examination | None = None
    with contextlib.suppress(BrokenPipeError):
        while (frame := messages.receive(sys.stdin.buffer)) is not None:
            try:
                reply, examination = _answer(decoder.decode(frame), examination)
            except Exception as error:  # noqa: BLE001 - any exception of a dataset is a finding
                reply = _failure_message(error)
            messages.send(replies, reply)


if __name__ == "__main__":
    main()
