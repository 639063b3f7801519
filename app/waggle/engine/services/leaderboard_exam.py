"""The leaderboard exam: the model answers it at most once an epoch, in at most a fiftieth of the time, and publishes its answers.

Only where a person chose to take part. It happens between two rounds, in the policy thread: what holds rounds back holds it too.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from waggle.core.errors import CharterError
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.network.node import SwarmNode
from waggle.sapo import evaluation
from waggle.sapo.stages import Node, Rules
from waggle.tasks.questions import epoch_at
from waggle.tasks.rollout_group import RIGHT, Completion

REST_FACTOR = 50.0  # rest this many times as long as answering took
UNANSWERED = Completion(text="", ended=False)  # what the model cannot read whole: a sheet has one answer to each question


@dataclass
class LeaderboardExam:
    """Belongs to the policy thread."""

    node: Node
    rules: Rules
    swarm: SwarmNode
    gate: PauseGate
    clock: Callable[[], float] = time.time
    _epoch: int = field(default=-1, init=False)
    _rests_until: float = field(default=0.0, init=False)

    def __call__(self, number: int, learned: int) -> None:
        """Answer where that is due: after so many rounds, trained on so many groups of peers. Raises Stopped."""
        epoch = epoch_at(self.clock())
        if not self.swarm.compares or epoch == self._epoch or time.monotonic() < self._rests_until:
            return
        self._epoch, began = epoch, self.gate.worked_seconds
        try:
            questions = self.swarm.exams.of(epoch).questions
        except CharterError:  # a question that cannot be made here: it is asked of nobody who has this charter
            return
        items = evaluation.answered(number, self.node, self.rules, questions, purpose="exam", pause_point=self.gate)
        right = sum(verdict.reward >= RIGHT for verdict in self.node.verifier.judge(items))
        answers_by_question = dict(items)
        answers = [answers_by_question.get(question, UNANSWERED) for question in questions]
        self.swarm.publish(epoch, number, learned, self.node.model, answers, right)
        self._rests_until = time.monotonic() + REST_FACTOR * (
            self.gate.worked_seconds - began
        )  # a pause in between is no answering
