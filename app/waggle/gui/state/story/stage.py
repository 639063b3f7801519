"""What stands on the stage of Live: a question of each round and what was learned from it, no faster than a person reads."""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf

import msgspec
from msgspec.structs import replace

from waggle.core.peer_id import BASE58
from waggle.gui.i18n.formatting import figure, listed, one_line, plural, tr
from waggle.gui.state.story.tries import judged_rounds
from waggle.protocol.events import PolicyUpdated, ShownGroup
from waggle.protocol.state import HALTED_PHASES, PEERS, Card, State

DWELL = 3.0  # seconds that a question stays at least
LINGER = 1.0  # seconds that it stays after the last hold: a pointer slips
SCENES = 120  # rounds that are remembered
NAMED = 3  # peers
ORIGIN_BYTES = 6  # of a peer id, with which the keys of its groups begin (engine/runtime/round_events.py)


class Teacher(msgspec.Struct, frozen=True):
    """A peer from whose groups was learned in a round. `example`: one of them, if its texts came along."""

    origin: str
    name: str
    datasets: tuple[str, ...]  # one for each group
    example: Card | None = None


class Scene(msgspec.Struct, frozen=True):
    """A judged round: its most telling question, and what was learned.

    `reward` is the mean over its local answers. `own`: of so many own questions was learned; None: the step has not come yet.
    """

    round: int
    card: Card
    reward: float
    others: tuple[Card, ...] = ()  # the other questions
    own: int | None = None
    teachers: tuple[Teacher, ...] = ()
    left_out: bool = False  # the step was not taken, because its numbers were not finite

    @property
    def taught(self) -> int:
        """The groups of peers from which was learned."""
        return sum(len(teacher.datasets) for teacher in self.teachers)


class Stage:
    """The scenes, and which of them is on. `take` may come at any time, `turn` while the stage is visible."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.scenes: dict[int, Scene] = {}  # by round, oldest first
        self.round: int | None = None  # on the stage
        self.rehearsal: Scene | None = None  # a question that is being answered, before any round is judged
        self.follows = True  # the newest; False: a person chose an earlier one
        self.why = ""  # why a newer question waits, in words: what the person does
        self._run: tuple[str, ...] = ()
        self._last: tuple[object, ...] = ()  # parts of the last State that count here
        self._turned = self._held_at = -inf

    @property
    def scene(self) -> Scene | None:
        return self.rehearsal if self.round is None else self.scenes.get(self.round)

    @property
    def newest(self) -> int | None:
        return next(reversed(self.scenes), None)

    @property
    def waiting(self) -> int:
        """How many rounds are newer than the one on the stage."""
        return sum(self.round is None or number > self.round for number in self.scenes)

    @property
    def is_held(self) -> bool:
        """Whether a newer question waits only because of what the person does."""
        return bool(self.follows and self.waiting and self.why) and self.clock() - self._turned >= DWELL

    def take(self, state: State) -> None:
        """Remember the rounds that are judged in this State."""
        parts = (state.cards, state.updates, state.rounds, state.ready, state.round, state.phase)
        if all(part is last for part, last in zip(parts, self._last, strict=False)) and self._last:
            return
        self._last = parts
        ready = state.ready
        run = (ready.charter, ready.base, ready.model) if ready else self._run
        if (self._run and run != self._run) or not state.cards:
            self.forget()
        self._run = run
        rounds = judged_rounds(state.cards)
        known = {number: scene for number, scene in self.scenes.items() if number <= state.round}  # it may have gone back
        known |= {n: scene_of(n, cards, state, known.get(n)) for n, cards in rounds.items() if n <= state.round}
        for number in sorted(known)[: max(0, len(known) - SCENES)]:
            if number != self.round:
                del known[number]
        self.scenes = {number: known[number] for number in sorted(known)}
        if self.round not in self.scenes:
            self.round = None
            self._rehearse(state)
            if self.rehearsal is None and self.scenes:
                self.go_to_newest()

    def _rehearse(self, state: State) -> None:
        """Follow the question that is being answered, or find one as long as no round is judged."""
        cards = [card for card in state.cards if card.mine and not card.by_hand and card.round == state.round]
        before = self.rehearsal
        if before is not None:
            cards = [card for card in cards if card.key == before.card.key]
        elif self.scenes:
            cards = []
        card = cards[0] if cards else None
        self.rehearsal = replace(self.scenes.get(card.round, Scene(card.round, card, 0.0)), card=card) if card else None
        if before is None:
            self._turned = self.clock()

    def turn(self, why: str) -> None:
        """Go to the newest round if it is time; `why` says what holds the present one, empty if nothing does."""
        now = self.clock()
        self.why = why
        if why:
            self._held_at = now
        if self.follows and self.waiting and now - self._turned >= DWELL and now - self._held_at >= LINGER:
            self.go_to_newest()

    def go_to(self, number: int) -> None:
        """Show this round, as a person chose; the newest is followed again."""
        if number in self.scenes:
            self.round, self.follows, self._turned = number, number == self.newest, self.clock()
            self.rehearsal = None

    def choose(self, key: str) -> None:
        """Show another question of the round that is on the stage."""
        scene = self.scene
        card = next((card for card in scene.others if card.key == key), None) if scene else None
        if scene is not None and card is not None:
            others = tuple(scene.card if each.key == key else each for each in scene.others)
            self.scenes[scene.round] = replace(scene, card=card, others=others)
            self.round, self._turned, self.rehearsal = scene.round, self.clock(), None

    def go_to_newest(self) -> None:
        self.round, self.follows, self._turned, self.rehearsal = self.newest, True, self.clock(), None

    def leave(self) -> None:
        """The stage is hidden: on return it shows the newest round, unless the person went back to an earlier one."""
        self._turned = self._held_at = -inf

    def forget(self) -> None:
        """Another model, swarm or recording: none of its rounds is here any more."""
        self.scenes, self.round, self.rehearsal, self.follows, self.why = {}, None, None, True, ""
        self._turned = self._held_at = -inf


def scene_of(number: int, cards: Sequence[Card], state: State, before: Scene | None) -> Scene:
    """The scene of a round from its judged cards, the most telling first; the question that was chosen `before` stays."""
    card = next((card for card in cards if before and card.key == before.card.key), None)
    if card is None:  # cards of older rounds are dropped one by one
        card = before.card if before and number < state.round else cards[0]
    others = tuple(each for each in cards if each.key != card.key)
    if before and len(before.others) > len(others):
        others = before.others
    rewards = {summary.round: summary.reward for summary in state.rounds}
    answers = [answer.reward for each in cards for answer in each.completions]
    judged = before.reward if before and number < state.round else sum(answers) / max(1, len(answers))
    scene = Scene(number, card, rewards.get(number, judged), others)
    if before is not None and before.own is not None and number < state.round:
        return replace(scene, own=before.own, teachers=before.teachers, left_out=before.left_out)
    step = next((update for update in reversed(state.updates) if update.round == number), None)
    if step is not None:
        return _with_lessons(scene, step, state)
    over = number < state.round or number in rewards
    return replace(scene, own=sum(any(each.effects) for each in cards)) if over else scene


def _with_lessons(scene: Scene, step: PolicyUpdated, state: State) -> Scene:
    """The scene after its step."""
    by_key = {card.key: card for card in state.cards}
    texts = {group.key: group for group in step.taught}
    peers = {beginning_of(peer.id): peer for peer in state.peers.values()}
    me = beginning_of(state.ready.node) if state.ready else ""
    own, teachers = 0, dict[str, Teacher]()
    for lesson in step.lessons:
        if not any(lesson.effects):
            continue
        beginning, _, rest = lesson.key.partition("/")
        card = by_key.get(lesson.key)
        if card.mine if card else beginning == me:
            own += 1
            continue
        peer = peers.get(beginning)
        origin = card.origin if card else peer.id if peer else beginning
        name = card.name if card else peer.name if peer else ""
        known = teachers.get(origin, Teacher(origin, name, ()))
        dataset = rest.partition("/")[0]
        sent = texts.get(lesson.key)
        example = known.example or card or (_card_of(sent, origin, name, step) if sent else None)
        teachers[origin] = replace(known, datasets=(*known.datasets, dataset), example=example)
    ranked = sorted(teachers.values(), key=lambda teacher: -len(teacher.datasets))
    return replace(scene, own=own, teachers=tuple(ranked), left_out=step.left_out == "not_finite")


def _card_of(group: ShownGroup, origin: str, name: str, step: PolicyUpdated) -> Card:
    """A peer's group that came along with the step."""
    return Card(
        key=group.key, origin=origin, name=name, round=step.round, at=step.at, specialty=group.specialty,
        question=group.question, completions=group.completions,
    )  # fmt: skip


@lru_cache(2 * PEERS)
def beginning_of(peer_id: str) -> str:
    """With what the keys of a peer's groups begin; empty for what is no peer id."""
    number = 0
    for sign in peer_id[:64]:
        digit = BASE58.find(sign)
        if digit < 0:
            return ""
        number = number * 58 + digit
    return (number % (1 << 8 * ORIGIN_BYTES)).to_bytes(ORIGIN_BYTES, "big").hex()


def lesson_words(scene: Scene, state: State) -> str:
    """What was learned in a round, and from whom, in one sentence."""
    answers = scene.card.completions
    if scene.own is None:
        if state.phase in ("contributing", "finishing") and not all(answer.judged for answer in answers):
            written = sum(answer.ended or answer.judged for answer in answers)
            return tr("%1 of %2 answers are written.").replace("%1", figure(written)).replace("%2", figure(len(answers)))
        if state.phase in HALTED_PHASES:
            return tr("Your model learns from this round when training resumes.")
        if state.phase in ("contributing", "finishing"):
            return tr("Your model learns from this round next.")
        return tr("This round was not finished.")
    if scene.left_out:
        return tr("Nothing was learned in this round: its step was left out.")
    own = plural(scene.own, "%n question of its own", "%n questions of its own")
    theirs = plural(scene.taught, "%n example from %1", "%n examples from %1").replace("%1", _names(scene.teachers))
    if scene.own and scene.taught:
        return tr("Your model learned from %1 and %2.").replace("%1", own).replace("%2", theirs)
    if scene.own or scene.taught:
        return tr("Your model learned from %1.").replace("%1", own if scene.own else theirs)
    return tr("Nothing to learn in this round: no answer stood out.")


def _names(teachers: Sequence[Teacher]) -> str:
    return listed([one_line(teacher.name) or tr("a peer") for teacher in teachers], NAMED)
