"""The training loop: plays round after round in the policy thread, publishes each stage, and saves after each round."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from waggle.core.errors import CheckpointError, HistoryError, Stopped, VerifierError, WaggleError
from waggle.engine.runtime import round_events
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.storage.history import History
from waggle.models.storage import checkpoint
from waggle.protocol import events
from waggle.rl.batch import Ids, nothing
from waggle.sapo import evaluation, stages
from waggle.sapo import round as sapo
from waggle.sapo.first_success import Aha, Ahas
from waggle.tasks.questions import Question, epoch_at

log = logging.getLogger(__name__)

GROWTH_SECONDS = 0.1  # between two events of growing completions: a person reads no faster
RETRY_SECONDS = 5.0  # between two attempts to write to a full disk, and before the first retry of a verifier
MAX_RETRY_FACTOR = 64  # for the verifier, which costs a process each time: at most 64 * 5 s between two attempts
VERIFIER_TRIES = 3  # before the first round is played
Publish = Callable[[events.EngineEvent], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainingPlan:
    """What does not change while the loop runs."""

    base: str  # of the model that training began from
    held_out: tuple[Question, ...]
    held_out_every: int  # rounds
    hub: str = ""  # the name of that model on the hub (see checkpoint.Saved)


@dataclass
class TrainingLoop:
    """Plays rounds from `round` on until the gate raises Stopped. Runs in the policy thread; so do all callbacks."""

    node: stages.Node
    rules: stages.Rules
    plan: TrainingPlan
    history: History
    gate: PauseGate
    publish: Publish
    round: int
    completions: int
    steps: Callable[[], int]
    save: Callable[[checkpoint.Saved], int]
    flush: Callable[[], None]
    report_blocker: Callable[[WaggleError | None], None]
    round_ended: Callable[[], None]
    clock: Callable[[], float] = time.time
    retry_seconds: float = RETRY_SECONDS
    before_round: Callable[[], None] = nothing
    learned: int = 0  # external groups that this model was trained on, all time
    take_exam: Callable[[int, int], None] = nothing
    first_round_ended: Callable[[], object] = nothing  # called once
    _growth_published_at: float = field(default=0.0, init=False)
    _published_texts: dict[int, tuple[str, bool]] = field(default_factory=dict, init=False)  # of this round, by completion
    _ahas: Ahas = field(init=False)
    _has_played: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Raises HistoryError."""
        self.history.rewind_to(self.round)
        self._ahas = Ahas(self.history.solved_datasets(), self.history.teachers())

    def run(self) -> None:
        """Play rounds until a stop. Every other error ends the engine through its main."""
        is_begun = False
        try:
            self._retry_until_verified(self._measure_if_due)
            while True:
                self.gate()
                self._retry_until_verified(self._play)
                if not is_begun:
                    is_begun = True
                    self.first_round_ended()
                self.round_ended()
        except Stopped:
            self.flush()

    def _play(self) -> None:
        self.before_round()
        self._published_texts = {}
        number, epoch, started = self.round, epoch_at(self.clock()), self.gate.worked_seconds
        played_stages = sapo.play(number, epoch, self.node, self.rules, pause_point=self.gate, watch=self._publish_growth)
        titles = round_events.Titles(self.node.charter)
        for stage in played_stages:
            match stage:
                case stages.Drawn():
                    self.publish(round_events.drawn(stage, titles, self.rules.group_size))
                case stages.Judged():
                    own = stage
                    successes = self._ahas.judged(stage)
                    self.publish(round_events.judged(stage, titles))
                case stages.Shared():
                    self.publish(events.GroupsShared(round=number, groups=stage.groups, bytes=stage.bytes))
                case stages.Gathered():
                    gathered = stage
                    self.publish(
                        events.GroupsGathered(
                            round=number,
                            local=stage.local,
                            external=stage.external,
                            waiting=stage.waiting,
                            refused=dict(stage.refused),
                        )
                    )
                case stages.Learned():
                    taught = self._ahas.learned(stage, self.node.origin)
                    self.publish(round_events.learned(stage, own, self.steps()))
                    if stage.metrics is not None and not stage.metrics.applied:
                        self.publish(
                            events.Warned(title=f"Round {number} taught something that is no number.", advice="It was left out.")
                        )
                    summary = round_events.summary(self.clock(), self.gate.worked_seconds - started, own, gathered, stage, titles)
        log.debug(
            "round %d: %.1f s, %d tokens, %d local and %d external groups", number, summary.seconds, summary.tokens,
            summary.local, summary.external,
        )  # fmt: skip
        self._save_and_publish(summary, epoch, successes, taught)

    def _save_and_publish(
        self, summary: events.RoundSummary, epoch: int, successes: Sequence[Aha], taught: Mapping[str, bytes]
    ) -> None:
        """Store the round, then publish it: what the window shows as finished must survive a kill."""
        self.round += 1
        self.completions += summary.completions
        self.learned += summary.external
        saved = checkpoint.Saved(
            round=self.round, step=self.steps(), epoch=epoch, charter=self.node.charter.digest.hex(), base=self.plan.base,
            hub=self.plan.hub, completions=self.completions, learned=self.learned,
        )  # fmt: skip
        ahas = [
            (success.dataset, round_events.aha(success, summary.at, round_events.Titles(self.node.charter)))
            for success in successes
        ]
        written = self._retry_until_stored(lambda: self._keep(saved, summary, ahas, taught))
        self.publish(events.RoundCompleted(summary=summary))
        for _, aha in ahas:
            self.publish(events.AhaHappened(aha=aha))
        self.publish(events.CheckpointSaved(round=self.round, bytes=written))
        self._has_played = True
        self._retry_until_verified(self._measure_if_due)
        self._retry_until_verified(lambda: self.take_exam(self.round, self.learned))

    def _keep(
        self, saved: checkpoint.Saved, summary: events.RoundSummary, ahas: Sequence[tuple[str, events.Aha]],
        taught: Mapping[str, bytes],
    ) -> int:  # fmt: skip
        self.history.save_round(
            summary
        )  # before the checkpoint: a kill in between leads to a replay of the round, which replaces this row
        for dataset, aha in ahas:
            self.history.save_aha(dataset, aha)
        for dataset, origin in taught.items():
            self.history.save_teacher(dataset, origin)
        return self.save(saved)

    def _retry_until_stored(self, keep: Callable[[], Result]) -> Result:
        """Store a round or a score, and wait as long as the disk refuses it, as a reported blocker. Raises Stopped."""
        while True:
            try:
                result = keep()
            except (CheckpointError, HistoryError) as error:
                log.info("round %d is not stored, retry in %.0f s: %s", self.round - 1, self.retry_seconds, error)
                self.report_blocker(error)
                self.gate.sleep(self.retry_seconds)
                continue
            self.report_blocker(None)
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
                    self.node.verifier.questions(())
                    self.report_blocker(None)
                work()
            except VerifierError as error:
                failures += 1
                if failures == VERIFIER_TRIES and not self._has_played:
                    raise
                seconds = self.retry_seconds * min(2 ** (failures - 1), MAX_RETRY_FACTOR)
                log.info("verifier failed %d times, retry in %.0f s: %s", failures, seconds, error)
                self.report_blocker(error)
                self.gate.sleep(seconds)
                continue
            return

    def _measure_if_due(self) -> None:
        """Measure the held-out score every `held_out_every` rounds. One that a stop interrupted follows at the next start."""
        number = self.round
        if number % self.plan.held_out_every or self.history.has_score(number):
            return
        score = evaluation.measure(number, self.node, self.rules, self.plan.held_out, pause_point=self.gate)
        if not score.total:  # no question fits into the model's context
            return
        exam = evaluation.exam_of(self.plan.held_out)
        measured = events.HeldOutScore(round=number, at=self.clock(), right=score.right, total=score.total, exam=exam)
        self._retry_until_stored(lambda: self.history.save_score(measured))
        self.publish(events.HeldOutMeasured(score=measured))

    def _publish_growth(self, tokens: Ids, lengths: Ids, ended: NDArray[np.bool_]) -> None:
        now = time.monotonic()
        if now - self._growth_published_at < GROWTH_SECONDS:
            return
        self._growth_published_at = now
        size, most = self.rules.group_size, round_events.text_limit(len(lengths))
        written = [(self._words(tokens[i, :length], bool(ended[i]))[:most], bool(ended[i])) for i, length in enumerate(lengths)]
        rows = tuple((i // size, i % size, *row) for i, row in enumerate(written) if self._published_texts.get(i) != row)
        self._published_texts = dict(enumerate(written))
        if rows:
            self.publish(events.CompletionsGrew(round=self.round, rows=rows))

    def _words(self, ids: Ids, ended: bool) -> str:
        return self.node.tokenizer.decode(ids[:-1] if ended else ids)
