"""The verifier's child: generates questions with reasoning-gym and Waggle's datasets, and judges text from strangers.

Generators run with the tripwire disarmed: they are trusted code with integers as input, and some of them evaluate text of their
own. Everything else runs armed (see hardening.py), so a dataset must import and read all that it needs during `Prepare`.
"""

import decimal
import os
import signal
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, BinaryIO, assert_never

import msgspec

from waggle.core.errors import QuestionFileError
from waggle.core.message import Message, as_message
from waggle.tasks.graders import graders
from waggle.tasks.question_file.dataset import FileDataset
from waggle.tasks.question_file.repeated import refuse_repeated_rows
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import RIGHT, TAGS, UNJUDGED, UNTAGGED, Verdict
from waggle.tasks.sandbox import hardening, mended_datasets, messages, reasoning_gym_patches
from waggle.tasks.specialties import waggle_datasets
from waggle.tasks.specialties.interface import Setting

CLOSE = 0.2  # a smaller reward is a crumb, which some scorers give to any text
OPEN, SHUT = TAGS
NO_TAG, CUT_OFF = Message("no answer tag"), Message("cut off")
PADDING = 2  # characters of white space that an exact answer may have beside the true answer's
SECONDS = 120.0  # wall-clock limit of a request in case the parent is gone
SPARE = 16  # seeds that are tried to prepare a dataset, which may fail for some
CACHED = 4096  # entries
CACHED_CHARACTERS = 8_000_000  # of all cached entries, at five bytes or more each: a charter may ask for lists of primes
NONSENSE = ("nonsense", "[[0, 1], [2]]", "1/2", "A → B", "(x + 1) * 2")  # for scorers that import when they first parse


class CharterDatasets:
    """The datasets of one charter with a cache of recent entries, so that judging does not generate them again."""

    def __init__(self, datasets: tuple[messages.DatasetLevels, ...], files: tuple[messages.DatasetFile, ...] = ()) -> None:
        self._levels = {each.dataset: each.levels for each in datasets}
        self._packed_files = files
        self._files: dict[str, FileDataset] = {}
        names = [*self._levels, *(each.dataset for each in files)]
        self._decimals = {dataset: decimal.Context() for dataset in names}
        # one for each level: no scorer depends on its seed, and many hold a whole book
        self._scorers: dict[tuple[str, int], Any] = {}
        self._entries: OrderedDict[QuestionKey, tuple[dict[str, Any], int]] = OrderedDict()  # each with its size in characters
        self._characters = 0  # of all of them
        self._unarmed: Callable[[], AbstractContextManager[None]] = nullcontext

    def warm(self) -> None:
        """Generate and score an entry of each dataset, so that nothing is imported later. Raises what a generator raises."""
        for dataset, level in self._every_level():
            key = self._first(dataset, level, range(SPARE))
            for answer in (self.answer(key), *NONSENSE):
                with suppress(Exception):  # scorers may raise anything over nonsense
                    self.judge(key, f"<answer>{answer}</answer>", True)
        for each in self._packed_files:
            for answer in NONSENSE:
                with suppress(Exception):  # also a grader that this Waggle lacks: unpacking reports it
                    graders()[each.file.grader].score(answer, answer, each.file.tolerance)

    def arm(self, report: Callable[[str], None]) -> hardening.Sandbox:
        """Drop privileges and arm the tripwire, then unpack the files.

        Raises what a generator raises that does not work without privileges, and QuestionFileError.
        """
        sandbox = hardening.drop_privileges()
        for dataset, level in self._every_level():
            self._first(dataset, level, range(SPARE, 2 * SPARE))
        self._unarmed = hardening.install_tripwire(report)
        self._files = {each.dataset: FileDataset(each.packed, each.file) for each in self._packed_files}
        self._packed_files = ()
        refuse_repeated_rows(file.rows for file in self._files.values())
        return sandbox

    def _every_level(self) -> list[tuple[str, int]]:
        return [(dataset, level) for dataset, levels in self._levels.items() for level in range(len(levels))]

    def _first(self, dataset: str, level: int, seeds: range) -> QuestionKey:
        """The first of these seeds for which the dataset generates a question. Raises what it raises for the last one."""
        keys = [QuestionKey(dataset, seed, level) for seed in seeds]
        for key in keys[:-1]:
            if self.question(key):
                return key
        self.entry(keys[-1])
        return keys[-1]

    def entry(self, key: QuestionKey) -> tuple[Any, dict[str, Any]]:
        """(scorer, entry) of a question. Raises KeyError and IndexError for a dataset and a level that the charter lacks."""
        decimal.setcontext(self._decimals[key.dataset])  # decimal_arithmetic changes the precision globally: isolate it
        if key.dataset in self._files:
            if key.level:
                raise IndexError(key.level)
            file = self._files[key.dataset]
            return file, file.entry(key.seed)
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._scorers[key.dataset, key.level], self._entries[key][0]
        settings = self._levels[key.dataset][key.level]
        with self._unarmed():
            dataset, entry = _generate(key, settings)
            self._keep(key, entry)
        return self._scorers.setdefault((key.dataset, key.level), dataset), entry

    def _keep(self, key: QuestionKey, entry: dict[str, Any]) -> None:
        characters = len(repr(entry))
        self._entries[key] = entry, characters
        self._characters += characters
        while len(self._entries) > CACHED or self._characters > CACHED_CHARACTERS:
            self._characters -= self._entries.popitem(last=False)[1][1]

    def question(self, key: QuestionKey) -> str:
        """The text of a question; empty if the dataset fails for this seed."""
        try:
            return str(self.entry(key)[1]["question"])
        except (MemoryError, OSError):  # caused by this computer, not by the question
            raise
        except Exception:  # a generator that fails for a seed may raise anything, and does so on every node
            if key.level >= len(self._levels.get(key.dataset, ())):
                raise
            return ""

    def answer(self, key: QuestionKey) -> str:
        entry = self.entry(key)[1]
        return str(entry["metadata"].get("example_answer") or entry["answer"])

    def judge(self, key: QuestionKey, text: str, ended: bool) -> Verdict:
        """Judge what is in the last pair of answer tags, as reasoning-gym does.

        The true answer without the tags earns nothing either, but its reason says so.
        """
        last = last_answer(text)
        if last is None:
            bare = text.replace(OPEN, "").replace(SHUT, "").strip().removesuffix(".")
            is_right = bool(bare) and ended and same_answer(bare, self.answer(key))
            return Verdict(reward=0.0, reason=UNTAGGED if is_right else NO_TAG if ended else CUT_OFF)
        start, stop = last
        answer = text[start:stop].strip()
        dataset, entry = self.entry(key)
        try:
            reward = min(1.0, max(0.0, float(dataset.score_answer(answer, entry)))) if answer else 0.0
        except Exception:  # noqa: BLE001 - a scorer may raise anything over odd text; other answers are not affected
            return UNJUDGED
        exact = reward >= RIGHT and same_answer(text[start:stop], self.answer(key))
        return Verdict(reward=reward, reason=_reason(reward, answer), start=start, length=stop - start, exact=exact)


def _generate(key: QuestionKey, settings: dict[str, Setting]) -> tuple[Any, dict[str, Any]]:
    """(scorer, entry) of a question, without the cache. Raises what the generator raises."""
    name, seed, _ = key
    if own := waggle_datasets().get(name):
        entry = own.entry(seed, settings)
        return own, {"question": entry.question, "answer": entry.answer, "metadata": {}}
    import reasoning_gym

    dataset = reasoning_gym.create_dataset(name, seed=seed, size=1, **settings)
    return dataset, dataset[0]


def same_answer(text: str, truth: str) -> bool:
    """Whether a text is the true answer, apart from case and a little white space."""
    return len(text) <= len(truth) + PADDING and "".join(text.split()).casefold() == "".join(truth.split()).casefold()


def last_answer(text: str) -> tuple[int, int] | None:
    """The span between the last pair of tags. In one pass, because a text may consist of opening tags only."""
    answer, after = None, 0
    while (start := text.find(OPEN, after)) >= 0 and (stop := text.find(SHUT, start + len(OPEN))) >= 0:
        answer, after = (start + len(OPEN), stop), stop + len(SHUT)
    return answer


def _reason(reward: float, answer: str) -> Message:
    if reward >= RIGHT:
        return Message("right")
    if not answer:
        return Message("empty answer")
    excerpt = " ".join(answer.split())[:24]
    return Message("close") if reward >= CLOSE else Message("wrong: %1", excerpt)


def _reply(bench: CharterDatasets, request: messages.Request) -> messages.Reply:
    began = time.process_time()
    done = _execute(bench, request)
    return msgspec.structs.replace(done, seconds=time.process_time() - began)


def _execute(bench: CharterDatasets, request: messages.Request) -> messages.Texts | messages.Verdicts:
    match request:
        case messages.GenerateQuestions(keys):
            return messages.Texts([bench.question(key) for key in keys])
        case messages.GenerateAnswers(keys):
            return messages.Texts([bench.answer(key) for key in keys])
        case messages.Judge(items):
            return messages.Verdicts([bench.judge(key, text, ended) for key, text, ended in items])
        case _:
            assert_never(request)


def claim_stdout() -> BinaryIO:
    """Return a stream to the pipe of replies and redirect stdout to nowhere: reasoning-gym prints while it generates."""
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return replies


def ready(datasets: tuple[messages.DatasetLevels, ...], files: tuple[messages.DatasetFile, ...] = ()) -> CharterDatasets:
    """These datasets, with everything that they import or read in memory. Raises what a generator raises."""
    bench = CharterDatasets(datasets, files)
    reasoning_gym_patches.stub_matplotlib()
    reasoning_gym_patches.stub_pycosat()
    reasoning_gym_patches.replace_scorers()
    mended_datasets.mend_datasets()
    reasoning_gym_patches.cache_data_files()
    bench.warm()
    return bench


def _prepare(warm: messages.Prepare, replies: BinaryIO) -> tuple[CharterDatasets, messages.Reply]:
    """The armed datasets of a charter; on failure an empty set of datasets, and the reason."""
    warnings.simplefilter("ignore")  # printing a warning opens the source file, which trips the wire
    try:
        bench = ready(warm.datasets, warm.files)
        return bench, messages.Prepared(bench.arm(lambda event: messages.send(replies, messages.Tripped(event[:64]))))
    except QuestionFileError as error:
        return CharterDatasets(()), messages.FileRefused(
            error.title if len(error.title) <= messages.REASON else as_message(error.title[: messages.REASON])
        )
    except Exception as error:  # noqa: BLE001 - a charter's settings may make a generator raise anything
        return CharterDatasets(()), _failure_message(error)


def _failure_message(error: Exception) -> messages.Failed:
    return messages.Failed(as_message(f"{type(error).__name__}: {error}"[: messages.REASON]))


def main() -> None:
    """Answer requests until stdin closes. The first must be `Prepare`, and no other may be."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches all processes of a terminal; the engine ends this one
    hardening.limit_memory()
    replies = claim_stdout()
    first: msgspec.msgpack.Decoder[messages.Prepare] = msgspec.msgpack.Decoder(messages.Prepare)
    decoder: msgspec.msgpack.Decoder[messages.Request] = msgspec.msgpack.Decoder(messages.Request)
    frame = messages.receive(sys.stdin.buffer)
    if frame is None:
        return
    bench, warmed = _prepare(first.decode(frame), replies)
    messages.send(replies, warmed)
    answered = 0
    while (frame := messages.receive(sys.stdin.buffer)) is not None:
        hardening.set_deadline(SECONDS)
        try:
            reply = _reply(bench, decoder.decode(frame))
            answered += 1
        except (MemoryError, OSError) as error:  # cached entries may fill the memory: the parent asks a new child
            if answered:
                sys.exit(f"{type(error).__name__}: {error}")
            reply = _failure_message(error)
        except Exception as error:  # noqa: BLE001 - the parent decides what an exception means
            reply = _failure_message(error)
        hardening.set_deadline(0.0)
        messages.send(replies, reply)


if __name__ == "__main__":
    main()
