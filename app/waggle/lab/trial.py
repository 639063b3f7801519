"""A trial: one simulated swarm played from its first round to its last, and what it measured."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from waggle.lab.results import Key, Run
from waggle.lab.simulated_nodes import Company, noise_seed, origin_of
from waggle.lab.simulated_swarm import Hive, Weather
from waggle.lab.trial_log import TrialLog
from waggle.policy import tokens
from waggle.rl.advantage import teaches
from waggle.sapo import aha, held_out
from waggle.sapo import round as sapo
from waggle.sapo.sharing import Sharing
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.verifier import Verifier

TICK_SECONDS = 6.0  # of simulated time: groups grow old in the pool as they would there
SHARE_MEMORY = 0.9  # of the moving mean of how many own groups teach


@dataclass(frozen=True)
class Setup:
    """Everything that decides a trial beside its key."""

    folders: tuple[Path, ...]  # one model a node
    models: tuple[str, ...]  # what to call them
    charter: Charter
    rules: sapo.Rules
    sharing: Callable[[], Sharing]
    most_questions: int  # above rules.questions: ask for more where few own groups teach
    held_out: tuple[Question, ...]
    final_held_out: tuple[Question, ...]
    measure_every: int
    weather: Weather = field(default_factory=Weather)
    specialties: tuple[tuple[str, ...], ...] = ((),)  # node i asks about specialties[i % len]; empty: all


@dataclass
class _Player:
    """One node with its own count of rounds."""

    node: sapo.Node
    ahas: aha.Ahas
    round: int = 0
    useful: float = 0.0  # moving share of own groups that teach


@dataclass(frozen=True)
class _Played:
    judged: sapo.Judged
    learned: sapo.Learned
    ahas: tuple[aha.Aha, ...]


class Trial:
    """Plays `key` as `setup` says. `verifier` must be of the same charter."""

    def __init__(self, key: Key, setup: Setup, verifier: Verifier) -> None:
        self._key, self._setup = key, setup
        self._company = Company(setup.folders, verifier)
        self._hive = Hive(
            setup.charter, len(setup.folders), setup.weather,
            seed=noise_seed(key.seed, -1), tick_seconds=TICK_SECONDS, crumb_span=setup.rules.crumb_span,
        )  # fmt: skip
        self._players = [self._player(i) for i in range(len(setup.folders))]
        self._log = TrialLog(
            key.rounds,
            [specialty.dataset for specialty in setup.charter.specialties],
            [player.node.origin for player in self._players],
        )

    def _player(self, i: int) -> _Player:
        setup = self._setup
        node = sapo.Node(
            policy=self._company.policies[i],
            tokens=tokens.load(setup.folders[i]),
            swarm=self._hive.doors[i],
            verifier=self._company.verifiers[i],
            charter=setup.charter,
            origin=origin_of(self._key.seed, i),
            seed=noise_seed(self._key.seed, i),
            model=setup.models[i],
            sharing=setup.sharing(),
            specialties=setup.specialties[i % len(setup.specialties)],
        )
        return _Player(node, aha.Ahas())

    def run(self) -> Iterator[int]:
        """Play; yields the number of finished ticks after each of them."""
        for tick in range(self._key.rounds):
            if tick % self._setup.measure_every == 0:
                self._measure(tick, self._setup.held_out)
            players = self._hive.players()
            played = self._company.play({i: lambda i=i: self._round(i) for i in players})  # type: ignore[misc]
            for i, one in played.items():
                self._hive.hand_in(i, one.judged.groups)
                self._log.played(tick, i, one.judged, one.learned)
                self._log.noticed(tick, i, one.ahas)
            self._hive.move()
            yield tick + 1
        self._measure(self._key.rounds, self._setup.final_held_out)

    def result(self, cpu_seconds: float, commit: str) -> Run:
        """What was measured, once `run` is exhausted."""
        return self._log.result(self._key, self._setup.models, cpu_seconds, commit)

    def _round(self, i: int) -> _Played:
        player, setup = self._players[i], self._setup
        rules = replace(setup.rules, questions=_questions(setup, player.useful))
        judged: sapo.Judged | None = None
        learned: sapo.Learned | None = None
        for stage in sapo.play(player.round, epoch_at(self._hive.clock()), player.node, rules):
            match stage:
                case sapo.Judged():
                    judged = stage
                case sapo.Learned():
                    learned = stage
        assert judged
        assert learned  # a round that is not stopped has all its stages
        useful = np.mean([teaches(group.rewards, rules.crumb_span) for group in judged.groups])
        player.useful = SHARE_MEMORY * player.useful + (1 - SHARE_MEMORY) * float(useful)
        player.round += 1
        found = player.ahas.judged(judged)
        player.ahas.learned(learned, player.node.origin)
        return _Played(judged, learned, found)

    def _measure(self, tick: int, questions: Sequence[Question]) -> None:
        def score(i: int) -> held_out.Score:
            return held_out.measure(tick, self._players[i].node, self._setup.rules, questions)

        scores = self._company.play({i: lambda i=i: score(i) for i in range(len(self._players))})  # type: ignore[misc]
        self._log.measured(tick, [scores[i] for i in range(len(self._players))])


def _questions(setup: Setup, useful: float) -> int:
    """As many as are needed until enough teach, within bounds: 8/0-filtered may ask up to three times as many."""
    wanted = math.ceil(setup.rules.questions / max(useful, 1e-3))
    return min(max(wanted, setup.rules.questions), max(setup.most_questions, setup.rules.questions))
