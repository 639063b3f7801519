"""When the held-out score is measured, and on which questions.

Every so many rounds, as a person set it and as the starter has it. Or by time, for models that take long for a round: a score on
a few questions before the first round and every few minutes of the first half hour, then scores on all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.sapo.evaluation import exam_of
from waggle.tasks.questions import Question

USUAL_ROUNDS = 25  # between two scores
EARLY_SECONDS = 1800.0  # of training, in which scores are on a few questions
SOON_SECONDS = 180.0  # of training between two scores, at the least, unless USUAL_ROUNDS are played
SHARE = 0.2  # of the time, at the most, that scores take
PART_OF_TRAINING = 0.1  # of all training so far, between two scores: later on, a model changes more slowly


@dataclass(frozen=True)
class HeldOutPlan:
    """`every`: rounds between two scores; 0: by time, and then on the `few` first, which are some of all `questions`."""

    questions: tuple[Question, ...]
    every: int
    few: tuple[Question, ...] = ()


class HeldOutSchedule:
    """Knows the rounds and scores so far. Used in one thread."""

    def __init__(self, plan: HeldOutPlan, rounds: Sequence[RoundSummary] = (), scores: Sequence[HeldOutScore] = ()) -> None:
        """Continue after these rounds and scores, oldest first. Scores on other questions do not count."""
        self._plan = plan
        self._names = {exam_of(plan.few): True, exam_of(plan.questions): False}  # of an exam: whether it is the early one
        self._last: HeldOutScore | None = None
        self._is_early = bool(plan.few) and plan.few != plan.questions
        self._trained = self._trained_at_score = 0.0  # seconds since the first score
        done = 0
        for score in scores:
            if score.exam in self._names:
                while done < len(rounds) and rounds[done].round < score.round:
                    self.add_round(rounds[done].seconds)
                    done += 1
                self.add_score(score)
        for summary in rounds[done:]:
            self.add_round(summary.seconds)

    def add_round(self, seconds: float) -> None:
        """Take a finished round into account."""
        if self._last is not None:
            self._trained += seconds

    def add_score(self, score: HeldOutScore) -> None:
        """Take a score into account, also one for which no question could be read."""
        self._last, self._trained_at_score = score, self._trained
        if score.exam not in self._names or not self._names[score.exam]:
            self._is_early = False

    def due(self, number: int) -> tuple[Question, ...]:
        """The questions to measure the score on before round `number`; none if it is not due."""
        plan, last = self._plan, self._last
        if plan.every:
            return () if number % plan.every else plan.questions
        if last is None:
            return plan.few or plan.questions
        is_early = self._is_early and self._trained < EARLY_SECONDS
        questions = plan.few if is_early else plan.questions
        since = self._trained - self._trained_at_score
        cost = last.seconds * len(questions) / max(1, last.total)
        if cost > SHARE * (since + cost):
            return ()
        is_while = since >= max(SOON_SECONDS, PART_OF_TRAINING * self._trained)
        return questions if number - last.round >= USUAL_ROUNDS or is_while else ()
