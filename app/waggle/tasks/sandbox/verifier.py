"""The verifier: generates questions and judges completions in a child process that may be killed and started again.

Thread-safe: a round judges its own completions while the network node judges those of peers.
"""

import hashlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TypeVar

import msgspec

from waggle.core.errors import CharterError, QuestionFileError, VerifierError, VerifierGone, VerifierKilled
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of
from waggle.tasks import catalogue
from waggle.tasks.charter import Charter, other_questions
from waggle.tasks.question_file import packed
from waggle.tasks.questions import Question, QuestionKey, Split, split_of
from waggle.tasks.rollout_group import UNJUDGED, Completion, Verdict
from waggle.tasks.sandbox import messages
from waggle.tasks.sandbox.child_process import ChildKilled, ChildProcess, ChildStarved, TripwireTripped
from waggle.tasks.sandbox.hardening import Sandbox
from waggle.tasks.specialties.interface import Difficulty, Setting

START_SECONDS = 120.0  # without progress; importing reasoning-gym takes seconds, or minutes beside a virus scanner
START_WORK_SECONDS = 600.0  # CPU time, a hundred times what it takes here: a charter's settings may make a generator run for ever
BATCH_SECONDS = 20.0  # wall-clock limit of one request
DIGEST_QUESTIONS = 64
AT_ONCE = 64  # questions or completions in one request: some take tens of milliseconds each, or more on a busy computer
HELD_OUT_SEEDS = 1 << 15  # seeds that are searched for reserved questions
STALE_SEEDS = 1 << 11  # consecutive seeds without a new text; then the settings have no more different questions
STRANGERS_SECONDS = 2.0  # CPU time for one group of a peer: thousands of times what honest text takes

Part = TypeVar("Part")

Pieces = Sequence[bytes]  # of a file of questions, in order
NO_FILES: Mapping[str, Pieces] = MappingProxyType({})


class Verifier:
    """Questions and verdicts under one charter. Starts its child at once. Raises VerifierError or CharterError.

    `files` holds the pieces of each file of questions in the charter, by its dataset. `datasets` replaces those of the charter,
    to try settings that no level has. While the first child starts, `waiting` is called several times a second with the seconds
    that it has taken; what it raises ends the start.
    """

    def __init__(
        self,
        charter: Charter,
        *,
        files: Mapping[str, Pieces] = NO_FILES,
        restarted: Callable[[str], None] = lambda reason: None,
        datasets: Sequence[messages.DatasetLevels] = (),
        waiting: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._charter = charter
        self._datasets = tuple(datasets) or datasets_of(charter)
        self._files = () if datasets else files_of(charter, files)
        own = {each.dataset: len(each.levels) for each in datasets}
        self._levels = own or {specialty.dataset: len(specialty.levels) for specialty in charter.specialties}
        self._restarted = restarted  # called with the reason: a forbidden event, a signal, or a time limit
        self.forbidden = 0  # restarts because a scorer did something forbidden; audited ones should not
        self.starved = 0  # restarts because the child got no CPU time
        self.worked = 0.0  # CPU seconds of all replies, as the child counts them
        self._lock = threading.RLock()
        self._closed = False
        self._open(waiting)

    def _open(self, waiting: Callable[[float], None] = lambda seconds: None) -> None:
        """Start a child and prepare it. If that fails, no child is left running."""
        self._child = _start()
        try:
            self._sandbox = self._warm(waiting)
        except (CharterError, VerifierError):
            self._child.end()
            raise

    def _warm(self, waiting: Callable[[float], None]) -> Sandbox:
        prepare = messages.Prepare(self._datasets, self._files)
        try:
            reply = self._request(prepare, START_SECONDS, START_WORK_SECONDS, waiting)
        except (EOFError, TimeoutError) as error:
            raise VerifierError(
                "Waggle couldn't start its answer checker.",
                Message("This computer may be very busy. Your model is safe. It says: %1.", error),
            ) from error
        if isinstance(reply, messages.FileRefused):
            raise CharterError(reply.reason, packed.NEW_FILE)
        if not isinstance(reply, messages.Prepared):
            reason = reply.reason if isinstance(reply, messages.Failed) else "no answer"
            raise CharterError(Message("This charter's specialties cannot be made here: %1.", reason), "Update Waggle.")
        return reply.sandbox

    @property
    def sandbox(self) -> Sandbox:
        """What the kernel enforces on the child (see `hardening.drop_privileges`)."""
        return self._sandbox

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A context manager: within it, no other thread uses the child, so that requests do not wait."""
        return self._lock

    @property
    def pid(self) -> int:
        return self._child.process.pid

    def questions(self, keys: Sequence[QuestionKey]) -> list[Question]:
        """The questions of these keys, in order. Raises CharterError for a dataset or a level that the charter lacks."""
        texts = self._texts(messages.GenerateQuestions, keys)
        return [
            Question(dataset=key.dataset, seed=key.seed, text=text, level=key.level)
            for key, text in zip(keys, texts, strict=True)
        ]

    def answers(self, keys: Sequence[QuestionKey]) -> list[str]:
        """A true answer to each question, for the laboratory and to show afterwards; see `questions`."""
        return self._texts(messages.GenerateAnswers, keys)

    def judge(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        """A verdict for each completion. One that kills or stalls the child earns nothing, and the child is restarted.

        Raises VerifierGone if there is no child and none can be started.
        """
        all_of_them = [(question.key, completion.text, completion.ended) for question, completion in items]
        verdicts: list[Verdict] = []
        for batch in batched(all_of_them, AT_ONCE):
            judged = self._try(batch)
            verdicts += [verdict for item in batch for verdict in self._try([item]) or [UNJUDGED]] if judged is None else judged
        return verdicts

    def judge_strangers(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        """Verdicts for a peer's completions: little CPU time for all of them, and no second try.

        Raises VerifierError if the child died or stalled over them: the peer loses the whole group, and the round's own judging
        waits for seconds at most. Raises VerifierGone if the text is not to blame, for example on a busy computer.
        """
        batch = [(question.key, completion.text, completion.ended) for question, completion in items]
        reply = self._ask(messages.Judge(batch), attempts=1, work=STRANGERS_SECONDS)
        if not isinstance(reply, messages.Verdicts):
            raise VerifierError("A completion cannot be judged.")
        return reply.verdicts

    def held_out(self, dataset: str, split: Split, count: int) -> list[Question]:
        """The first `count` reserved questions of a specialty, which are the same on every node; its levels take turns.

        All have different texts. Fewer if its levels do not have so many.
        """
        levels = self._levels[dataset]
        rows = [self._reserved(dataset, level, split) for level in range(levels)]
        questions: dict[str, Question] = {}  # by text: two levels may ask the same
        while rows and len(questions) < count:
            for row in tuple(rows):
                question = next((question for question in row if question.text not in questions), None)
                if question is None:
                    rows.remove(row)
                else:
                    questions[question.text] = question
        return list(questions.values())[:count]

    def _reserved(self, dataset: str, level: int, split: Split) -> Iterator[Question]:
        """The reserved questions of a level with different texts, as long as new ones are found."""
        texts, newest = set[str](), 0  # texts of any split, and the last seed that gave a new one
        for keys in batched([QuestionKey(dataset, seed, level) for seed in range(HELD_OUT_SEEDS)], AT_ONCE):
            for question in self.questions(keys):
                if question.text not in texts:
                    texts.add(question.text)
                    newest = question.seed
                    if split_of(dataset, question.text) == split:
                        yield question
            if keys[-1].seed - newest >= STALE_SEEDS:
                break

    def digest(self) -> str:
        """A hash of 64 generated questions, at least one of each level: nodes with equal digests generate the same questions."""
        levels = [(dataset, level) for dataset, count in self._levels.items() for level in range(count)]
        names = [levels[i % len(levels)] for i in range(max(DIGEST_QUESTIONS, len(levels)))]
        keys = [QuestionKey(dataset, i, level) for i, (dataset, level) in enumerate(names)]
        return hashlib.sha256("\0".join(question.text for question in self.questions(keys)).encode()).hexdigest()

    def check_charter(self) -> None:
        """Raise CharterError unless this computer generates the questions that the charter's author did."""
        if (digest := self.digest()) != self._charter.questions_digest:
            raise other_questions(self._charter, digest)

    def close(self) -> None:
        """End the child for good, even during a request; may be called twice."""
        self._closed = True
        self._child.process.kill()  # so that a thread that waits for a reply releases the lock
        with self._lock:
            self._child.end()

    def _texts(
        self, kind: type[messages.GenerateQuestions] | type[messages.GenerateAnswers], keys: Sequence[QuestionKey]
    ) -> list[str]:
        texts: list[str] = []
        for batch in batched(keys, AT_ONCE):
            reply = self._ask(kind(list(batch)))
            if not isinstance(reply, messages.Texts):
                raise CharterError("A question cannot be made.", reply.reason if isinstance(reply, messages.Failed) else "")
            texts += reply.texts
        return texts

    def _try(self, batch: Sequence[messages.Item]) -> list[Verdict] | None:
        try:
            reply = self._ask(messages.Judge(list(batch)), attempts=1)
        except VerifierError as error:
            if type(error) is VerifierGone:
                raise
            return None
        return reply.verdicts if isinstance(reply, messages.Verdicts) else None

    def _ask(self, request: messages.Request, attempts: int = 2, work: float = math.inf) -> messages.Reply:
        ended: Exception | None = None
        with self._lock:
            for _ in range(attempts):
                try:
                    return self._request(request, BATCH_SECONDS, work)
                except (EOFError, TimeoutError) as error:
                    ended = error
                    self._restart(error)
        kind = VerifierKilled if isinstance(ended, (ChildKilled, ChildStarved)) else VerifierError
        raise kind(
            Message("The judging process was started again: %1.", ended),
            "If this goes on, look at the page Help, or run `waggle doctor`.",
        ) from ended

    def _request(
        self, request: messages.Prepare | messages.Request, seconds: float, work: float = math.inf,
        waiting: Callable[[float], None] | None = None,
    ) -> messages.Reply:  # fmt: skip
        reply = self._child.ask(request, seconds, work, waiting)
        if isinstance(reply, (messages.Texts, messages.Verdicts)):
            self.worked += reply.seconds
            messages.require_all(request, reply)
        if isinstance(reply, messages.Tripped):
            raise TripwireTripped(f"a scorer tried {reply.event} on a text")
        return reply

    def revive(self) -> None:
        """Restart the child if it has exited, so that the next request is not blamed for that. Raises VerifierGone."""
        with self._lock:
            if self._child.process.poll() is not None:
                self._restart(self._child.ending())

    def _restart(self, ended: EOFError | TimeoutError) -> None:
        """Start another child. Raises VerifierGone; the next request tries again."""
        self.forbidden += isinstance(ended, TripwireTripped)
        self.starved += isinstance(ended, ChildStarved)
        self._child.end()
        if self._closed:
            raise VerifierGone("The judging process was closed.")
        try:
            self._open()
        except (CharterError, VerifierError) as error:
            raise VerifierGone(error.title, error.advice) from error
        self._restarted(str(ended))


def datasets_of(charter: Charter) -> tuple[messages.DatasetLevels, ...]:
    """The charter's datasets, without its files, and the settings of their levels.

    Raises CharterError for a level that the catalogue lacks.
    """
    return tuple(
        messages.DatasetLevels(specialty.dataset, tuple(_settings(specialty.dataset, level) for level in specialty.levels))
        for specialty in charter.specialties
        if specialty.file is msgspec.UNSET
    )


def files_of(charter: Charter, files: Mapping[str, Pieces]) -> tuple[messages.DatasetFile, ...]:
    """The charter's files of questions. Raises CharterError for one that is missing or damaged."""
    result = []
    for specialty in charter.specialties:
        if specialty.file is msgspec.UNSET:
            continue
        if specialty.dataset not in files:
            raise CharterError(
                Message("The questions of %1 are not on this computer yet.", specialty.title),
                "They are downloaded from the swarm's members.",
            )
        try:
            content = packed.joined(files[specialty.dataset], specialty.file)
        except QuestionFileError as error:
            raise CharterError(error.title, error.advice) from error
        result.append(messages.DatasetFile(specialty.dataset, specialty.file, content))
    return tuple(result)


def _settings(dataset: str, difficulty: Difficulty) -> dict[str, Setting]:
    level = catalogue.level_of(dataset, difficulty)
    if level is None:
        raise CharterError(Message("There is no %1 at the level %2.", dataset, difficulty), "Update Waggle.")
    return dict(level.settings)


def _start() -> ChildProcess[messages.Reply]:
    try:
        return ChildProcess("waggle.tasks.sandbox.verifier_process", messages.reply)
    except OSError as error:  # short of memory or of processes
        raise VerifierError(
            Message("The judging process cannot be started: %1.", fault_of(error).reason), fault_of(error).advice
        ) from error


def batched(items: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    """Split items into batches of `size`, so that each request stays well below the time limit."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
