"""A small run as plain protocol events, for tests and pictures; a real recording is preferred if one exists."""

import math
import random
from collections.abc import Generator, Iterator
from pathlib import Path

from waggle.core import paths
from waggle.protocol import PROTOCOL, events, json_lines
from waggle.protocol.state import AnyEvent

REAL = paths.example()
START = 1_790_000_000.0
ROUND_SECONDS = 21.0
SPECIALTIES = (("simple_fractions", "Fractions"), ("base_conversion", "Base conversion"), ("chain_sum", "Chain sum"))
PEERS = (
    ("12D3KooWBriskOtter", "Brisk Otter", "direct", 18.0), ("12D3KooWCleverWren", "Clever Wren", "lan", 2.0),
    ("12D3KooWMossyBadger", "Mossy Badger", "direct", 34.0), ("12D3KooWTallJuniper", "Tall Juniper", "relay", 96.0),
    ("12D3KooWPatientFern", "Patient Fern", "direct", 41.0), ("12D3KooWRapidVole", "Rapid Vole", "relay", 121.0),
    ("12D3KooWSilverBirch", "Silver Birch", "direct", 27.0), ("12D3KooWHumbleNewt", "Humble Newt", "gone", None),
)  # fmt: skip
QUESTIONS = (
    ("Fractions", "Simplify the fraction 36/84.", "3/7"), ("Base conversion", "Write 27 in base 4.", "123"),
    ("Chain sum", "What is 17 + 48 - 9?", "56"), ("Fractions", "Simplify the fraction 18/45.", "2/5"),
)  # fmt: skip
THOUGHTS = ("Both divide, so it is ", "First the tens, then the ones: ", "", "I take it step by step.\nThe rest is ", "So ")
G = 8


def ready(**changes: object) -> events.Ready:
    """The Ready event of an engine."""
    values: dict[str, object] = {
        "protocol": PROTOCOL, "version": "0.1.0", "node": "12D3KooWAmberFinch", "name": "Amber Finch", "swarm": "Maths swarm",
        "charter": "ab" * 32, "specialties": tuple(events.SpecialtyInfo(dataset=d, title=t) for d, t in SPECIALTIES),
        "model": "Waggle starter, 4M", "backend": "torch", "device": "cpu", "device_reason": "No graphics processor was found.",
        "model_note": "A very small model made for Waggle: it knows the form of the puzzles and little else.",
        "threads": 2, "cores": 8, "round": 613, "completions": 39_168, "group_size": G, "parameters": 4_100_000,
    }  # fmt: skip
    return events.Ready(**{**values, **changes})  # type: ignore[arg-type]


def completion(chance: random.Random, truth: str, skill: float) -> events.ShownCompletion:
    """One judged text: right, wrong, without the tag, or cut off."""
    thought = chance.choice(THOUGHTS)
    if chance.random() < skill:
        text, reward, reason = f"{thought}<answer>{truth}</answer>", 1.0, "right"
    elif chance.random() < 0.5:
        wrong = str(chance.randint(2, 99))
        text, reward, reason = f"{thought}<answer>{wrong}</answer>", 0.0, f"wrong: {wrong}"
    elif chance.random() < 0.5:
        return events.ShownCompletion(text=f"{thought}{truth}.", judged=True, reason="no answer tag")
    else:
        text = "Both are even. Half of 36 is 18 and half of 84 is 42. Both are even again, so half of that is"
        return events.ShownCompletion(text=text, ended=False, judged=True, reason="cut off at 48 tokens")
    start = text.index("<answer>") + len("<answer>")
    length = len(text) - start - len("</answer>")
    return events.ShownCompletion(text=text, judged=True, reward=reward, reason=reason, start=start, length=length)


def groups(chance: random.Random, skill: float, prefix: str, count: int) -> tuple[events.ShownGroup, ...]:
    shown_groups = []
    for i in range(count):
        specialty, question, truth = QUESTIONS[i % len(QUESTIONS)]
        answers = tuple(completion(chance, truth, skill) for _ in range(G))
        shown_groups.append(events.ShownGroup(key=f"{prefix}/{i}", specialty=specialty, question=question, completions=answers))
    return tuple(shown_groups)


def skill_at(number: int) -> float:
    return 0.06 + 0.40 / (1 + math.exp(-(number - 700) / 30))


def lesson(group: events.ShownGroup, *, external: bool = False) -> events.Lesson:
    """The change of likelihood: up for completions better than their group; wrong ones of peers do not count."""
    mean = sum(answer.reward for answer in group.completions) / len(group.completions)
    spread = max(answer.reward for answer in group.completions) - min(answer.reward for answer in group.completions)
    signs = [0 if spread < 0.2 else 1 if answer.reward > mean else 0 if external else -1 for answer in group.completions]
    return events.Lesson(key=group.key, effects=tuple(signs))


class Run:
    """Writes a run: start, `rounds` whole rounds, and one more that is still answering."""

    def __init__(self, rounds: int = 200, first: int = 613, peers: int = len(PEERS)) -> None:
        self._rounds, self._first, self._peers = rounds, first, PEERS[:peers]
        self._chance = random.Random(7)
        self._at = START - ROUND_SECONDS * rounds

    def write(self, path: Path) -> Path:
        path.write_bytes(b"".join(json_lines.line(event) for event in self.all_events()))
        return path

    def all_events(self) -> Iterator[AnyEvent]:
        for number, event in enumerate(self._all(), 1):
            yield type(event)(
                **{**{name: getattr(event, name) for name in event.__struct_fields__}, "seq": number, "at": self._at}
            )

    def _all(self) -> Iterator[events.Event]:
        yield from self._start()
        for number in range(self._first, self._first + self._rounds):
            yield from self._round(number)
        yield from self._open_round(self._first + self._rounds)

    def _start(self) -> Iterator[events.Event]:
        parts = ("Looking at this computer", "Starting the judge", "Loading the model", "Reading the last checkpoint", "Joining")
        for done, part in enumerate(parts):
            self._at += 0.3
            yield events.Preparing(part=part, done=done, parts=len(parts))
        yield ready(round=self._first)
        yield events.PhaseChanged(phase="contributing", round=self._first)
        yield events.ReachChanged(
            reach="connected", peers=len(self._peers) - 1, address="/ip4/203.0.113.7/tcp/31330/p2p/12D3KooWAmberFinch"
        )
        older = tuple(self._summary(n, self._at - (self._first - n) * ROUND_SECONDS) for n in range(1, self._first, 4))
        scores = tuple(self._score(n, self._at - (self._first - n) * ROUND_SECONDS) for n in range(0, self._first, 50))
        yield events.TrainingHistory(rounds=older, held_out=scores)

    def _round(self, number: int) -> Iterator[events.Event]:
        skill = skill_at(number)
        mine = groups(self._chance, skill, f"me/{number}", 4)
        blank = tuple(events.ShownGroup(key=g.key, specialty=g.specialty, question=g.question) for g in mine)
        yield events.QuestionsDrawn(round=number, epoch=int(self._at // 600), groups=blank, group_size=G)
        self._at += ROUND_SECONDS * 0.5
        yield events.GroupsJudged(round=number, groups=mine)
        yield events.GroupsShared(round=number, groups=3, bytes=2210)
        theirs = [*(yield from self._peer(number, skill, 0)), *(yield from self._peer(number, skill, 1))]
        yield events.GroupsGathered(round=number, local=4, external=min(4, len(theirs)), waiting=23)
        self._at += ROUND_SECONDS * 0.5
        lessons = (*(lesson(g) for g in mine), *(lesson(g, external=True) for g in theirs[:1]))
        yield events.PolicyUpdated(round=number, step=number, metrics=events.Metrics(loss=0.02, entropy=0.8), lessons=lessons)
        yield events.RoundCompleted(summary=self._summary(number, self._at))
        if number % 50 == 0 or number == self._first + self._rounds - 1:
            yield events.HeldOutMeasured(score=self._score(number, self._at))
        yield events.CheckpointSaved(round=number, bytes=50_000_000)
        yield events.TrafficMeasured(up=3100.0, down=9200.0)

    def _peer(self, number: int, skill: float, turn: int) -> Generator[events.Event, None, tuple[events.ShownGroup, ...]]:
        if not self._peers:
            return ()
        place = (number + turn) % len(self._peers)
        identity, name, connection, delay = self._peers[place]
        sent = groups(self._chance, min(0.5, skill + 0.1), f"{identity}/{number}", 1)
        if connection != "gone":
            yield events.PeerGroupsArrived(origin=identity, name=name, round=number - 1, model="Waggle starter, 4M", groups=sent)
        known = number - self._first + 1
        yield events.PeerChanged(
            peer=events.PeerInfo(
                id=identity, name=name, connection=connection, model="Waggle starter, 4M", round=number + 40 - 60 * place,  # type: ignore[arg-type]
                received=known * 2 + 7 * place, useful=known, used=known * (8 - place) // 8,
                groups_pulled=known * (9 - place) // 3,
                rejected=3 if place == 6 else 0, mean_reward=skill * (1 - place / 20), delay_ms=delay,
                seen_at=self._at - 4 * place,
            )
        )  # fmt: skip
        return sent

    def _open_round(self, number: int) -> Iterator[events.Event]:
        full = groups(self._chance, 0.4, f"me/{number}", 4)
        blank = tuple(events.ShownGroup(key=g.key, specialty=g.specialty, question=g.question) for g in full)
        yield events.QuestionsDrawn(round=number, epoch=int(self._at // 600), groups=blank, group_size=G)
        rows = []
        for question, group in enumerate(full):
            for place, answer in enumerate(group.completions):
                ended = (question * G + place) % 11 != 0
                rows.append((question, place, answer.text if ended else answer.text[:24], ended))
        self._at += 4
        yield events.CompletionsProgress(round=number, rows=tuple(rows))

    def _summary(self, number: int, at: float) -> events.RoundSummary:
        skill = skill_at(number)
        noisy = min(1.0, max(0.0, skill + self._chance.gauss(0, 0.05)))
        return events.RoundSummary(
            round=number, at=at, reward=noisy, solved=noisy * 0.9, seconds=ROUND_SECONDS, completions=4 * G, tokens=870, local=4,
            external=4, waiting=23, external_reward=min(0.5, skill + 0.1) if self._peers else None,
            by_specialty={"Fractions": noisy}, metrics=events.Metrics(loss=0.02),
        )  # fmt: skip

    def _score(self, number: int, at: float) -> events.HeldOutScore:
        share = 0.10 + 0.28 / (1 + math.exp(-(number - 700) / 40))
        return events.HeldOutScore(round=number, at=at, right=round(share * 500 + self._chance.gauss(0, 6)), total=500)
