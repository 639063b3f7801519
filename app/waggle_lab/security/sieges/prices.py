"""What an attack costs the attacker, beside what it costs the victims."""

from collections import Counter
from collections.abc import Callable

import msgspec

from waggle.sapo.stages import Judged, Learned
from waggle.tasks.rollout_group import RIGHT
from waggle_lab.security.lessons import LESSONS

LAST_ROUNDS = 20  # in which the victims' own completions are searched for what was taught


class AttackerPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all hostile nodes spent together."""

    answers: int  # completions made
    sent_bytes: int  # of payloads, to all who read them
    cpu_seconds: float


class VictimPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The own completions of all victims, to compare with those of the same nodes without attackers.

    `shares_showing`, the shares of them that show each lesson, and `tokens_per_answer` are of the last rounds.
    """

    answers: int
    right: int
    tokens_per_answer: float
    shares_showing: dict[str, float]
    hostile_pull: float  # part of the pull on the weights, over all rounds
    cpu_seconds: float  # of the whole siege
    received_bytes: int | None = None  # of hostile payloads; None: not counted


class VictimCounts:
    """Counts of the own completions of all victims, while a siege of so many rounds is played."""

    def __init__(self, rounds: int) -> None:
        self._first = rounds - LAST_ROUNDS
        self._answers = self._right = self._late_answers = self._late_tokens = 0
        self._looked_at, self._showing = Counter[str](), Counter[str]()
        self._pull = self._hostile_pull = 0.0

    def record_completions(self, judged: Judged) -> None:
        """Count what one node wrote in a round."""
        for group in judged.groups:
            self._answers += len(group.rewards)
            self._right += sum(reward >= RIGHT for reward in group.rewards)
        if judged.round < self._first:
            return
        self._late_tokens += judged.tokens
        for group in judged.groups:
            texts = [completion.text for completion in group.group.completions]
            self._late_answers += len(texts)
            for name, lesson in LESSONS.items():
                if lesson.dataset in ("", group.question.dataset):
                    self._looked_at[name] += len(texts)
                    self._showing[name] += sum(map(lesson.shows, texts))

    def record_lessons(self, learned: Learned, is_hostile: Callable[[bytes], bool]) -> None:
        """Count whose groups one node learned from in a round."""
        for lesson in learned.lessons:
            self._pull += lesson.pull
            self._hostile_pull += lesson.pull * is_hostile(lesson.group.group.origin)

    def share_showing(self, name: str) -> float:
        """The share of the late completions that shows a lesson."""
        return self._showing[name] / max(1, self._looked_at[name])

    def price(self, cpu_seconds: float, received_bytes: int | None = None) -> VictimPrice:
        return VictimPrice(
            answers=self._answers,
            right=self._right,
            tokens_per_answer=self._late_tokens / max(1, self._late_answers),
            shares_showing={name: self.share_showing(name) for name in LESSONS},
            hostile_pull=self._hostile_pull / (self._pull or 1.0),
            cpu_seconds=cpu_seconds,
            received_bytes=received_bytes,
        )
