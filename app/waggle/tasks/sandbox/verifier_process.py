"""The verifier child: the process that has reasoning-gym in it. Makes questions and judges text from strangers.

Questions are made unarmed: our own code from integers, though some of it evaluates text it wrote itself. Everything else
happens armed (see hardening.py), so all that a specialty ever imports or reads is imported and read at `Warm`.
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

from waggle.tasks.charter import Specialty
from waggle.tasks.rollout_group import RIGHT, TAGS, UNJUDGED, Verdict
from waggle.tasks.sandbox import hardening, messages, reasoning_gym_patches
from waggle.tasks.specialties import waggle_datasets
from waggle.tasks.specialties.interface import Setting

CLOSE = 0.2  # below this a reward is a crumb, paid for any text at all
OPEN, SHUT = TAGS
PADDING = 2  # characters of white space around an answer, or in it, that make no other one of it
SECONDS = 120.0  # of the clock for one request, where nobody is left who ends it sooner
SPARE = 16  # seeds to begin with: a dataset may make no question of some
CACHED = 4096  # entries
CACHED_CHARACTERS = 8_000_000  # of all that they hold, five bytes each or more: a stranger may have chosen lists of primes
NONSENSE = ("nonsense", "[[0, 1], [2]]", "1/2", "A → B", "(x + 1) * 2")  # for scorers that import only when they first parse


class Bench:
    """The datasets of one charter, and the entries made lately, so that judging does not make them again."""

    def __init__(self, specialties: tuple[Specialty, ...]) -> None:
        self._settings = {specialty.dataset: specialty.settings for specialty in specialties}
        self._decimals = {dataset: decimal.Context() for dataset in self._settings}
        self._scorers: dict[str, Any] = {}  # the first of each: no scorer looks at its seed, and many a dataset holds a book
        self._entries: OrderedDict[messages.Key, tuple[dict[str, Any], int]] = OrderedDict()  # and how many characters each has
        self._characters = 0  # of all of them
        self._unarmed: Callable[[], AbstractContextManager[None]] = nullcontext

    def warm(self) -> None:
        """Make and score something of each specialty, so that nothing is imported later; raises what reasoning-gym raises."""
        for dataset in self._settings:
            key = self._first(dataset, range(SPARE))
            for answer in (self.answer(key), *NONSENSE):
                with suppress(Exception):  # what an honest scorer may do with nonsense
                    self.judge(key, f"<answer>{answer}</answer>", True)

    def arm(self, report: Callable[[str], None]) -> hardening.Sandbox:
        """From now on new text is judged behind closed doors; raises what a specialty raises that cannot be made so."""
        sandbox = hardening.close_doors()
        for dataset in self._settings:
            self._first(dataset, range(SPARE, 2 * SPARE))
        self._unarmed = hardening.lay_tripwire(report)
        return sandbox

    def _first(self, dataset: str, seeds: range) -> messages.Key:
        """The first of these seeds of which the dataset makes a question; raises what it raises of the last one."""
        for seed in seeds[:-1]:
            if self.question((dataset, seed)):
                return dataset, seed
        self.entry((dataset, seeds[-1]))
        return dataset, seeds[-1]

    def entry(self, key: messages.Key) -> tuple[Any, dict[str, Any]]:
        """(what scores it, entry) of a question; raises KeyError for a specialty that the charter lacks."""
        decimal.setcontext(self._decimals[key[0]])  # decimal_arithmetic sets its precision for good: let no other count with it
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._scorers[key[0]], self._entries[key][0]
        settings = self._settings[key[0]]
        with self._unarmed():
            dataset, entry = _generate(key, settings)
            self._keep(key, entry)
        return self._scorers.setdefault(key[0], dataset), entry

    def _keep(self, key: messages.Key, entry: dict[str, Any]) -> None:
        characters = len(repr(entry))
        self._entries[key] = entry, characters
        self._characters += characters
        while len(self._entries) > CACHED or self._characters > CACHED_CHARACTERS:
            self._characters -= self._entries.popitem(last=False)[1][1]

    def question(self, key: messages.Key) -> str:
        """Empty where the dataset makes none of this seed."""
        try:
            return str(self.entry(key)[1]["question"])
        except (MemoryError, OSError):  # what this computer is short of says nothing of the question
            raise
        except Exception:  # a generator that gives up on a seed may raise anything, and does so everywhere
            if key[0] not in self._settings:
                raise
            return ""

    def answer(self, key: messages.Key) -> str:
        entry = self.entry(key)[1]
        return str(entry["metadata"].get("example_answer") or entry["answer"])

    def judge(self, key: messages.Key, text: str, ended: bool) -> Verdict:
        """Reward only what stands in the last answer tag, as reasoning-gym's own convention has it."""
        last = last_answer(text)
        if last is None:
            return Verdict(reward=0.0, reason="no answer tag" if ended else "cut off")
        start, stop = last
        answer = text[start:stop].strip()
        dataset, entry = self.entry(key)
        try:
            reward = min(1.0, max(0.0, float(dataset.score_answer(answer, entry)))) if answer else 0.0
        except Exception:  # noqa: BLE001 - what a scorer raises over odd text is no news, and no harm: others' answers count on
            return UNJUDGED
        exact = reward >= RIGHT and same_answer(text[start:stop], self.answer(key))
        return Verdict(reward=reward, reason=_reason(reward, answer), start=start, length=stop - start, exact=exact)


def _generate(key: messages.Key, settings: dict[str, Setting]) -> tuple[Any, dict[str, Any]]:
    """(what scores it, entry) of a question, from nothing; raises what its generator raises."""
    name, seed = key
    if own := waggle_datasets().get(name):
        entry = own.entry(seed, settings)
        return own, {"question": entry.question, "answer": entry.answer, "metadata": {}}
    import reasoning_gym

    dataset = reasoning_gym.create_dataset(name, seed=seed, size=1, **settings)
    return dataset, dataset[0]


def same_answer(text: str, truth: str) -> bool:
    """Whether that is the true answer up to case and a little white space."""
    return len(text) <= len(truth) + PADDING and "".join(text.split()).casefold() == "".join(truth.split()).casefold()


def last_answer(text: str) -> tuple[int, int] | None:
    """Where the last pair of tags begins and ends inside, in one pass: a text may be nothing but opening tags."""
    answer, after = None, 0
    while (start := text.find(OPEN, after)) >= 0 and (stop := text.find(SHUT, start + len(OPEN))) >= 0:
        answer, after = (start + len(OPEN), stop), stop + len(SHUT)
    return answer


def _reason(reward: float, answer: str) -> str:
    if reward >= RIGHT:
        return "right"
    if not answer:
        return "empty answer"
    excerpt = " ".join(answer.split())[:24]
    return "close" if reward >= CLOSE else f"wrong: {excerpt}"


def _reply(bench: Bench, request: messages.Request) -> messages.Reply:
    began = time.process_time()
    done = _done(bench, request)
    return msgspec.structs.replace(done, seconds=time.process_time() - began)


def _done(bench: Bench, request: messages.Request) -> messages.Texts | messages.Verdicts:
    match request:
        case messages.MakeQuestions(keys):
            return messages.Texts([bench.question(key) for key in keys])
        case messages.MakeAnswers(keys):
            return messages.Texts([bench.answer(key) for key in keys])
        case messages.Judge(items):
            return messages.Verdicts([bench.judge((dataset, seed), text, ended) for dataset, seed, text, ended in items])
        case _:
            assert_never(request)


def claim_stdout() -> BinaryIO:
    """Keep fd 1 for replies and point the name `stdout` nowhere: reasoning-gym prints dots while it makes questions."""
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return replies


def ready(specialties: tuple[Specialty, ...]) -> Bench:
    """The bench of these, with all that they import or read in memory; raises what reasoning-gym raises."""
    bench = Bench(specialties)
    reasoning_gym_patches.leave_out_drawing()
    reasoning_gym_patches.replace_scorers()
    reasoning_gym_patches.keep_data_files()
    bench.warm()
    return bench


def _prepare(warm: messages.Warm, replies: BinaryIO) -> tuple[Bench, messages.Reply]:
    """The bench of this charter, armed; on failure one that has no specialty, and why."""
    warnings.simplefilter("ignore")  # showing one opens the source file, and that would trip
    try:
        bench = ready(warm.specialties)
        return bench, messages.Warmed(bench.arm(lambda event: messages.send(replies, messages.Tripped(event[:64]))))
    except Exception as error:  # noqa: BLE001 - a specialty's settings may raise anything at all
        return Bench(()), _failed(error)


def _failed(error: Exception) -> messages.Failed:
    return messages.Failed(f"{type(error).__name__}: {error}"[: messages.REASON])


def main() -> None:
    """Answer requests until stdin closes. The first must be `Warm`, which is answered once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches every process of a terminal: the engine ends this one
    hardening.limit_memory()
    replies = claim_stdout()
    first: msgspec.msgpack.Decoder[messages.Warm] = msgspec.msgpack.Decoder(messages.Warm)
    decoder: msgspec.msgpack.Decoder[messages.Request] = msgspec.msgpack.Decoder(messages.Request)
    frame = messages.receive(sys.stdin.buffer)
    if frame is None:
        return
    bench, warmed = _prepare(first.decode(frame), replies)
    messages.send(replies, warmed)
    answered = 0
    while (frame := messages.receive(sys.stdin.buffer)) is not None:
        hardening.end_after(SECONDS)
        try:
            reply = _reply(bench, decoder.decode(frame))
            answered += 1
        except (MemoryError, OSError) as error:  # it may be what was made before that fills us: a fresh one is asked again
            if answered:
                sys.exit(f"{type(error).__name__}: {error}")
            reply = _failed(error)
        except Exception as error:  # noqa: BLE001 - a scorer may raise anything at all; the parent decides what that means
            reply = _failed(error)
        hardening.end_after(0.0)
        messages.send(replies, reply)


if __name__ == "__main__":
    main()
