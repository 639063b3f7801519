"""N nodes in one process that play the engine's own round, and share one verifier and, where models allow, one batch."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waggle.errors import ModelError
from waggle.lab.together import Kind, Together
from waggle.policy.stacked_llama import Shape, shape_of
from waggle.policy.torch_policy import TorchPolicy
from waggle.policy.torch_stack import TorchStack
from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams, Written
from waggle.sapo.seams import Policy, Verifier
from waggle.tasks.group import Completion, Verdict
from waggle.tasks.questions import Question

ORDER = ("questions", "sample", "judge", "values", "logprobs", "step")  # as a round asks for them


class Company:
    """The policies and the verifier of N nodes; `play` runs something for several of them, in batches wherever they meet."""

    def __init__(self, folders: Sequence[Path], verifier: Verifier) -> None:
        self._verifier = verifier
        self._together = Together(self._serve)
        self._stacks: list[TorchStack] = []
        self.policies: list[Policy] = [None] * len(folders)  # type: ignore[list-item]
        for shape, members in _by_shape(folders).items():
            if shape is None:
                for i in members:
                    self.policies[i] = TorchPolicy(folders[i])
                continue
            self._stacks.append(TorchStack([folders[i] for i in members]))
            for place, i in enumerate(members):
                self.policies[i] = _Member(self, i, len(self._stacks) - 1, place)
        self.verifiers: list[Verifier] = [_Desk(self, i) for i in range(len(folders))]

    def play(self, work: Mapping[int, Callable[[], Any]]) -> dict[int, Any]:
        """Run one callable for each node; what each returned."""
        return self._together.play(work)

    def ask(self, node: int, name: str, detail: tuple[Any, ...], request: Any) -> Any:
        return self._together.ask(node, Kind(ORDER.index(name), name, detail), request)

    def _serve(self, kind: Kind, requests: Mapping[int, Any]) -> Mapping[int, Any]:
        if kind.name in ("questions", "judge"):
            return self._serve_verifier(kind.name, requests)
        stack = self._stacks[kind.detail[0]]
        asked = {place: request for place, *request in requests.values()}
        match kind.name:
            case "sample":
                params = next(iter(requests.values()))[3]
                found: Mapping[int, Any] = stack.sample({p: (prompts, noise) for p, (prompts, noise, _) in asked.items()}, params)
            case "step":
                found = stack.step({place: (batches, params) for place, (batches, params) in asked.items()})
            case "logprobs":
                found = stack.logprobs({place: texts for place, (texts,) in asked.items()}, kind.detail[1])
            case _:
                found = stack.values({place: texts for place, (texts,) in asked.items()})
        return {node: found[place] for node, (place, *_) in requests.items()}

    def _serve_verifier(self, name: str, requests: Mapping[int, list[Any]]) -> dict[int, list[Any]]:
        together = [item for items in requests.values() for item in items]
        found: Sequence[Any] = self._verifier.questions(together) if name == "questions" else self._verifier.judge(together)
        answers = iter(found)
        return {node: [next(answers) for _ in items] for node, items in requests.items()}

    def steps(self, stack: int, place: int) -> int:
        return self._stacks[stack].steps(place)


@dataclass(frozen=True)
class _Member:
    """One node's policy, somewhere in a stack: `sapo.seams.Policy`."""

    company: Company
    node: int
    stack: int
    place: int

    @property
    def steps(self) -> int:
        return self.company.steps(self.stack, self.place)

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SampleParams) -> list[list[Sampled]]:
        detail = (self.stack, params.max_new, params.temperature, len(uniforms) // len(prompts))
        found: list[list[Sampled]] = self.company.ask(self.node, "sample", detail, (self.place, prompts, uniforms, params))
        return found

    def logprobs(self, texts: Sequence[Written], temperature: float) -> list[Floats]:
        found: list[Floats] = self.company.ask(self.node, "logprobs", (self.stack, temperature), (self.place, texts))
        return found

    def values(self, texts: Sequence[Written]) -> list[Floats]:
        found: list[Floats] = self.company.ask(self.node, "values", (self.stack,), (self.place, texts))
        return found

    def step(self, batches: Sequence[GroupBatch], params: StepParams) -> StepMetrics:
        found: StepMetrics = self.company.ask(self.node, "step", (self.stack,), (self.place, batches, params))
        return found


@dataclass(frozen=True)
class _Desk:
    """One node's way to the verifier: `sapo.seams.Verifier`."""

    company: Company
    node: int

    def questions(self, keys: Sequence[tuple[str, int]]) -> list[Question]:
        found: list[Question] = self.company.ask(self.node, "questions", (), list(keys))
        return found

    def judge(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]:
        found: list[Verdict] = self.company.ask(self.node, "judge", (), list(items))
        return found


def origin_of(seed: int, node: int) -> bytes:
    """38 bytes that stand for a peer id; another seed is another swarm."""
    digest = hashlib.sha256(b"waggle/lab/1|%d|%d" % (seed, node)).digest()
    return b"\x00$\x08\x01\x12 " + digest


def noise_seed(seed: int, node: int) -> int:
    """Every node draws and samples differently."""
    return int.from_bytes(hashlib.sha256(b"waggle/lab/noise/1|%d|%d" % (seed, node)).digest()[:8], "big")


def _by_shape(folders: Sequence[Path]) -> dict[Shape | None, list[int]]:
    """Which nodes can be stacked together; None: those that must compute alone."""
    found: dict[Shape | None, list[int]] = {}
    for i, folder in enumerate(folders):
        try:
            shape: Shape | None = shape_of(folder)
        except ModelError:
            shape = None
        found.setdefault(shape, []).append(i)
    return found
