"""A trial: one simulated swarm of N nodes in one process, which play the engine's own round, and its measurements.

The nodes play one after another. Stacking their weights, to sample for all of them in one batch, was tried (26e4dcc) and was no
faster on processors: the weights of one small model fit into a cache, those of eight do not.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from safetensors import numpy as array_files

from waggle.core.errors import CheckpointError, LabError
from waggle.models.backend import open_policy
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint
from waggle.models.storage.checkpoint import CheckpointState, SavablePolicy
from waggle.network.exchange.verification import strict_verdict
from waggle.network.messages.rollout_record import shareable
from waggle.practice.results import Key, Run
from waggle.practice.simulated_swarm import SimulatedSwarm, Weather
from waggle.practice.trial_log import TrialLog
from waggle.practice.trial_state import NodeState, TrialState, fill, packed, unpacked
from waggle.rl.advantage import teaches
from waggle.rl.update_rules.interface import Rule
from waggle.sapo import evaluation, first_success, stages
from waggle.sapo import round as sapo
from waggle.sapo.prompt_form import PLAIN, PromptForm
from waggle.sapo.question_mix import QuestionMix
from waggle.sapo.sharing.interface import SharingStrategy
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.rollout_group import GroupKey, JudgedGroup
from waggle.tasks.sandbox.verifier import Verifier

TICK_SECONDS = 6.0  # of simulated time, so that groups age in the pool as in a real swarm
SHARE_MEMORY = 0.9  # of the moving mean of how many own groups teach
STATE, ARRAYS = "trial.msgpack", "log.safetensors"  # files of a saved trial, beside a folder for each node


def plain_form(folder: Path, node: stages.Node, rules: stages.RoundSettings) -> PromptForm:
    """How the starter is asked."""
    return PLAIN


@dataclass(frozen=True)
class Setup:
    """Everything that decides a trial, besides its key."""

    folders: tuple[Path, ...]  # one model a node
    models: tuple[str, ...]  # their names
    charter: Charter
    rules: stages.RoundSettings
    sharing: Callable[[], SharingStrategy]
    most_questions: int  # if above rules.questions: draw up to so many while few own groups teach
    held_out: tuple[Question, ...]  # for every point of the curve; empty: no curve
    final_held_out: tuple[Question, ...]  # for the score at the end
    measure_every: int  # rounds between two points of the curve; 0: one point, at the end
    weather: Weather = field(default_factory=Weather)
    specialties: tuple[tuple[str, ...], ...] = ((),)  # node i asks about specialties[i % len]; empty: all
    updates: tuple[Rule, ...] = ()  # node i learns by updates[i % len]; empty: by the rule of `rules`
    device: str = "cpu"
    training: tuple[TrainingMode, ...] = (TrainingMode(),)  # node i trains by training[i % len]
    rate_scales: tuple[float, ...] = (1.0,)  # node i learns at the rate of `rules` times rate_scales[i % len]
    form: Callable[[Path, stages.Node, stages.RoundSettings], PromptForm] = plain_form  # in which the model of a folder is asked


@dataclass
class _Player:
    """One node with its own count of rounds."""

    node: stages.Node
    policy: SavablePolicy  # of the node
    base: str  # see checkpoint.base_of
    ahas: first_success.FirstSuccessTracker
    round: int = 0
    useful: float = 0.0  # moving share of own groups that teach


class Trial:
    """Plays the run `key` under `setup`. `verifier` must have the same charter."""

    def __init__(self, key: Key, setup: Setup, verifier: Verifier) -> None:
        self._key, self._setup = key, setup
        self._verifier = verifier
        self._swarm = SimulatedSwarm(
            setup.charter, len(setup.folders), setup.weather,
            seed=noise_seed(key.seed, -1), tick_seconds=TICK_SECONDS, crumb_span=setup.rules.crumb_span,
        )  # fmt: skip
        self._written: dict[GroupKey, int] = {}  # in which tick
        self._players = [self._player(i) for i in range(len(setup.folders))]
        self.log = TrialLog(
            key.rounds,
            [specialty.dataset for specialty in setup.charter.specialties],
            [player.node.origin for player in self._players],
        )
        for questions in (setup.held_out, setup.final_held_out):
            self._require_readable(questions)

    def _require_readable(self, questions: Sequence[Question]) -> None:
        """Raise LabError, before any round, if one of the models could not be scored in a specialty."""
        for dataset in dict.fromkeys(question.dataset for question in questions):
            for player in self._players:
                if not any(
                    stages.fits(player.node, self._setup.rules, question) for question in questions if question.dataset == dataset
                ):
                    reach = self._setup.rules.context
                    raise LabError(
                        f"No reserved question of {dataset} fits into the {reach} tokens that all models read.",
                        "Take it out of the charter, or take models that read more.",
                    )

    def _player(self, i: int) -> _Player:
        setup = self._setup
        training = setup.training[i % len(setup.training)]
        opened = open_policy(setup.folders[i], device=setup.device, threads=1, training=training)
        node = stages.Node(
            policy=opened.policy,
            tokenizer=opened.tokenizer,
            swarm=self._swarm.connections[i],
            verifier=self._verifier,
            charter=setup.charter,
            origin=origin_of(self._key.seed, i),
            seed=noise_seed(self._key.seed, i),
            model=setup.models[i],
            sharing=setup.sharing(),
            specialties=setup.specialties[i % len(setup.specialties)],
        )
        node = replace(node, form=setup.form(setup.folders[i], node, setup.rules))
        return _Player(node, opened.policy, checkpoint.base_of(setup.folders[i]), first_success.FirstSuccessTracker())

    @property
    def tick(self) -> int:
        """The number of finished ticks."""
        return self._swarm.tick

    def run(self) -> Iterator[int]:
        """Play all rounds that are left; yields the number of finished ticks after each tick."""
        for tick in range(self.tick, self._key.rounds):
            if self._setup.measure_every and tick % self._setup.measure_every == 0:
                self._measure(tick, self._setup.held_out)
            for i in self._swarm.players():
                self._round(tick, i)
            self._swarm.advance()
            yield tick + 1
        if self._setup.held_out:
            self._measure(self._key.rounds, self._setup.held_out)
        self.log.record_final_scores(self._scores(self._key.rounds, self._setup.final_held_out))

    def result(self, cpu_seconds: float, commit: str) -> Run:
        """The measurements, after `run` is exhausted."""
        setup, every = self._setup, len(self._setup.charter.specialties)
        specialty_counts = tuple(len(setup.specialties[i % len(setup.specialties)]) or every for i in range(len(setup.folders)))
        methods = [setup.training[i % len(setup.training)].method for i in range(len(setup.folders))]
        return self.log.result(self._key, setup.models, methods, specialty_counts, cpu_seconds, commit)

    @property
    def bytes_to_save(self) -> int:
        """About what `save` writes: weights and moments."""
        states = (player.policy.state() for player in self._players)
        return sum(array.nbytes for weights, moments in states for array in (*weights.values(), *moments.values()))

    def save(self, folder: Path) -> None:
        """Write all that later rounds and the result depend on, besides key and setup, into an empty folder.

        Call it between two ticks. Raises CheckpointError and OSError.
        """
        for i, player in enumerate(self._players):
            saved = CheckpointState(
                round=player.round, step=player.policy.steps, epoch=epoch_at(self._swarm.clock()),
                charter=self._setup.charter.digest.hex(), base=player.base,
                library=checkpoint.library_of(player.policy),
            )  # fmt: skip
            checkpoint.save(_folder_of_node(folder, i), player.policy, saved)
        nodes = tuple(
            NodeState(
                round=player.round,
                useful=player.useful,
                mix=player.node.mix.state,
                taught=player.node.balance.state(),
                known=player.ahas.known,
                taught_by=dict(player.ahas.taught_by),
                memory=packed(player.node.sharing.memory),
            )
            for player in self._players
        )
        state = TrialState(nodes=nodes, swarm=self._swarm.state(), log=self.log.state(), written=self._written)
        (folder / STATE).write_bytes(packed(state))
        (folder / ARRAYS).write_bytes(array_files.save(self.log.arrays))

    def restore(self, folder: Path) -> None:
        """Go on from what a trial of the same key and setup saved.

        Raises MemoryShort, and for a damaged folder CheckpointError, OSError, SafetensorError, KeyError and ValueError, such as
        those of msgspec; then this trial cannot be played any more.
        """
        state = unpacked((folder / STATE).read_bytes(), TrialState)
        for i, (player, saved) in enumerate(zip(self._players, state.nodes, strict=True)):
            restored, damaged = checkpoint.load_newest(_folder_of_node(folder, i), player.policy, player.base)
            if restored is None:
                raise CheckpointError(damaged[0].reason if damaged else "It is incomplete.")
            player.node = replace(player.node, mix=QuestionMix(saved.mix))
            player.node.balance.restore(saved.taught)
            fill(player.node.sharing.memory, saved.memory)
            player.ahas = first_success.FirstSuccessTracker(saved.known, saved.taught_by)
            player.round, player.useful = saved.round, saved.useful
        self._swarm.restore(state.swarm)
        self._written = state.written
        self.log.restore(state.log, array_files.load((folder / ARRAYS).read_bytes()))

    def _round(self, tick: int, i: int) -> None:
        player, setup = self._players[i], self._setup
        rules = replace(self._rules_of(i), questions=_questions(setup, player.useful))
        judged: stages.Judged | None = None
        learned: stages.Learned | None = None
        for stage in sapo.play(player.round, epoch_at(self._swarm.clock()), player.node, rules):
            match stage:
                case stages.Judged():
                    judged = stage
                case stages.Learned():
                    learned = stage
        assert judged
        assert learned  # a round that is not stopped has all its stages
        useful = np.mean([teaches(group.lesson_rewards, rules.crumb_span) for group in judged.groups])
        player.useful = SHARE_MEMORY * player.useful + (1 - SHARE_MEMORY) * float(useful)
        player.round += 1
        self._written |= {group.key: tick for group in judged.groups}
        self._swarm.send(i, as_sent(judged.groups, setup.charter, self._verifier))
        trained_on = [lesson.group for lesson in learned.lessons if lesson.batch is not None]
        ages = [tick - self._written[group.key] for group in trained_on if group.group.origin != player.node.origin]
        self.log.record_round(tick, i, judged, learned, ages)
        self.log.record_first_successes(tick, i, player.ahas.find(judged))
        player.ahas.record_lessons(learned, player.node.origin)

    def _rules_of(self, i: int) -> stages.RoundSettings:
        setup = self._setup
        rate = setup.rules.learning_rate * setup.rate_scales[i % len(setup.rate_scales)]
        rule = setup.updates[i % len(setup.updates)] if setup.updates else setup.rules.rule
        return replace(setup.rules, rule=rule, learning_rate=rate)

    def _measure(self, tick: int, questions: Sequence[Question]) -> None:
        self.log.record_scores(tick, self._scores(tick, questions))

    def _scores(self, tick: int, questions: Sequence[Question]) -> list[evaluation.Score]:
        return [evaluation.measure(tick, player.node, self._setup.rules, questions) for player in self._players]


def _folder_of_node(folder: Path, i: int) -> Path:
    return folder / f"node-{i}"


def as_sent(groups: Sequence[JudgedGroup], charter: Charter, verifier: Verifier) -> list[JudgedGroup]:
    """The groups as they may travel and as a reader judges them; those that had to be changed are judged again."""
    shared = []
    for judged in groups:
        group = shareable(judged.group, charter)
        if group is not None and group != judged.group:
            verdicts = verifier.judge([(judged.question, completion) for completion in group.completions])
            shared.append(msgspec.structs.replace(judged, group=group, verdicts=tuple(verdicts)))
        elif group is not None:
            shared.append(judged)
    return [
        msgspec.structs.replace(judged, verdicts=tuple(map(strict_verdict, judged.group.completions, judged.verdicts)))
        for judged in shared
    ]


def origin_of(seed: int, node: int) -> bytes:
    """38 bytes that stand for a peer id; another seed is another swarm."""
    return b"\x00$\x08\x01\x12 " + hashlib.sha256(b"waggle/lab/1|%d|%d" % (seed, node)).digest()


def noise_seed(seed: int, node: int) -> int:
    """Every node draws and samples differently."""
    return int.from_bytes(hashlib.sha256(b"waggle/lab/noise/1|%d|%d" % (seed, node)).digest()[:8], "big")


def _questions(setup: Setup, useful: float) -> int:
    """Enough questions that enough groups should teach, within limits: 8/0-filtered may draw three times as many."""
    count = math.ceil(setup.rules.questions / max(useful, 1e-3))
    return min(max(count, setup.rules.questions), max(setup.most_questions, setup.rules.questions))
