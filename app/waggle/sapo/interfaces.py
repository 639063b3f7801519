"""What a round needs from outside: a policy, its tokenizer, a swarm, a verifier. Fakes are in fakes.py."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from waggle.rl.batch import Floats, Ids, SampledCompletion, SamplingParams, StepMetrics, StepParams, TokenizedGroup, TrainingGroup
from waggle.tasks.questions import Question, QuestionKey
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict


class Policy(Protocol):
    """A model that samples and learns, in token ids. Used from one thread."""

    @property
    def steps(self) -> int:
        """Optimizer steps so far."""
        ...

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        """G completions of each of P prompts; row p * G + g of `uniforms` (P * G, max_new) picks completion g of prompt p."""
        ...

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        """The log-probs (N,) of each group's completion tokens under the current policy, at this temperature."""
        ...

    def values(self, texts: Sequence[TokenizedGroup]) -> list[Floats]:
        """The value head's estimates before each completion token, (N,) for each group; 0 while it has learned nothing."""
        ...

    def step(self, batches: Sequence[TrainingGroup], params: StepParams) -> StepMetrics:
        """One optimizer step on a training set. Raises Stopped before the step takes effect, never after."""
        ...


class Prompt(Protocol):
    """A text that a policy continues. A text that follows is encoded as one text with it, and never changes its tokens."""

    @property
    def ids(self) -> Ids:
        """(T,) tokens."""
        ...

    def followed_by(self, text: str) -> "Prompt":
        """This prompt and a plain text after it."""
        ...

    def continuation(self, text: str) -> Ids:
        """Token ids (T,) of a plain text that follows."""
        ...

    def offsets(self, text: str) -> Ids:
        """(T, 2): the first and the last character (exclusive) in a text that follows of each of its tokens."""
        ...


class Tokenizer(Protocol):
    """A policy's tokenizer. The names of special tokens inside a text are encoded as plain text."""

    @property
    def stops(self) -> tuple[int, ...]:
        """The tokens that end a completion."""
        ...

    def stop_for(self, *, chat: bool) -> int:
        """The token with which the policy ends a turn of a `chat`, or else a plain text."""
        ...

    @property
    def has_chat_template(self) -> bool: ...

    def prompt(self, text: str) -> Prompt:
        """A prompt in plain text."""
        ...

    def conversation(self, messages: Sequence[str]) -> Prompt:
        """Messages of a person and the model in turn, the person's last, in the model's chat template."""
        ...

    def decode_continuation(self, ids: Ids) -> str:
        """The text that tokens add to a prompt."""
        ...


class Swarm(Protocol):
    """The other nodes. Every method answers from memory, at once: a round never waits for a peer."""

    def share(self, number: int, epoch: int, groups: Sequence[Group], model: str) -> tuple[int, int]:
        """Hand groups to the network. Returns how many of them travel, and the bytes of their record."""
        ...

    def waiting(self) -> Sequence[JudgedGroup]:
        """External groups that were received and judged here and not trained on yet, oldest first."""
        ...

    def take(self, groups: Sequence[JudgedGroup]) -> None:
        """Remove groups that are in a training set now."""
        ...

    def discard(self, groups: Sequence[JudgedGroup]) -> None:
        """Remove groups that this node cannot learn from."""
        ...


class Verifier(Protocol):
    """Makes questions from keys, and judges answers."""

    def questions(self, keys: Sequence[QuestionKey]) -> list[Question]: ...

    def answers(self, keys: Sequence[QuestionKey]) -> list[str]: ...

    def judge(self, items: Iterable[tuple[Question, Completion]]) -> list[Verdict]: ...

    def revive(self) -> None:
        """Start the process that judges again if it ended. Raises VerifierError."""
        ...
