"""The training loop: plays round after round in the policy thread, publishes each stage, and saves after each round."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from waggle.core.errors import CharterError, CheckpointError, HistoryError, Stopped, VerifierError, WaggleError
from waggle.core.message import Message
from waggle.core.text.round_number import round_number
from waggle.engine.runtime import round_events
from waggle.engine.runtime.held_out_schedule import HeldOutPlan, HeldOutSchedule
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.true_answers import true_answers
from waggle.engine.storage.history import MAX_ROUNDS, THIN_EVERY_ROUNDS, History, held_out_scores, latest_rounds
from waggle.engine.system.resource_limits import memory_used
from waggle.models.storage import checkpoint
from waggle.models.storage.identity import ModelIdentity
from waggle.protocol import events
from waggle.protocol.state import RECALLED
from waggle.rl.batch import Ids, nothing
from waggle.sapo import evaluation, stages
from waggle.sapo import round as sapo
from waggle.sapo.first_success import FirstSuccess, FirstSuccessTracker
from waggle.tasks.questions import QuestionId, epoch_at
from waggle.tasks.rollout_group import RIGHT

log = logging.getLogger(__name__)

GROWTH_SECONDS = 0.1  # between two events of growing completions: a person reads no faster
RETRY_SECONDS = 5.0  # between two attempts to write to a full disk, and before the first retry of a verifier
MAX_RETRY_FACTOR = 64  # for the verifier, which costs a process each time: at most 64 * 5 s between two attempts
VERIFIER_TRIES = 3  # before the first round is played
Publish = Callable[[events.EngineEvent], None]
Result = TypeVar("Result")
ALL = MAX_ROUNDS + THIN_EVERY_ROUNDS  # rounds that a history may have


@dataclass(frozen=True)
class TrainingPlan:
    """What does not change while the loop runs."""

    rules: stages.RoundSettings
    base: str  # of the model that training began from
    held_out: HeldOutPlan
    hub: str = ""  # the name of that model on the hub (see checkpoint.CheckpointState)
    recipe: str = ""  # identifies the settings by which rounds are played
    rule: str = ""  # the update rule
    run: str = ""  # the name of the run
    identity: ModelIdentity | None = None  # of that model
    epoch_is_round: bool = False  # questions do not depend on the clock, so that the run can be repeated
    retry_seconds: float = RETRY_SECONDS


@dataclass(frozen=True)
class Progress:
    """What a model has done so far, all time."""

    round: int = 0  # the next one to play
    completions: int = 0
    learned: int = 0  # external groups that it was trained on


def _same_length(summary: events.RoundSummary) -> None:
    """Leave the limit of answers as it is."""


@dataclass(frozen=True)
class LoopCallbacks:
    """What the loop calls, always in the policy thread."""

    publish: Publish
    save: Callable[[checkpoint.CheckpointState], int]  # returns the bytes written
    flush: Callable[[], None]  # at a stop
    report_blocker: Callable[[WaggleError | None], None]
    round_ended: Callable[[], None]
    before_round: Callable[[], None] = nothing
    first_round_ended: Callable[[], object] = nothing  # called once
    take_exam: Callable[[int, int], None] = nothing  # takes the round and `Progress.learned`
    review_length: Callable[[events.RoundSummary], events.AnswerLength | None] = _same_length  # a new limit of answers, or none


class TrainingLoop:
    """Plays rounds from `start` on until the gate raises Stopped."""

    def __init__(
        self, node: stages.Node, plan: TrainingPlan, start: Progress, history: History, gate: PauseGate, callbacks: LoopCallbacks,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """Prepare the history for the first round. Raises HistoryError."""
        self._node, self._plan, self._progress, self._history = node, plan, start, history
        self._gate, self._call, self._clock = gate, callbacks, clock
        self._rules = plan.rules
        history.rewind_to(start.round)
        self._schedule = HeldOutSchedule(plan.held_out, latest_rounds(history, ALL), held_out_scores(history))
        self._ahas = FirstSuccessTracker(history.successes.datasets(), history.successes.teachers())
        self._growth_published_at = self._test_published_at = 0.0
        self._published_texts: dict[int, tuple[str, bool]] = {}  # of this round, by completion
        self._has_played = self._was_left_out = False

    @property
    def round(self) -> int:
        """The next round to play."""
        return self._progress.round

    def run(self, until_round: int | None = None) -> None:
        """Play until a stop, or until so many rounds were played in all. Every other error ends the engine through its main."""
        is_first_round_over = False
        scores = held_out_scores(self._history)
        recalled = latest_rounds(self._history, RECALLED)
        self._call.publish(events.RoundsRecalled(rounds=recalled, score=scores[-1] if scores else None))
        try:
            self._retry_until_verified(self._measure_if_due)
            while until_round is None or self.round < until_round:
                self._gate()
                self._retry_until_verified(self._play)
                if not is_first_round_over:
                    is_first_round_over = True
                    self._call.first_round_ended()
                self._call.round_ended()
        except Stopped:
            pass  # a person ended it
        self._call.flush()

    def _play(self) -> None:
        self._call.before_round()
        number, started = self.round, self._gate.worked_seconds
        epoch = number if self._plan.epoch_is_round else epoch_at(self._clock())
        played_stages = sapo.play(number, epoch, self._node, self._rules, pause_point=self._gate, watch=self._publish_growth)
        titles = round_events.Titles(self._node.charter)
        for stage in played_stages:
            match stage:
                case stages.Drawn():
                    self._published_texts = {}
                    shares = round_events.question_shares(self._node)
                    self._call.publish(round_events.questions_drawn_event(stage, titles, self._rules.group_size, shares))
                case stages.Judged():
                    own = stage
                    successes = self._ahas.find(stage)
                    self._call.publish(round_events.groups_judged_event(stage, titles, self._truths(stage)))
                case stages.Shared():
                    self._call.publish(events.GroupsShared(round=number, groups=stage.groups, bytes=stage.bytes))
                case stages.Gathered():
                    gathered = stage
                    self._call.publish(round_events.groups_gathered_event(stage))
                case stages.Learned():
                    updated = round_events.policy_updated_event(stage, own, self._node.policy.steps, titles)
                    taught = {} if updated.left_out else self._ahas.record_lessons(stage, self._node.origin)
                    self._call.publish(updated)
                    self._warn_once(updated)
                    figures = round_events.round_summary(
                        self._clock(), self._gate.worked_seconds - started, own, gathered, stage, titles, self._plan.recipe
                    )
                    summary = structs.replace(
                        figures,
                        memory=int(memory_used()),
                        swarm=self._node.charter.name,
                        rule=self._plan.rule,
                        run=self._plan.run,
                    )
        log.debug(
            "round %d: %.1f s, %d tokens, %d local and %d external groups", round_number(number), summary.seconds,
            summary.tokens, summary.local, summary.external,
        )  # fmt: skip
        self._save_and_publish(summary, epoch, successes, taught)

    def _truths(self, stage: stages.Judged) -> dict[QuestionId, str]:
        """Right answers to the questions that no completion solved; none if they cannot be had, as they are for reading only."""
        unsolved = [group for group in stage.groups if max(group.rewards, default=0.0) < RIGHT]
        if not unsolved:
            return {}
        try:
            truths = true_answers(self._node.verifier, [group.question for group in unsolved])
        except (CharterError, VerifierError) as error:
            log.debug("no right answers to show: %s", error)
            return {}
        return {group.group.id: truth for group, truth in zip(unsolved, truths, strict=True)}

    def _warn_once(self, updated: events.PolicyUpdated) -> None:
        """Warn of the first of several steps in a row that were left out because they were not finite."""
        was_left_out, self._was_left_out = self._was_left_out, updated.left_out == "not_finite"
        if self._was_left_out and not was_left_out:
            warning = events.Warned(
                title=Message("Round %1 taught something that is no number.", round_number(updated.round)),
                advice=Message("It was left out."),
            )
            self._call.publish(warning)

    def _save_and_publish(
        self, summary: events.RoundSummary, epoch: int, successes: Sequence[FirstSuccess], taught: Mapping[str, bytes]
    ) -> None:
        """Store the round, then publish it: what the window shows as finished must survive a kill."""
        progress = self._progress = Progress(
            round=self.round + 1,
            completions=self._progress.completions + summary.completions,
            learned=self._progress.learned + summary.external,
        )
        saved = checkpoint.CheckpointState(
            round=progress.round, step=self._node.policy.steps, epoch=epoch, charter=self._node.charter.digest.hex(),
            base=self._plan.base, hub=self._plan.hub, completions=progress.completions, learned=progress.learned,
            mix=self._node.mix.state, identity=self._plan.identity,
        )  # fmt: skip
        ahas = [
            (success.dataset, round_events.first_success_event(success, summary.at, round_events.Titles(self._node.charter)))
            for success in successes
        ]
        written = self._retry_until_stored(lambda: self._store(saved, summary, ahas, taught))
        self._call.publish(events.RoundCompleted(summary=summary))
        for _, aha in ahas:
            self._call.publish(events.AhaHappened(aha=aha))
        self._call.publish(events.CheckpointSaved(round=self.round, bytes=written))
        self._has_played = True
        self._schedule.add_round(summary.seconds)
        self._review_length(summary)
        self._retry_until_verified(self._measure_if_due)
        self._retry_until_verified(lambda: self._call.take_exam(progress.round, progress.learned))

    def _store(
        self, saved: checkpoint.CheckpointState, summary: events.RoundSummary, ahas: Sequence[tuple[str, events.Aha]],
        taught: Mapping[str, bytes],
    ) -> int:  # fmt: skip
        # The history comes before the checkpoint: after a kill in between, the round is played again and replaces this row.
        # In the other order, such a kill would leave a gap in the history for good.
        self._history.save_round(summary)
        for dataset, aha in ahas:
            self._history.successes.save(dataset, aha)
        for dataset, origin in taught.items():
            self._history.successes.save_teacher(dataset, origin)
        return self._call.save(saved)

    def _retry_until_stored(self, store: Callable[[], Result]) -> Result:
        """Store a round or a score, and wait as long as the disk refuses it, as a reported blocker. Raises Stopped."""
        while True:
            try:
                result = store()
            except (CheckpointError, HistoryError) as error:
                log.info("round %d is not stored, retry in %.0f s: %s", self.round, self._plan.retry_seconds, error)
                self._call.report_blocker(error)
                self._gate.sleep(self._plan.retry_seconds)
                continue
            self._call.report_blocker(None)
            return result

    def _retry_until_verified(self, work: Callable[[], None]) -> None:
        """Do `work`, and repeat it from its beginning while the verifier fails, as a reported blocker. Raises Stopped.

        The verifier's part comes before anything is shared or learned, so `work` can be repeated. Before the first round, raise
        VerifierError after a few attempts: the chosen swarm itself may be the cause.
        """
        failures = 0
        while True:
            try:
                if failures:
                    self._node.verifier.revive()
                    self._call.report_blocker(None)
                work()
            except VerifierError as error:
                failures += 1
                if failures == VERIFIER_TRIES and not self._has_played:
                    raise
                seconds = self._plan.retry_seconds * min(2 ** (failures - 1), MAX_RETRY_FACTOR)
                log.info("verifier failed %d times, retry in %.0f s: %s", failures, seconds, error)
                self._call.report_blocker(error)
                self._gate.sleep(seconds)
                continue
            return

    def _review_length(self, summary: events.RoundSummary) -> None:
        """Let answers be longer from the next round on if many were cut off."""
        if (length := self._call.review_length(summary)) is not None:
            self._rules = replace(self._rules, max_new=length.tokens)
            self._call.publish(events.AnswersLengthened(length=length))

    def _measure_if_due(self) -> None:
        """Measure the held-out score if it is due. One that a stop interrupted follows at the next start."""
        number, began = self.round, self._gate.worked_seconds
        questions = self._schedule.due(number)
        if not questions or self._history.has_score(number):
            return
        report = self._publish_test_progress
        score = evaluation.measure(number, self._node, self._rules, questions, pause_point=self._gate, report=report)
        title = round_events.Titles(self._node.charter)
        measured = events.HeldOutScore(
            round=number, at=self._clock(), right=score.right, total=score.total, exam=evaluation.exam_of(questions),
            early=len(questions) < len(self._plan.held_out.questions), seconds=round(self._gate.worked_seconds - began, 1),
            by_specialty={title[dataset]: counts for dataset, counts in score.by_dataset.items()},
        )  # fmt: skip
        self._schedule.add_score(measured)
        if not score.total:  # no question fits into the model's context
            return
        self._retry_until_stored(lambda: self._history.save_score(measured))
        self._call.publish(events.HeldOutMeasured(score=measured))

    def _publish_test_progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._test_published_at >= GROWTH_SECONDS:
            self._test_published_at = now
            self._call.publish(events.HeldOutProgress(done=done, total=total))

    def _publish_growth(self, tokens: Ids, lengths: Ids, ended: NDArray[np.bool_]) -> None:
        now = time.monotonic()
        if now - self._growth_published_at < GROWTH_SECONDS:
            return
        self._growth_published_at = now
        size, most = self._rules.group_size, round_events.text_limit(len(lengths))
        written = [
            (self._node.text(tokens[i, :length], ended=bool(ended[i]))[:most], bool(ended[i])) for i, length in enumerate(lengths)
        ]
        rows = tuple((i // size, i % size, *row) for i, row in enumerate(written) if self._published_texts.get(i) != row)
        self._published_texts = dict(enumerate(written))
        if rows:
            self._call.publish(events.CompletionsProgress(round=self.round, rows=rows))
