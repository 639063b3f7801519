"""Whether the answers that peers teach are more one-sided than the questions of their level.

A sender cannot choose its questions freely, but it can leave out those that it does not want to be learned. Every text is then
true, and the lesson still false: who shares only questions whose answer is "Friday" teaches to answer "Friday". So the answers
that a party taught lately are compared with the true answers of the level's own questions, and so are those of all parties.

An answer is the true one of the question, not what the completions wrote: a scorer may accept "B", "(B)" and "B." alike.

The test: an answer came c times among the last n, and a share q of the level's questions has it. It may come again if a fair
sender would have taught it so often by chance, P[Binomial(n, q) >= c] >= ODDS. So a fair sender loses about ODDS of its groups.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import comb

import msgspec

from waggle.sapo.question_mix import Level
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import RIGHT, JudgedGroup

PARTY_WINDOW, PARTY_ODDS = 64, 0.001  # answers of one party in one level that are remembered; how unlikely a fair sender may be
SWARM_WINDOW, SWARM_ODDS = 256, 0.05  # the same for all parties together: colluders share this limit
MOST_PARTIES = 4096  # remembered, each in one level; the one that taught longest ago is forgotten
MOST_QUESTIONS = 4096  # whose true answers are remembered
SWARM = "swarm"  # takes the place of a party


class TaughtAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answers that one party taught lately in one level, oldest first. A party is a `peer`, or else a `name`."""

    peer: bytes
    name: str
    level: Level
    answers: tuple[str, ...]


class AnswerBalance:
    """The answers that peers taught this node lately. Used in the policy thread.

    `answers` gives a true answer to each question. `sample` gives some questions of a level; it is called once for each level
    that peers teach.
    """

    def __init__(
        self, answers: Callable[[Sequence[QuestionKey]], Sequence[str]], sample: Callable[[Level], Sequence[QuestionKey]]
    ) -> None:
        self._answers, self._sample = answers, sample
        self._truths: OrderedDict[QuestionKey, str] = OrderedDict()
        self._samples: dict[Level, Counter[str]] = {}
        self._taught: OrderedDict[tuple[str | bytes, Level], deque[str]] = OrderedDict()

    def read(self, groups: Iterable[JudgedGroup]) -> None:
        """Find out the true answers of these groups' questions at once; otherwise, each is asked for by itself."""
        keys = {group.question.key for group in groups if _teaches_an_answer(group)}
        missing = [key for key in keys if key not in self._truths]
        for key, answer in zip(missing, self._answers(missing) if missing else (), strict=True):
            self._truths[key] = _plain(answer)
        while len(self._truths) > max(MOST_QUESTIONS, len(keys)):
            self._truths.popitem(last=False)

    def allows(self, group: JudgedGroup, party: str | bytes) -> bool:
        """Whether the answer of a group did not come too often yet, from its party and from all parties."""
        answer, level = self._taught_answer(group), (group.question.dataset, group.question.level)
        if answer is None:
            return True
        share = self._share(level, answer)
        return all(
            _is_likely(len(taught), taught.count(answer), share, odds)
            for taught, odds in (
                (self._taught.get((party, level), ()), PARTY_ODDS),
                (self._taught.get((SWARM, level), ()), SWARM_ODDS),
            )
        )

    def record(self, group: JudgedGroup, party: str | bytes) -> None:
        """Remember the answer of a group that was learned."""
        answer, level = self._taught_answer(group), (group.question.dataset, group.question.level)
        if answer is None:
            return
        for whose in (party, SWARM):
            self._taught.setdefault((whose, level), _window(whose)).append(answer)
            self._taught.move_to_end((whose, level))
        while len(self._taught) > MOST_PARTIES:
            self._taught.popitem(last=False)

    def state(self) -> tuple[TaughtAnswers, ...]:
        """What `restore` takes. True answers are no part of it: they are found out again."""
        return tuple(
            TaughtAnswers(*((whose, "") if isinstance(whose, bytes) else (b"", whose)), level, tuple(taught))
            for (whose, level), taught in self._taught.items()
        )

    def restore(self, state: Iterable[TaughtAnswers]) -> None:
        """Take the place of what was recorded."""
        self._taught.clear()
        for each in state:
            whose = each.peer or each.name
            self._taught[whose, each.level] = _window(whose, each.answers)

    def _taught_answer(self, group: JudgedGroup) -> str | None:
        if not _teaches_an_answer(group):
            return None
        if group.question.key not in self._truths:
            self.read([group])
        return self._truths[group.question.key]

    def _share(self, level: Level, answer: str) -> float:
        """The share of a level's questions with this answer, never 0: the sample may lack a rare one."""
        if level not in self._samples:
            self._samples[level] = Counter(map(_plain, self._answers(self._sample(level))))
        sample = self._samples[level]
        return (sample[answer] + 1) / (sample.total() + 1)


def _window(whose: str | bytes, answers: Iterable[str] = ()) -> deque[str]:
    return deque(answers, maxlen=SWARM_WINDOW if whose == SWARM else PARTY_WINDOW)


def _teaches_an_answer(group: JudgedGroup) -> bool:
    """Whether a completion is right: then the group makes its question's answer likelier."""
    return max(group.rewards) >= RIGHT


def _plain(answer: str) -> str:
    return "".join(answer.split()).casefold()


@lru_cache(1 << 16)
def _is_likely(count: int, equal: int, share: float, odds: float) -> bool:
    """Whether P[Binomial(count, share) >= equal] >= odds."""
    if share >= 1.0:
        return True
    below = sum(comb(count, i) * share**i * (1.0 - share) ** (count - i) for i in range(equal))
    return 1.0 - below >= odds
