"""A group: one question with its G completions. The unit of sharing and of advantage ("rollout" in the SAPO paper)."""

from typing import Annotated, Literal

import msgspec

from waggle.tasks.questions import Question, QuestionId

Author = Literal["policy", "human"]

Place = Annotated[int, msgspec.Meta(ge=0)]

TAGS = "<answer>", "</answer>"  # between which an answer stands
WORDS = 64  # characters of why an answer earns what it does
RIGHT = 0.99  # rewards from here on count as a right answer


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One text for a question. `ended` says whether it stopped by itself or was cut at the length limit.

    `logp` is the log-probability of the whole text under the policy that wrote it; it never travels, so a peer's is None.
    """

    text: str
    ended: bool
    by: Author = "policy"
    logp: float | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its completions, as its origin (a peer id, 38 bytes) made it. Carries no rewards: those are local."""

    origin: bytes
    id: QuestionId
    completions: tuple[Completion, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the local verifier says of one completion: a reward in [0, 1], why in a few words, and the span it judged.

    Scorers pay many texts in full: other right answers, and some of them words beside the truth. `exact` says that the span
    holds the true answer and nothing else.
    """

    reward: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    reason: Annotated[str, msgspec.Meta(max_length=WORDS)]
    start: Place = 0  # of the judged span, in characters of the completion
    length: Place = 0  # 0 when there was nothing to judge
    exact: bool = False


# The source of all newcomers who would count for themselves: one computer at home makes up any number of names.
NEWCOMERS = "newcomers"
UNJUDGED = Verdict(reward=0.0, reason="could not be judged")


class JudgedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group after the local verifier has regenerated its question and judged every completion."""

    group: Group
    question: Question
    verdicts: tuple[Verdict, ...]
    round: int = 0  # of the origin
    model: str = ""  # of the origin, as it names it
    source: str = ""  # the address range it came from, or NEWCOMERS; empty: the origin counts for itself

    @property
    def key(self) -> tuple[bytes, QuestionId]:
        """What makes a group itself: whose it is and which question."""
        return self.group.origin, self.group.id

    @property
    def rewards(self) -> tuple[float, ...]:
        return tuple(verdict.reward for verdict in self.verdicts)
