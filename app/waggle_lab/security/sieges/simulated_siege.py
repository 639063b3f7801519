"""A siege in a simulated swarm: honest nodes learn while hostile ones teach them something beside right answers.

The honest nodes play the engine's own rounds, and what hostile nodes send is checked and judged as if it came from the network,
but it travels within one process: quick, and the same numbers for the same seed. Each hostile node counts as a party of its own,
as peers do that have been useful for a while in address ranges of their own: the best that a stranger can reach.
"""

import hashlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from waggle.core import paths
from waggle.core.errors import BadRecord
from waggle.core.system.process_memory import resident_bytes
from waggle.models.tokenizer import load as load_tokenizer
from waggle.models.torch.policy import TorchPolicy
from waggle.network.exchange.verification import VerifiedRecord, verify_record
from waggle.network.identity.keys import Identity
from waggle.network.messages.announcement import Announcement
from waggle.practice.simulated_swarm import SimulatedConnection, SimulatedSwarm, Weather
from waggle.practice.trial import TICK_SECONDS, as_sent, noise_seed
from waggle.sapo import evaluation, stages
from waggle.sapo.round import play as play_round
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, epoch_at
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.security.attacks import Attack, Payload, Scene
from waggle_lab.security.lessons import LESSONS
from waggle_lab.security.sieges.identities import identity_of
from waggle_lab.security.sieges.prices import AttackerPrice, VictimCounts
from waggle_lab.security.sieges.siege import Costs, Siege, SiegeKey, count_wrongly_accepted
from waggle_lab.study.plan import configuration

VICTIMS, ATTACKERS, ONE_VICTIM = "victims", "attackers", "one victim"  # who is charged for CPU time


class _Clock:
    """CPU seconds of this process and of the verifier, by who used them."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.seconds = dict.fromkeys((VICTIMS, ATTACKERS, ONE_VICTIM), 0.0)

    @contextmanager
    def charge(self, whom: str) -> Iterator[None]:
        before = time.process_time() + self._verifier.worked
        try:
            yield
        finally:
            self.seconds[whom] += time.process_time() + self._verifier.worked - before


class SimulatedSiege:
    """One siege by one lesson, or by none. Raises only errors of our own code."""

    def __init__(self, key: SiegeKey, charter: Charter, questions: Sequence[Question], folder: Path) -> None:
        self._key, self._charter, self._questions, self._canary = key, charter, questions, folder / "canary"
        self._restarts = list[str]()
        self._verifier = Verifier(charter, restarted=self._restarts.append)
        self._clock = _Clock(self._verifier)
        self._rules = configuration(key.configuration).rules(stages.RoundSettings().learning_rate).under(charter)
        self._swarm = SimulatedSwarm(
            charter, key.honest + key.hostile, Weather(), seed=noise_seed(key.seed, -1), tick_seconds=TICK_SECONDS,
            crumb_span=self._rules.crumb_span,
        )  # fmt: skip
        self._nodes = [self._node(i, identity_of(folder / f"{i}.key", key.seed, i)) for i in range(key.honest)]
        lesson = LESSONS.get(key.attack)
        places = range(key.honest, key.honest + key.hostile)
        self._hostile: list[tuple[int, Identity, Attack]] = [
            (
                i,
                identity_of(folder / f"{i}.key", key.seed, places[0] if lesson.one_key else i),
                lesson.make(self._connection(i), i - key.honest),
            )
            for i in places
            if lesson is not None
        ]
        self._origins = {node.origin for node in self._nodes}
        self._counts = VictimCounts(key.rounds)
        self._refused, self._lost = Counter[str](), Counter[str]()
        self._sent = self._answers = self._wrong = self._received = self._honest_received = self._trained_on = 0

    def _connection(self, i: int) -> SimulatedConnection:
        return self._swarm.connections[i]

    def _node(self, i: int, identity: Identity) -> stages.Node:
        return stages.Node(
            policy=TorchPolicy(paths.starter()), tokenizer=load_tokenizer(paths.starter()), swarm=self._connection(i),
            verifier=self._verifier, charter=self._charter, origin=identity.peer_id, seed=noise_seed(self._key.seed, i),
            model="Starter",
        )  # fmt: skip

    def play(self, number: int) -> None:
        """Play round `number` on every node, then deliver what was sent."""
        for i, node in enumerate(self._nodes):
            with self._clock.charge(VICTIMS):
                self._play_honest(number, i, node)
        for i, identity, attack in self._hostile:
            with self._clock.charge(ATTACKERS):
                payload = attack(self._scene(identity, number))
            self._send_hostile(i, identity, payload)
        self._swarm.advance()

    def _play_honest(self, number: int, i: int, node: stages.Node) -> None:
        for stage in play_round(number, epoch_at(self._swarm.clock()), node, self._rules):
            match stage:
                case stages.Judged():
                    self._counts.record_completions(stage)
                    groups = as_sent(stage.groups, self._charter, self._verifier)
                    self._swarm.send(i, groups)
                    self._honest_received += len(groups) * (self._key.honest - 1)
                case stages.Gathered():
                    for origin, reasons in stage.refusals.items():
                        if origin not in self._origins:
                            self._refused.update(reasons)
                case stages.Learned():
                    self._counts.record_lessons(stage, lambda origin: origin not in self._origins)
                    self._trained_on += sum(
                        lesson.group.group.origin not in self._origins and any(lesson.effects) for lesson in stage.lessons
                    )

    def _scene(self, identity: Identity, number: int) -> Scene:
        return Scene(
            charter=self._charter, verifier=self._verifier, identity=identity, now=self._swarm.clock(), canary=str(self._canary),
            round=number + 1,
        )  # fmt: skip

    def _send_hostile(self, i: int, identity: Identity, payload: Payload) -> None:
        """Check and judge a payload once, and charge each victim for it."""
        self._sent += len(payload.blob) * self._key.honest
        self._answers += payload.answers
        try:
            with self._clock.charge(ONE_VICTIM):
                verified = self._verify(identity, payload)
        except BadRecord as error:
            self._refused[str(error.title)] += self._key.honest
            return
        groups = verified.groups
        self._received += len(groups) * self._key.honest
        self._wrong += count_wrongly_accepted(groups, self._verifier)
        self._swarm.send(i, groups)

    def _verify(self, identity: Identity, payload: Payload) -> VerifiedRecord:
        announced = Announcement(
            charter=self._charter.digest, sha256=hashlib.sha256(payload.blob).digest(), size=len(payload.blob),
            round=payload.round, epoch=payload.epoch, specialties=1, model=payload.model,
            expires=int(self._swarm.clock() * 1000),
        )  # fmt: skip
        return verify_record(
            payload.blob, announced, origin=identity.peer_id, charter=self._charter, verifier=self._verifier,
            now=self._swarm.clock(),
        )  # fmt: skip

    def report(self, commit: str, seconds: float) -> Siege:
        """The result, with the held-out score of each honest node."""
        key, used = self._key, self._clock.seconds
        scores = [evaluation.measure(key.rounds, node, self._rules, self._questions) for node in self._nodes if self._questions]
        cpu_seconds = used[VICTIMS] + used[ONE_VICTIM] * key.honest
        return Siege(
            key=key,
            commit=commit,
            code_executions=int(self._canary.exists()),
            crashes=0,
            verifier_restarts=len(self._restarts),
            wrong_answers_accepted=self._wrong,
            honest_groups_lost=0,
            honest_received=self._honest_received,
            hostile_received=self._received,
            hostile_trained_on=self._trained_on,
            refused=dict(self._refused),
            held_out=tuple(score.right / score.total for score in scores),
            trigger_rate=self._counts.share_showing("planted phrase"),
            costs=Costs(cpu_seconds=cpu_seconds / key.rounds, memory_mb=resident_bytes(os.getpid()) / 2**20, seconds=seconds),
            attacked=key.rounds if self._hostile else 0,
            played=key.rounds,
            target_share=self._counts.share_showing("chosen answers"),
            forbidden=self._verifier.forbidden,
            victims=self._counts.price(cpu_seconds, self._sent),
            attackers=AttackerPrice(answers=self._answers, sent_bytes=self._sent, cpu_seconds=used[ATTACKERS]),
        )

    def close(self) -> None:
        self._verifier.close()


def run_simulated_siege(
    key: SiegeKey, charter: Charter, questions: Sequence[Question], commit: str, report_progress: Callable[[int], None]
) -> Siege:
    """Run one siege; `report_progress` gets the number of rounds done."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        siege = SimulatedSiege(key, charter, questions, Path(folder))
        try:
            for number in range(key.rounds):
                siege.play(number)
                report_progress(number + 1)
            return siege.report(commit, time.monotonic() - began)
        finally:
            siege.close()
