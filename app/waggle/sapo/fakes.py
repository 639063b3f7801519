"""A policy, a tokenizer and a swarm that need no model and no network: for tests, and to try round.py by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams, StepMetrics, StepParams, TokenizedGroup, TrainingGroup
from waggle.sapo.interfaces import Tokenizer
from waggle.sapo.prompt_form import PLAIN, Prompter, WorkedExample
from waggle.tasks.rollout_group import Group, JudgedGroup


@dataclass(frozen=True)
class FakePrompt:
    """A text with one token for each character."""

    text: str

    @property
    def ids(self) -> Ids:
        return self.continuation(self.text)

    def followed_by(self, text: str) -> "FakePrompt":
        return FakePrompt(self.text + text)

    def continuation(self, text: str) -> Ids:
        return np.array([ord(character) for character in text], dtype=np.int32)

    def offsets(self, text: str) -> Ids:
        return np.array([(i, i + 1) for i in range(len(text))], dtype=np.int32).reshape(-1, 2)


class FakeTokenizer:
    """One token for each character; token 0 stops."""

    stop = 0
    stops = (0,)
    has_chat_template = False

    def stop_for(self, *, chat: bool) -> int:
        return self.stop

    def encode(self, text: str) -> Ids:
        return FakePrompt(text).ids

    def prompt(self, text: str) -> FakePrompt:
        return FakePrompt(text)

    def conversation(self, messages: Sequence[str]) -> FakePrompt:
        return FakePrompt("\n".join(messages))

    def decode(self, ids: Ids) -> str:
        return "".join(chr(i) for i in ids)

    def decode_continuation(self, ids: Ids) -> str:
        return self.decode(ids)


def plain_prompter(tokenizer: Tokenizer) -> Prompter:
    """The starter's way of asking, which needs no worked example."""
    return Prompter(PLAIN, tokenizer, lambda level: WorkedExample("", ""))


class FakePolicy:
    """Answers with one of its lines, which the noise picks. Steps are recorded, nothing is learned."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [np.append(FakeTokenizer().encode(line), np.int32(0)) for line in lines]
        self.steps = 0
        self.learned: list[list[TrainingGroup]] = []

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        params.pause_point()
        picks = (uniforms[:, 0] * len(self._lines)).astype(int).reshape(len(prompts), -1)
        return [[self._say(self._lines[pick], params.max_new) for pick in row] for row in picks]

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        return [np.zeros(sum(map(len, text.completions)), np.float32) for text in texts]

    def values(self, texts: Sequence[TokenizedGroup]) -> list[Floats]:
        return self.logprobs(texts, 1.0)

    def step(self, batches: Sequence[TrainingGroup], params: StepParams) -> StepMetrics:
        params.pause_point()
        self.learned.append(list(batches))
        self.steps += 1
        return StepMetrics(loss=0.0, clip_fraction=0.0, gradient_norm=0.0)

    @staticmethod
    def _say(line: Ids, longest: int) -> SampledCompletion:
        ids = line[:longest]
        return SampledCompletion(tokens=ids, logp=np.zeros(len(ids), np.float32), ended=len(line) <= longest)


class FakeSwarm:
    """A pool that a test fills; records the groups that were shared."""

    def __init__(self, pool: Sequence[JudgedGroup] = ()) -> None:
        self.pool = list(pool)
        self.shared: list[Group] = []

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        self.shared.extend(groups)
        return len(groups), sum(len(completion.text) for group in groups for completion in group.completions)

    def waiting(self) -> Sequence[JudgedGroup]:
        return tuple(self.pool)

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        self.pool = [group for group in self.pool if group not in groups]

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        self.take(groups)
