"""A group: one question with its G completions. The unit of sharing and of advantage ("rollout" in the SAPO paper)."""

from typing import Annotated, Literal

import msgspec

from waggle.core.message import Message
from waggle.tasks.questions import Question, QuestionId

Author = Literal["policy", "human"]

GroupKey = tuple[bytes, int, int]  # origin, epoch, number

Place = Annotated[int, msgspec.Meta(ge=0)]

TAGS = "<answer>", "</answer>"
WORDS = 64  # characters of a verdict's reason
UNTAGGED = Message("right, but no answer tag")  # the reason of a verdict: the true answer stands there, outside the answer tags
RIGHT = 0.99  # the smallest reward of a right answer; below 1, because some scorers add up fractions


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One text for a question. `ended` is False if it was cut at the length limit.

    `logp` is the log-probability of the whole text under the policy that wrote it. It is never sent, so it is None for peers.
    """

    text: str
    ended: bool
    by: Author = "policy"
    logp: float | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its completions, from one origin (a peer id, 38 bytes). It has no rewards: each node computes its own."""

    origin: bytes
    id: QuestionId
    completions: tuple[Completion, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The local verifier's result for one completion: a reward in [0, 1], a short reason, and the span that was judged.

    Scorers give full reward to other right answers, and some of them to right answers with words around them. `exact` means
    that the span is the true answer and nothing else.
    """

    reward: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    reason: Message  # at most WORDS characters
    start: Place = 0  # of the judged span, in characters of the completion
    length: Place = 0  # 0 when there was nothing to judge
    exact: bool = False

    def __post_init__(self) -> None:
        if len(self.reason) > WORDS:
            raise ValueError(f"a reason of {len(self.reason):,} characters")


# The common source of new peers without an address range of their own: one computer can invent any number of peer ids.
NEWCOMERS = "newcomers"
UNJUDGED = Verdict(reward=0.0, reason=Message("could not be judged"))


class JudgedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group whose question the local verifier generated again and whose completions it judged."""

    group: Group
    question: Question
    verdicts: tuple[Verdict, ...]
    round: int = 0  # of the origin
    model: str = ""  # the name that the origin gives its model
    source: str = ""  # the address range it came from, or NEWCOMERS; empty if the origin is a party of its own
    # What a node pays for the right form, for its own completions only: the reward of a wrong answer inside one pair of tags in
    # a group without a right answer. So a beginner learns where an answer belongs, and this fades as right answers come.
    form_pay: float = 0.0

    @property
    def key(self) -> GroupKey:
        """The identity of a group. A number is used once, so another question with the same number is the same group."""
        return self.group.origin, self.group.id.epoch, self.group.id.number

    @property
    def rewards(self) -> tuple[float, ...]:
        return tuple(verdict.reward for verdict in self.verdicts)

    @property
    def lesson_rewards(self) -> tuple[float, ...]:
        """The rewards that an update learns from: those of the verdicts, and `form_pay`."""
        if not self.form_pay or max(self.rewards) >= RIGHT:
            return self.rewards
        return tuple(
            max(verdict.reward, self.form_pay) if has_form(completion, verdict) else verdict.reward
            for completion, verdict in zip(self.group.completions, self.verdicts, strict=True)
        )


def has_form(completion: Completion, verdict: Verdict) -> bool:
    """Whether a completion has one answer, not an empty one, inside one pair of tags."""
    answer = completion.text[verdict.start : verdict.start + verdict.length]
    return bool(answer.strip()) and all(completion.text.count(tag) == 1 for tag in TAGS)
