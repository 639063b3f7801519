"""Saves every round: a line in the journal each time, and a whole checkpoint as often as wear of the disk allows."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from waggle.core.errors import CheckpointError, Stopped
from waggle.models.storage import checkpoint, training_journal
from waggle.models.storage.checkpoint import CheckpointState, SavablePolicy
from waggle.rl.batch import (
    Floats,
    Ids,
    SampledCompletion,
    SamplingParams,
    StepMetrics,
    StepParams,
    TokenizedGroup,
    TrainingGroup,
    nothing,
)
from waggle.sapo.interfaces import Policy

log = logging.getLogger(__name__)

BYTES_A_SECOND = 15e9 / 86_400  # of checkpoints; journals have the rest of 20 GB a day
SHARE_OF_TIME = 0.01  # that writing checkpoints may take
JOURNAL_BYTES = 256 << 20  # after so much a checkpoint is written anyway
REPLAY_REPORT_SECONDS = 1.0  # of learning again, before it is report
REPLAY_WORTH_SAVING_SECONDS = 60.0  # learning again that took so long is worth a checkpoint
REPLAY_SAVE_SECONDS = 1800.0  # and more than so much of it no kill may cost
CHECKPOINT_RETRY_SECONDS = 3600.0  # until a checkpoint that the disk did not take is tried again


def interval(size: int, seconds: float) -> float:
    """Seconds between two checkpoints of so many bytes that take so long to write: under 1% of time and 15 GB a day."""
    return max(size / BYTES_A_SECOND, seconds / SHARE_OF_TIME)


class RecordingPolicy:
    """A policy that remembers the step it took last."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._last: tuple[tuple[TrainingGroup, ...], StepParams] | None = None

    @property
    def steps(self) -> int:
        return self._policy.steps

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        self._last = None  # a round that was left in the middle is begun anew
        return self._policy.sample(prompts, uniforms, params)

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        return self._policy.logprobs(texts, temperature)

    def values(self, texts: Sequence[TokenizedGroup]) -> list[Floats]:
        return self._policy.values(texts)

    def step(self, batches: Sequence[TrainingGroup], params: StepParams) -> StepMetrics:
        metrics = self._policy.step(batches, params)
        self._last = (tuple(batches), params)
        return metrics

    @property
    def learned(self) -> tuple[tuple[TrainingGroup, ...], StepParams | None]:
        """What was learned since the last sampling of a round."""
        return self._last or ((), None)


@dataclass
class RoundSaver:
    """Called after each round, in the policy's thread. `checkpointed` is the round of the newest checkpoint, if there is one."""

    root: Path
    policy: SavablePolicy
    remembering: RecordingPolicy
    checkpointed: int | None
    make_room: Callable[[], None] = nothing  # after each checkpoint
    refused: Callable[[], None] = nothing  # when the disk did not take one, though the journal has the round
    clock: Callable[[], float] = time.monotonic
    restored: CheckpointState | None = None  # what was gone on from; later than the checkpoint where the journal led on
    _due: float = field(default=0.0, init=False)
    _journal: int = field(default=0, init=False)
    _newest: CheckpointState | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.checkpointed is not None:
            self._newest = self.restored if self.restored and self.restored.round > self.checkpointed else None
            self.checkpointed = max(
                self.checkpointed, training_journal.newest(self.root)
            )  # of a later one that was damaged since
            self._due = self.clock() + interval(checkpoint.size(self.root), 0.0) - checkpoint.age(self.root)

    def keep(self, saved: CheckpointState) -> int:
        """Make a round safe; the bytes written. Raises CheckpointError when the disk says no: it can be asked again."""
        if self.checkpointed is None:
            return self._checkpoint(saved)
        size = self._note(saved)
        if self.clock() < self._due and self._journal <= JOURNAL_BYTES:
            return size
        try:
            return size + self._checkpoint(saved)
        except CheckpointError as error:
            log.info("checkpoint after round %d failed, retry in %.0f s: %s", saved.round, CHECKPOINT_RETRY_SECONDS, error)
            self._due, self._journal = self.clock() + CHECKPOINT_RETRY_SECONDS, 0
            self.refused()
            return size

    def _note(self, saved: CheckpointState) -> int:
        """Into the journal, also before a checkpoint: should that be damaged one day, the one before leads past it."""
        if self._newest is not None and self._newest.round == saved.round:
            return 0  # asked again after a failure further on
        assert self.checkpointed is not None
        saved = replace(saved, method=self.policy.training.method, optimizer=self.policy.training.optimizer)
        try:
            size = training_journal.append(
                self.root, self.checkpointed, training_journal.entry_of(saved, *self.remembering.learned)
            )
        except OSError as error:
            raise CheckpointError(
                f"Round {saved.round - 1} could not be saved: {error.strerror}.",
                "The rounds before are kept. Make room on the disk, or mend its rights.",
            ) from error
        self._journal += size
        self._newest = saved
        return size

    def leave(self) -> None:
        """Leave the next start nothing to learn again, at an orderly end, and before another number of threads would learn it
        otherwise. Without a step that was not kept."""
        if self._newest is not None and self._newest.step == self.policy.steps:
            with suppress(CheckpointError):  # the journal has all of it
                self._checkpoint(self._newest)

    def _checkpoint(self, saved: CheckpointState) -> int:
        began = self.clock()
        size = checkpoint.save(self.root, self.policy, saved)
        log.debug("checkpoint after round %d: %d bytes in %.1f s", saved.round, size, self.clock() - began)
        self.checkpointed, self._newest, self._journal = saved.round, None, 0
        self._due = self.clock() + interval(size, self.clock() - began)
        self.make_room()
        training_journal.forget(self.root, checkpoint.oldest(self.root))
        return size


def restore(
    root: Path, policy: SavablePolicy, learn: Policy, base: str, *, pause_point: Callable[[], None] = nothing,
    report: Callable[[int, int], None] = nothing, clock: Callable[[], float] = time.monotonic,
) -> tuple[CheckpointState | None, int | None, list[checkpoint.DamagedState]]:  # fmt: skip
    """The newest checkpoint and what was learned since: the state, the checkpoint's round, and what was set aside.

    `report` hears how many rounds of how many are learned again. That may take hours, so it is kept now and then and at the end,
    and when the pause point raises Stopped: the next start goes on from there. Raises CheckpointError.
    """
    saved, aside = checkpoint.load_newest(root, policy, base)
    if saved is None:
        with _mending():
            lost = training_journal.set_aside(root)  # else they would be learned behind the rounds that begin anew
        return None, None, aside + [checkpoint.DamagedState(place, "No checkpoint is left that it follows.") for place in lost]
    replay, total = _Replay(root, policy, saved, clock), 0
    for done, entry in enumerate(training_journal.entries(root, saved.round, base)):
        if replay.is_long:
            total = total or sum(1 for _ in training_journal.entries(root, saved.round, base))  # up to 256 MiB to decode
            report(done, total)
        try:
            training_journal.learn_again(learn.step, entry, pause_point)
        except Stopped:
            replay.keep()
            raise
        replay.went_on(entry.saved)
    replay.keep()
    with _mending():
        lost = training_journal.set_aside(root, replay.saved.round)  # else they would be learned one day, on top of other rounds
        other = training_journal.mend(root, max(saved.round, training_journal.newest(root)))
    aside += [checkpoint.DamagedState(place, "The rounds that it follows are lost.") for place in lost]
    reason = "A part of the journal is damaged, or another version of Waggle wrote it."
    aside += [checkpoint.DamagedState(other, reason)] if other else []
    return replay.saved, replay.stored.round, aside


@contextmanager
def _mending() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"The journal cannot be mended: {error.strerror}.", "Make room on the disk, or mend its rights."
        ) from error


@dataclass
class _Replay:
    """How far a journal was learned again, and what of that a checkpoint has."""

    root: Path
    policy: SavablePolicy
    stored: CheckpointState
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.saved, self._began, self._since = self.stored, self.clock(), self.clock()

    @property
    def is_long(self) -> bool:
        return self.clock() - self._began >= REPLAY_REPORT_SECONDS

    def went_on(self, saved: CheckpointState) -> None:
        self.saved = saved
        if self.clock() - self._since >= REPLAY_SAVE_SECONDS:
            self.keep()

    def keep(self) -> None:
        """Where it took long enough to be worth a checkpoint."""
        if self.saved is not self.stored and self.clock() - self._since >= REPLAY_WORTH_SAVING_SECONDS:
            with suppress(CheckpointError):  # the journal has all of it
                checkpoint.save(self.root, self.policy, self.saved)
                self.stored = self.saved
            self._since = self.clock()
