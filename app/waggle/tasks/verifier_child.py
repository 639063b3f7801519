"""The verifier child: the only process that imports reasoning-gym. Makes questions and judges text from strangers.

Left out here: the armed audit hook and all limits but memory. The process boundary is what this file gives.
"""

import json
import os
import re
import sys
from collections import OrderedDict
from typing import Any, BinaryIO, assert_never

import msgspec

from waggle.tasks import wire
from waggle.tasks.charter import Specialty
from waggle.tasks.group import RIGHT, Verdict

CLOSE = 0.2  # below this a reward is a crumb, paid for any text at all
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
CACHED = 4096
MEMORY_BYTES = 4 << 30  # of address space: reasoning-gym and what it imports take about a quarter


class Bench:
    """The datasets of one charter, and the entries made lately, so that judging does not make them again."""

    def __init__(self, specialties: tuple[Specialty, ...]) -> None:
        self._settings = {specialty.dataset: specialty.settings for specialty in specialties}
        self._made: OrderedDict[wire.Key, tuple[Any, dict[str, Any]]] = OrderedDict()

    def entry(self, key: wire.Key) -> tuple[Any, dict[str, Any]]:
        """(dataset, entry) of a question; raises KeyError for a specialty that the charter lacks."""
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key]
        import reasoning_gym

        dataset = reasoning_gym.create_dataset(key[0], seed=key[1], size=1, **self._settings[key[0]])
        self._made[key] = (dataset, dataset[0])
        if len(self._made) > CACHED:
            self._made.popitem(last=False)
        return self._made[key]

    def question(self, key: wire.Key) -> str:
        return str(self.entry(key)[1]["question"])

    def answer(self, key: wire.Key) -> str:
        entry = self.entry(key)[1]
        return str(entry["metadata"].get("example_answer") or entry["answer"])

    def judge(self, key: wire.Key, text: str, ended: bool) -> Verdict:
        """Reward only what stands in the last answer tag, as reasoning-gym's own convention has it."""
        found = list(ANSWER.finditer(text))
        if not found:
            return Verdict(reward=0.0, reason="no answer tag" if ended else "cut off")
        start, stop = found[-1].span(1)
        answer = text[start:stop].strip()
        dataset, entry = self.entry(key)
        reward = min(1.0, max(0.0, float(dataset.score_answer(answer, entry)))) if answer else 0.0
        return Verdict(reward=reward, reason=_reason(reward, answer), start=start, length=stop - start)


def _reason(reward: float, answer: str) -> str:
    if reward >= RIGHT:
        return "right"
    if not answer:
        return "empty answer"
    shown = " ".join(answer.split())[:24]
    return "close" if reward >= CLOSE else f"wrong: {shown}"


def _parse_matrix(text: str) -> list[list[int]]:
    """Stands where binary_matrix's scorer calls `eval`: nested lists of integers and nothing else."""
    rows = json.loads(text)
    if not (isinstance(rows, list) and all(isinstance(row, list) and all(type(cell) is int for cell in row) for row in rows)):
        raise ValueError("not a matrix of integers")
    return rows


def _replace_eval() -> None:
    """Rebind the name `eval` in the one audited module whose scorer uses it on text."""
    from reasoning_gym.algorithmic import binary_matrix

    vars(binary_matrix)["eval"] = _parse_matrix


def _reply(bench: Bench, request: wire.Request) -> wire.Reply:
    match request:
        case wire.Warm(specialties):
            return wire.Texts([bench.question((specialty.dataset, 0)) for specialty in specialties])
        case wire.MakeQuestions(keys):
            return wire.Texts([bench.question(key) for key in keys])
        case wire.MakeAnswers(keys):
            return wire.Texts([bench.answer(key) for key in keys])
        case wire.Judge(items):
            return wire.Verdicts([bench.judge((dataset, seed), text, ended) for dataset, seed, text, ended in items])
        case _:
            assert_never(request)


def _claim_stdout() -> BinaryIO:
    """Keep fd 1 for replies and point the name `stdout` nowhere: reasoning-gym prints dots while it makes questions."""
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return replies


def _limit_memory() -> None:
    """A formula with 2^n rows ends in MemoryError here instead of in the computer's swap."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def main() -> None:
    """Answer requests until stdin closes."""
    _limit_memory()
    replies = _claim_stdout()
    decoder: msgspec.msgpack.Decoder[wire.Request] = msgspec.msgpack.Decoder(wire.Request)
    bench = Bench(())
    _replace_eval()
    while (frame := wire.receive(sys.stdin.buffer)) is not None:
        request = decoder.decode(frame)
        if isinstance(request, wire.Warm):
            bench = Bench(request.specialties)
        try:
            reply = _reply(bench, request)
        except Exception as error:  # noqa: BLE001 - a scorer may raise anything at all; the parent decides what that means
            reply = wire.Failed(f"{type(error).__name__}: {error}"[:300])
        wire.send(replies, reply)


if __name__ == "__main__":
    main()
