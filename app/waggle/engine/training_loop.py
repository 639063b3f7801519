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

GROWTH_SECONDS = 0.1  # completions are shown while they are written, at most ten times a second
RETRY_SECONDS = 5.0  # between two attempts to write to a disk that takes no more
MAX_RETRY_FACTOR = 64  # times as long a verifier is left alone at last, which costs a process each time
VERIFIER_TRIES = 3  # of a verifier that never yet did its part in a round
Tell = Callable[[events.EngineEvent], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainingPlan:
    """What contribution needs to know beyond the node and its rules."""

    base: str  # of the model that training began from
    held_out: tuple[Question, ...]
    held_out_every: int  # rounds
    hub: str = ""  # that model, as the hub knows it (see checkpoint.Saved)


@dataclass
class TrainingLoop:
    """Plays rounds from `round` on until the gate says stop. `tell` may be called from any thread."""

    node: stages.Node
    rules: stages.Rules
    plan: TrainingPlan
    history: History
    gate: PauseGate
    tell: Tell
    round: int
    completions: int
    steps: Callable[[], int]
    save: Callable[[checkpoint.Saved], int]
    leave: Callable[[], None]
    hindered: Callable[[WaggleError | None], None]
    round_ended: Callable[[], None]
    clock: Callable[[], float] = time.time
    retry: float = RETRY_SECONDS
    before_round: Callable[[], None] = nothing
    learned: int = 0  # groups of peers that this model was trained on
    sit: Callable[[int, int], None] = nothing
    first_round_ended: Callable[[], object] = nothing  # called once, in the policy thread
    _grown: float = field(default=0.0, init=False)
    _written: dict[int, tuple[str, bool]] = field(default_factory=dict, init=False)  # of this round, as it was told last
    _ahas: Ahas = field(init=False)
    _played: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Raises HistoryError."""
        self.history.go_on_from(self.round)
        self._ahas = Ahas(self.history.solved(), self.history.taught_by())

    def run(self) -> None:
        """Contribute until stopped; every other error ends the engine through its main."""
        is_begun = False
        try:
            self._judging(self._measure_if_due)
            while True:
                self.gate()
                self._judging(self._play)
                if not is_begun:
                    is_begun = True
                    self.first_round_ended()
                self.round_ended()
        except Stopped:
            self.leave()

    def _play(self) -> None:
        self.before_round()
        self._written = {}
        number, epoch, started = self.round, epoch_at(self.clock()), self.gate.seconds
        played_stages = sapo.play(number, epoch, self.node, self.rules, pause_point=self.gate, watch=self._watch)
        titles = round_events.Titles(self.node.charter)
        for stage in played_stages:
            match stage:
                case stages.Drawn():
                    self.tell(round_events.drawn(stage, titles, self.rules.group_size))
                case stages.Judged():
                    own = stage
                    successes = self._ahas.judged(stage)
                    self.tell(round_events.judged(stage, titles))
                case stages.Shared():
                    self.tell(events.GroupsShared(round=number, groups=stage.groups, bytes=stage.bytes))
                case stages.Gathered():
                    gathered = stage
                    self.tell(round_events.gathered(stage))
                case stages.Learned():
                    taught = self._ahas.learned(stage, self.node.origin)
                    self.tell(round_events.learned(stage, own, self.steps()))
                    if stage.metrics is not None and not stage.metrics.applied:
                        self.tell(
                            events.Warned(title=f"Round {number} taught something that is no number.", advice="It was left out.")
                        )
                    summary = round_events.summary(self.clock(), self.gate.seconds - started, own, gathered, stage, titles)
        log.debug(
            "round %d: %.1f s, %d tokens, %d local and %d external groups", number, summary.seconds, summary.tokens,
            summary.local, summary.external,
        )  # fmt: skip
        self._finish(summary, epoch, successes, taught)

    def _finish(self, summary: events.RoundSummary, epoch: int, successes: Sequence[Aha], taught: Mapping[str, bytes]) -> None:
        """Keep the round, then say so: what the window says is kept must be."""
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
        self.tell(events.RoundCompleted(summary=summary))
        for _, aha in ahas:
            self.tell(events.AhaHappened(aha=aha))
        self.tell(events.CheckpointSaved(round=self.round, bytes=written))
        self._played = True
        self._judging(self._measure_if_due)
        self._judging(lambda: self.sit(self.round, self.learned))

    def _keep(
        self, saved: checkpoint.Saved, summary: events.RoundSummary, ahas: Sequence[tuple[str, events.Aha]],
        taught: Mapping[str, bytes],
    ) -> int:  # fmt: skip
        self.history.keep_round(summary)  # before the checkpoint: played again it is replaced, a lost one leaves a gap
        for dataset, aha in ahas:
            self.history.keep_aha(dataset, aha)
        for dataset, origin in taught.items():
            self.history.keep_teacher(dataset, origin)
        return self.save(saved)

    def _retry_until_stored(self, keep: Callable[[], Result]) -> Result:
        """Until it is kept nothing goes on: a full disk is waited for, and a person is told what it waits for."""
        while True:
            try:
                result = keep()
            except (CheckpointError, HistoryError) as error:
                log.info("round %d is not stored, retry in %.0f s: %s", self.round - 1, self.retry, error)
                self.hindered(error)
                self.gate.rest(self.retry)
                continue
            self.hindered(None)
            return result

    def _judging(self, work: Callable[[], None]) -> None:
        """Do it anew from its beginning until the verifier does its part, which comes before anything is shared or learned.

        A person is told what is waited for. Where no round was played yet that has an end: the swarm itself may be to blame.
        """
        failures = 0
        while True:
            try:
                if failures:
                    self.node.verifier.questions(())
                    self.hindered(None)
                work()
            except VerifierError as error:
                failures += 1
                if failures == VERIFIER_TRIES and not self._played:
                    raise
                seconds = self.retry * min(2 ** (failures - 1), MAX_RETRY_FACTOR)
                log.info("verifier failed %d times, retry in %.0f s: %s", failures, seconds, error)
                self.hindered(error)
                self.gate.rest(seconds)
                continue
            return

    def _measure_if_due(self) -> None:
        """Every so many rounds, the first one included; one that a stop cut short is made up for at the next start."""
        number = self.round
        if number % self.plan.held_out_every or self.history.has_score(number):
            return
        score = evaluation.measure(number, self.node, self.rules, self.plan.held_out, pause_point=self.gate)
        if not score.total:  # the model can read none of the questions
            return
        exam = evaluation.exam_of(self.plan.held_out)
        measured = events.HeldOutScore(round=number, at=self.clock(), right=score.right, total=score.total, exam=exam)
        self._retry_until_stored(lambda: self.history.keep_score(measured))
        self.tell(events.HeldOutMeasured(score=measured))

    def _watch(self, tokens: Ids, lengths: Ids, ended: NDArray[np.bool_]) -> None:
        now = time.monotonic()
        if now - self._grown < GROWTH_SECONDS:
            return
        self._grown = now
        size, most = self.rules.group_size, round_events.text_limit(len(lengths))
        written = [(self._words(tokens[i, :length], bool(ended[i]))[:most], bool(ended[i])) for i, length in enumerate(lengths)]
        rows = tuple((i // size, i % size, *row) for i, row in enumerate(written) if self._written.get(i) != row)
        self._written = dict(enumerate(written))
        if rows:
            self.tell(events.CompletionsGrew(round=self.round, rows=rows))

    def _words(self, ids: Ids, ended: bool) -> str:
        return self.node.tokenizer.decode(ids[:-1] if ended else ids)
