"""The leaderboard exam: the model answers it at most once an epoch, in at most 2 % of the time, and publishes its answers.

It takes place only if the person chose so, between two rounds in the policy thread, so that a pause holds it, too.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from waggle.core.errors import CharterError
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.network.leaderboard.exchange import AnswerSheetExchange
from waggle.sapo import evaluation
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks.questions import epoch_at
from waggle.tasks.rollout_group import RIGHT, Completion

REST_FACTOR = 50.0  # until the next exam, times the duration of this one: 2 % of the time
UNANSWERED = Completion(text="", ended=False)  # to a question beyond the model's context: a sheet has a completion for each


@dataclass
class LeaderboardExam:
    """Used in the policy thread only."""

    node: Node
    rules: RoundSettings
    leaderboard: AnswerSheetExchange
    gate: PauseGate
    clock: Callable[[], float] = time.time
    _epoch: int = field(default=-1, init=False)
    _rests_until: float = field(default=0.0, init=False)

    def __call__(self, number: int, learned: int) -> None:
        """Answer the exam if it is due, after `number` rounds and `learned` external groups in training. Raises Stopped."""
        epoch = epoch_at(self.clock())
        if not self.leaderboard.enabled or epoch == self._epoch or time.monotonic() < self._rests_until:
            return
        self._epoch, began = epoch, self.gate.worked_seconds
        try:
            questions = self.leaderboard.exams.of(epoch).questions
        except CharterError:  # a question cannot be generated: nobody under this charter can answer it
            return
        items = evaluation.sample_completions(number, self.node, self.rules, questions, purpose="exam", pause_point=self.gate)
        right = sum(verdict.reward >= RIGHT for verdict in self.node.verifier.judge(items))
        answers_by_question = dict(items)
        answers = [answers_by_question.get(question, UNANSWERED) for question in questions]
        self.leaderboard.publish(epoch, number, learned, self.node.model, answers, right)
        self._rests_until = time.monotonic() + REST_FACTOR * (self.gate.worked_seconds - began)  # without pauses in between
