"""The audit's child: lets one dataset's scorer see hostile text where the verifier's child would, and tells what it tried.

Where the verifier's tripwire would end the process, the event is noted and refused: nothing that a text asks for happens.
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

from waggle.tasks import specialties
from waggle.tasks.charter import Specialty
from waggle.tasks.sandbox import hardening, messages, reasoning_gym_patches
from waggle.tasks.sandbox.verifier_process import Bench, claim_stdout

PATIENCE_SECONDS = 2.0  # of the processor, for one answer
FOLDERS = re.compile(r"(?<![^\s'\"])(/[^/\s'\"]+)*/(?=[^/\s])")
SLOW = 0.05  # seconds from which a second look decides, in case this computer was busy


class Bystander:
    """Notes what is tried while it watches, and refuses it."""

    def __init__(self) -> None:
        self._events: list[str] | None = None
        sys.addaudithook(self._hook)

    def _hook(self, event: str, _: tuple[object, ...]) -> None:
        if self._events is not None and event not in hardening.HARMLESS:
            self._events.append(event)
            raise PermissionError(event)

    def watch(self, act: Callable[[], Any]) -> tuple[Any, str, list[str]]:
        """(what it gave, the name of what it raised, what it tried)."""
        noted: list[str] = []
        score, raised = None, ""
        self._events = noted
        try:
            score = act()
        except Exception as error:  # noqa: BLE001 - the very question is what a scorer raises
            raised = type(error).__name__
        finally:
            self._events = None
        return score, raised, list(dict.fromkeys(noted))


class Examination:
    """One dataset with its default settings, made ready as the verifier's child makes it ready."""

    def __init__(self, request: messages.Examine) -> None:
        self._specialty = Specialty(dataset=request.dataset, title=request.dataset[:40])
        if not request.upstream:
            reasoning_gym_patches.replace_scorers()
        reasoning_gym_patches.keep_data_files()
        if request.another_day:
            _turn_calendar()
        self._bench = self._new_bench()
        self._bench.warm()
        self.sandbox = hardening.close_doors()
        self.make([1])  # what only works with open doors fails here
        self._bystander = Bystander()

    def _new_bench(self) -> Bench:
        return Bench((self._specialty,))

    def make(self, seeds: list[int]) -> messages.GeneratedQuestions:
        bench, dataset = self._new_bench(), self._specialty.dataset
        began = time.process_time()
        pairs = [(bench.question((dataset, seed)), bench.answer((dataset, seed))) for seed in seeds]
        self._bench = bench
        return messages.GeneratedQuestions(pairs, (time.process_time() - began) / len(seeds))

    def score(self, seed: int, text: str) -> messages.Scored:
        """Of two looks at a slow answer, the faster."""
        dataset, entry = self._bench.entry((self._specialty.dataset, seed))
        text = text.strip()  # as the verifier does
        outcome = self._look(dataset, entry, text)
        if outcome.seconds < SLOW:
            return outcome
        return msgspec.structs.replace(outcome, seconds=min(outcome.seconds, self._look(dataset, entry, text).seconds))

    def _look(self, dataset: Any, entry: dict[str, Any], text: str) -> messages.Scored:
        began = time.process_time()
        _end_after(PATIENCE_SECONDS)
        score, raised, events = self._bystander.watch(lambda: dataset.score_answer(text, entry))
        seconds = time.process_time() - began
        _end_after(0.0)
        try:
            reward = 0.0 if raised else float(score)
        except (TypeError, ValueError, OverflowError):  # no number is a finding, too
            reward = math.nan
        return messages.Scored(reward, raised, events, round(seconds, 4))


def _end_after(seconds: float) -> None:
    """Have the kernel end this process when it has used so much more of the processor; 0: never. Windows: the parent's work."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _turn_calendar() -> None:
    """What asks for today is told a day long gone, whichever name it asks by."""

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


def _catalogue() -> messages.Catalogue:
    import reasoning_gym.factory

    names = [*reasoning_gym.factory.DATASETS, *specialties.waggle_datasets()]
    return messages.Catalogue(importlib.metadata.version("reasoning-gym"), sorted(names))


def _answer(request: messages.AuditRequest, examination: Examination | None) -> tuple[messages.AuditReply, Examination | None]:
    match request, examination:
        case messages.List(), _:
            return _catalogue(), examination
        case messages.Examine(), None:
            began = Examination(request)
            return messages.Warmed(began.sandbox), began
        case messages.Make(seeds), Examination():
            return examination.make(seeds), examination
        case messages.Score(items), Examination():
            return messages.Scores([examination.score(seed, text) for seed, text in items]), examination
    return messages.Failed("out of order"), examination


def _failed(error: Exception) -> messages.Failed:
    """In a few words, and without saying where things lie on this computer."""
    if isinstance(error, OSError):
        return messages.Failed(f"they need {os.path.basename(str(error.filename))} opened")
    message = FOLDERS.sub("", f"{type(error).__name__}: {error}")
    return messages.Failed(message if len(message) <= 160 else f"{message[:160]}...")


def main() -> None:
    """Answer until stdin closes."""
    hardening.limit_memory()
    replies = claim_stdout()
    os.dup2(1, 2)  # what datasets print would tear the progress bar
    warnings.simplefilter("ignore")
    reasoning_gym_patches.leave_out_drawing()
    decoder: msgspec.msgpack.Decoder[messages.AuditRequest] = msgspec.msgpack.Decoder(messages.AuditRequest)
    examination: Examination | None = None
    with contextlib.suppress(BrokenPipeError):
        while (frame := messages.receive(sys.stdin.buffer)) is not None:
            try:
                reply, examination = _answer(decoder.decode(frame), examination)
            except Exception as error:  # noqa: BLE001 - a dataset may raise anything at all, and that is the finding
                reply = _failed(error)
            messages.send(replies, reply)


if __name__ == "__main__":
    main()
