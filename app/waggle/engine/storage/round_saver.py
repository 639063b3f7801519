"""Saves every round: a line in the training journal, and a whole checkpoint as often as disk wear and time allow.

Before ten minutes of learning are in the journal only, a checkpoint follows sooner: a kill costs no more to make good.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from waggle.core.errors import CheckpointError, Stopped
from waggle.core.message import Message, in_turn
from waggle.core.system.os_faults import fault_of
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

# To spare the disk, all writing stays under 20 GB a day: checkpoints have 15 GB, journals the rest.
MAX_CHECKPOINT_BYTES_A_SECOND = 15e9 / 86_400
MAX_SHARE_OF_TIME = 0.01  # for writing checkpoints
MAX_REPLAY_SECONDS = 600.0  # of learning that only the journal has; then a checkpoint follows, within these wider limits:
MAX_REPLAY_BYTES_A_SECOND = 150e9 / 86_400  # a solid-state disk of 500 GB lasts five years of days and nights of it
MAX_REPLAY_SHARE_OF_TIME = 0.05
MAX_JOURNAL_BYTES = 256 << 20  # then a checkpoint follows, whatever it costs: a longer journal takes long to replay
REPLAY_REPORT_SECONDS = 1.0  # a shorter replay is not reported
REPLAY_WORTH_SAVING_SECONDS = 60.0  # a replay that took this long ends with a checkpoint
REPLAY_SAVE_SECONDS = 600.0  # between two checkpoints of a long replay: the most that a kill can cost
CHECKPOINT_RETRY_SECONDS = 3600.0  # after a checkpoint that the disk refused


def checkpoint_interval(size: int, seconds: float) -> float:
    """Seconds between two checkpoints of `size` bytes that take `seconds` to write."""
    return max(size / MAX_CHECKPOINT_BYTES_A_SECOND, seconds / MAX_SHARE_OF_TIME)


def replay_interval(size: int, seconds: float) -> float:
    """The least seconds between two checkpoints of `size` bytes that take `seconds` to write, however much a kill would cost."""
    return max(size / MAX_REPLAY_BYTES_A_SECOND, seconds / MAX_REPLAY_SHARE_OF_TIME)


class RecordingPolicy:
    """A policy that remembers the steps of a round for the journal, and how long it learned in all, in seconds of `clock`."""

    def __init__(self, policy: Policy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy, self._clock = policy, clock
        self.learning_seconds = 0.0
        self._steps_of_round: list[tuple[tuple[TrainingGroup, ...], StepParams]] = []

    @property
    def steps(self) -> int:
        return self._policy.steps

    def sample(self, prompts: Sequence[Ids], uniforms: Floats, params: SamplingParams) -> list[list[SampledCompletion]]:
        self._steps_of_round = []  # a new round: the steps of an interrupted one do not belong to it
        return self._policy.sample(prompts, uniforms, params)

    def logprobs(self, texts: Sequence[TokenizedGroup], temperature: float) -> list[Floats]:
        return self._policy.logprobs(texts, temperature)

    def values(self, texts: Sequence[TokenizedGroup]) -> list[Floats]:
        return self._policy.values(texts)

    def step(self, batches: Sequence[TrainingGroup], params: StepParams) -> StepMetrics:
        began = self._clock()
        metrics = self._policy.step(batches, params)
        self.learning_seconds += self._clock() - began
        self._steps_of_round.append((tuple(batches), params))
        return metrics

    @property
    def steps_of_round(self) -> Sequence[tuple[tuple[TrainingGroup, ...], StepParams]]:
        """The batches and parameters of each step since the last sampling."""
        return self._steps_of_round


@dataclass
class RoundSaver:
    """Saves each round, in the policy thread. `checkpoint_round` is the round of the newest checkpoint; None: there is none."""

    root: Path
    policy: SavablePolicy
    recording_policy: RecordingPolicy
    checkpoint_round: int | None
    make_room: Callable[[], None] = nothing  # after each checkpoint
    on_checkpoint_refused: Callable[[], None] = nothing  # the journal has the round all the same
    clock: Callable[[], float] = time.monotonic
    restored: CheckpointState | None = None  # where this run continues; later than the checkpoint if a journal was replayed
    newest: CheckpointState | None = field(default=None, init=False)  # of the last round that is stored; None: there is none
    _next_checkpoint_at: float = field(default=0.0, init=False)
    _replay_checkpoint_at: float = field(default=0.0, init=False)  # not before it, however much only the journal has
    _replay_begins: float = field(default=0.0, init=False)  # the policy's learning seconds at the last checkpoint
    _journal_bytes: int = field(default=0, init=False)
    _newest_in_journal: CheckpointState | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.newest = self.restored
        if self.checkpoint_round is not None:
            self._newest_in_journal = self.restored if self.restored and self.restored.round > self.checkpoint_round else None
            # The newest journal may follow a later checkpoint, which is damaged now. It must stay the one to append to.
            self.checkpoint_round = max(self.checkpoint_round, training_journal.newest(self.root))
            size, written = checkpoint.size(self.root), self.clock() - checkpoint.age(self.root)
            self._next_checkpoint_at = written + checkpoint_interval(size, 0.0)
            self._replay_checkpoint_at = written + replay_interval(size, 0.0)

    def save(self, saved: CheckpointState) -> int:
        """Store a round durably; return the bytes written. Raises CheckpointError if the disk refuses; then call it again."""
        if self.checkpoint_round is None:
            return self._checkpoint(saved)
        size = self._append_to_journal(saved)
        if not self._is_due:
            return size
        try:
            return size + self._checkpoint(saved)
        except CheckpointError as error:
            log.info("checkpoint after round %d failed, retry in %.0f s: %s", saved.round, CHECKPOINT_RETRY_SECONDS, error)
            self._next_checkpoint_at, self._journal_bytes = self.clock() + CHECKPOINT_RETRY_SECONDS, 0
            self._replay_checkpoint_at = self._next_checkpoint_at
            self.on_checkpoint_refused()
            return size

    @property
    def _is_due(self) -> bool:
        """Whether a checkpoint is due after a round that is in the journal."""
        now, learned = self.clock(), self.recording_policy.learning_seconds - self._replay_begins
        takes_long = learned >= MAX_REPLAY_SECONDS and now >= self._replay_checkpoint_at
        return now >= self._next_checkpoint_at or takes_long or self._journal_bytes > MAX_JOURNAL_BYTES

    def _append_to_journal(self, saved: CheckpointState) -> int:
        """Append a round to the journal; return the bytes written. Raises CheckpointError.

        This comes before each checkpoint, too: if that gets damaged, the checkpoint before it and this journal lead past it.
        """
        if self._newest_in_journal is not None and self._newest_in_journal.round == saved.round:
            return 0  # a retry: the journal has it, and what failed came later
        assert self.checkpoint_round is not None
        saved = self._described(saved)
        try:
            size = training_journal.append(
                self.root, self.checkpoint_round, training_journal.entry_of(saved, self.recording_policy.steps_of_round)
            )
        except OSError as error:
            raise CheckpointError(
                Message("Round %1 could not be saved: %2.", saved.round, fault_of(error).reason),
                in_turn(Message("The rounds before are kept."), fault_of(error).advice),
            ) from error
        self._journal_bytes += size
        self.newest = self._newest_in_journal = saved
        return size

    def _described(self, saved: CheckpointState) -> CheckpointState:
        """The state with how it was trained."""
        training = self.policy.training
        return replace(saved, method=training.method, optimizer=training.optimizer, library=checkpoint.library_of(self.policy))

    def flush(self) -> None:
        """Write a checkpoint if rounds are in the journal only, unless the policy has taken a further step.

        Call it at an orderly end, so that the next start replays nothing; and before the number of threads changes, as a replay
        with another number would not give the same bits.
        """
        if self._newest_in_journal is not None and self._newest_in_journal.step == self.policy.steps:
            with suppress(CheckpointError):  # the journal has all of it
                self._checkpoint(self._newest_in_journal)

    def _checkpoint(self, saved: CheckpointState) -> int:
        began = self.clock()
        size = checkpoint.save(self.root, self.policy, saved)
        log.debug("checkpoint after round %d: %d bytes in %.1f s", saved.round, size, self.clock() - began)
        self.checkpoint_round, self._newest_in_journal, self._journal_bytes = saved.round, None, 0
        self.newest, self._replay_begins = self._described(saved), self.recording_policy.learning_seconds
        now = self.clock()
        self._next_checkpoint_at = now + checkpoint_interval(size, now - began)
        self._replay_checkpoint_at = now + replay_interval(size, now - began)
        self.make_room()
        training_journal.forget(self.root, checkpoint.oldest(self.root))
        return size


def restore(
    root: Path, policy: SavablePolicy, learn: Policy, base: str, *, pause_point: Callable[[], None] = nothing,
    report: Callable[[int, int], None] = nothing, is_sound: Callable[[], bool] = checkpoint.always,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[CheckpointState | None, int | None, list[checkpoint.DamagedState]]:  # fmt: skip
    """Load the newest checkpoint and replay its journal; return the state, the checkpoint's round, and what was set aside.

    `report` is called with the rounds that were replayed and their total. A replay may take hours, so its result is saved every
    ten minutes, at the end, and when `pause_point` raises Stopped; the next start continues there. If the policy
    is not sound in the end, the journal is set aside. Raises CheckpointError.
    """
    saved, aside = checkpoint.load_newest(root, policy, base, is_sound)
    if saved is None:
        with _as_checkpoint_error():
            lost = training_journal.set_aside(root)  # or they would be replayed on top of the new rounds
        return (
            None,
            None,
            aside + [checkpoint.DamagedState(place, Message("No checkpoint is left that it follows.")) for place in lost],
        )
    replay, total = _Replay(root, policy, saved, clock), 0
    for done, entry in enumerate(training_journal.entries(root, saved.round, base)):
        if replay.is_long:
            total = total or sum(1 for _ in training_journal.entries(root, saved.round, base))  # up to 256 MiB to decode
            report(done, total)
        try:
            training_journal.learn_again(learn.step, entry, pause_point)
        except Stopped:
            replay.save_if_worthwhile()
            raise
        replay.advance(entry.saved)
    if replay.saved is not saved and not is_sound():
        with _as_checkpoint_error():
            lost = training_journal.set_aside(root, saved.round - 1)
        restored, checkpoint_round, others = restore(root, policy, learn, base, is_sound=is_sound)
        reason = Message("What was learned there gives answers that are no numbers.")
        return restored, checkpoint_round, [*aside, *(checkpoint.DamagedState(place, reason) for place in lost), *others]
    replay.save_if_worthwhile()
    with _as_checkpoint_error():
        lost = training_journal.set_aside(root, replay.saved.round)  # as above
        other = training_journal.mend(root, max(saved.round, training_journal.newest(root)))
    aside += [checkpoint.DamagedState(place, Message("The rounds that it follows are lost.")) for place in lost]
    reason = Message("A part of the journal is damaged, or another version of Waggle wrote it.")
    aside += [checkpoint.DamagedState(other, reason)] if other else []
    return replay.saved, replay.stored.round, aside


@contextmanager
def _as_checkpoint_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            Message("The journal cannot be mended: %1.", fault_of(error).reason), fault_of(error).advice
        ) from error


@dataclass
class _Replay:
    """The progress of a replay: `saved` is its last round, `stored` the last one that a checkpoint has."""

    root: Path
    policy: SavablePolicy
    stored: CheckpointState
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.saved, self._started_at, self._saved_at = self.stored, self.clock(), self.clock()

    @property
    def is_long(self) -> bool:
        return self.clock() - self._started_at >= REPLAY_REPORT_SECONDS

    def advance(self, saved: CheckpointState) -> None:
        self.saved = saved
        if self.clock() - self._saved_at >= REPLAY_SAVE_SECONDS:
            self.save_if_worthwhile()

    def save_if_worthwhile(self) -> None:
        """Write a checkpoint, if the replay since the last one took long enough to be worth it.

        Not between two steps of a round, where the policy is no longer what `saved` says.
        """
        whole = self.policy.steps == self.saved.step
        if whole and self.saved is not self.stored and self.clock() - self._saved_at >= REPLAY_WORTH_SAVING_SECONDS:
            with suppress(CheckpointError):  # the journal has all of it
                checkpoint.save(self.root, self.policy, self.saved)
                self.stored = self.saved
            self._saved_at = self.clock()
