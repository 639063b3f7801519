"""What a round needs of the world: a policy, its words, a swarm, a verifier. Fakes of each are in fakes.py."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from waggle.rl.batch import Floats, GroupBatch, Ids, Sampled, SampleParams, StepMetrics, StepParams, Written
from waggle.tasks.questions import Question
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict


class Policy(Protocol):
    """A model that speaks and learns, in token ids. Used from one thread."""

    @property
    def steps(self) -> int:
        """Optimiser steps taken so far."""
        ...

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SampleParams) -> list[list[Sampled]]:
        """G completions of each of P prompts; row p * G + g of `uniforms` (P * G, max_new) picks completion g of prompt p."""
        ...

    def logprobs(self, texts: Sequence[Written], temperature: float) -> list[Floats]:
        """The log-probs (N,) of each group's completion tokens, as this policy gives them now."""
        ...

    def values(self, texts: Sequence[Written]) -> list[Floats]:
        """What the value head expects before each completion token, (N,) a group; 0 while it has learned nothing."""
        ...

    def step(self, batches: Sequence[GroupBatch], params: StepParams) -> StepMetrics:
        """One optimiser step on a training set; raises Stopped before it took effect, never after."""
        ...


class Tokenizer(Protocol):
    """A policy's vocabulary. Special tokens inside a text are plain text."""

    @property
    def stop(self) -> int:
        """The token that ends a completion."""
        ...

    def encode(self, text: str) -> Ids: ...

    def prompt(self, text: str) -> Ids:
        """A prompt's tokens, as a turn of a chat where the model was taught to chat."""
        ...

    def decode(self, ids: Ids) -> str: ...

    def offsets(self, text: str) -> Ids:
        """(T, 2): where each token of the encoded text begins and ends, in characters."""
        ...


class Swarm(Protocol):
    """Others. Every method answers at once from memory: a round never waits for a peer."""

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """Hand groups to the network: how many of them travel, and the bytes of their record."""
        ...

    def waiting(self) -> Sequence[JudgedGroup]:
        """External groups received, verified and judged here, not yet trained on."""
        ...

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """These were drawn into a training set."""
        ...

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        """Nothing can be learned from these here."""
        ...


class Verifier(Protocol):
    """Questions and verdicts."""

    def questions(self, keys: Sequence[tuple[str, int]]) -> list[Question]: ...

    def answers(self, keys: Sequence[tuple[str, int]]) -> list[str]: ...

    def judge(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]: ...
