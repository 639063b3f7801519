"""What a class sees of its swarm: who is here, and what each computer found, as this node judged what it received."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from waggle.core.peer_id import peer_id_of, short_id
from waggle.network.identity.keys import name_of
from waggle.network.messages.events import GroupsArrived, NetworkEvent, PeerChanged
from waggle.network.web.training_status import TrainingStatus
from waggle.tasks.charter import Charter
from waggle.tasks.rollout_group import RIGHT, Completion, JudgedGroup, Verdict

PRESENT_S = 120.0  # how long a computer counts as here after its last sign of life: a lesson is short
MOST_MEMBERS = 500
LATEST = 16  # finds that are kept


@dataclass(frozen=True, kw_only=True)
class PupilStatus:
    """A computer of the class. `name` is what its person chose, or that of its key; others may have chosen the same.

    `right` are its right answers that came here; None for this node itself, whose answers need not travel.
    """

    name: str
    fingerprint: str
    right: int | None


@dataclass(frozen=True, kw_only=True)
class Find:
    """The first right answer of one computer in one specialty. `answer` is the true answer, or empty: it was written otherwise.

    `learned_from` is who had shown it one; None: nobody. Only this node knows that, and of itself.
    """

    by: PupilStatus
    specialty: str
    at: float  # unix seconds
    question: str = ""
    answer: str = ""
    learned_from: PupilStatus | None = None


@dataclass(frozen=True, kw_only=True)
class SpecialtyFinds:
    """How many of the class have found a right answer in one specialty, and who did first; None: nobody."""

    title: str
    finders: int
    first: PupilStatus | None


@dataclass(frozen=True, kw_only=True)
class ClassStatus:
    """The content of the page of a class. `answers`: those of others that came here, and of these the `right` ones.

    `link` is an invite, `page` the address of the page that gives it; each may be empty.
    """

    swarm: str
    pupils: tuple[PupilStatus, ...]
    answers: int
    right: int
    specialties: tuple[SpecialtyFinds, ...]
    latest: tuple[Find, ...]  # newest first
    link: str = ""
    page: str = ""


@dataclass
class _Member:
    """One peer. `first_right_at` has the moment of its first right answer by dataset."""

    chosen_name: str = ""
    answers: int = 0
    right: int = 0
    seen_at: float = 0.0
    hidden: bool = False  # the person muted or blocked it
    first_right_at: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Answer:
    origin: bytes
    dataset: str
    at: float
    question: str
    answer: str


class ClassStatistics:
    """Counts the node's news. Belongs to the event loop's thread. Its size is bounded, however many peers come."""

    def __init__(self, charter: Charter, clock: Callable[[], float] = time.time) -> None:
        self._charter, self._clock = charter, clock
        self._since = clock()
        self._members: dict[bytes, _Member] = {}
        self._latest = deque[_Answer](maxlen=LATEST)

    def add(self, news: NetworkEvent) -> None:
        """Count one event."""
        match news:
            case GroupsArrived():
                self._count(self._member(news.origin), news)
            case PeerChanged(peer=peer) if peer.id in self._members or peer.chosen_name:  # which only members have
                member = self._member(peer.id)
                member.chosen_name, member.hidden = peer.chosen_name, bool(peer.choice)
                member.seen_at = max(member.seen_at, peer.seen_at)
            case _:
                pass  # not about what was found

    def status(self, *, own_name: str, training: TrainingStatus | None, link: str = "", page: str = "") -> ClassStatus:
        """The current figures, with this node's own if it trains."""
        now = self._clock()
        visible = {origin: self._pupil(origin) for origin, member in self._members.items() if not member.hidden}
        mine = _own(own_name, training)
        here = [pupil for origin, pupil in visible.items() if now - self._members[origin].seen_at < PRESENT_S]
        finds = [
            Find(
                by=visible[each.origin],
                specialty=self._title(each.dataset),
                at=each.at,
                question=each.question,
                answer=each.answer,
            )
            for each in self._latest
            if each.origin in visible
        ]
        own_finds = self._own_finds(mine, training)
        return ClassStatus(
            swarm=self._charter.name,
            pupils=tuple(sorted([*here, *([mine] if mine else [])], key=lambda each: (each.name.casefold(), each.fingerprint))),
            answers=sum(member.answers for member in self._members.values()),
            right=sum(member.right for member in self._members.values()),
            specialties=tuple(
                self._specialty(each.dataset, each.title, visible, own_finds) for each in self._charter.specialties
            ),
            latest=tuple(sorted([*finds, *filter(self._is_new, own_finds)], key=lambda find: -find.at)[:LATEST]),
            link=link,
            page=page,
        )

    def _member(self, origin: bytes) -> _Member:
        if origin not in self._members and len(self._members) >= MOST_MEMBERS:
            del self._members[min(self._members, key=lambda each: self._members[each].seen_at)]
        return self._members.setdefault(origin, _Member())

    def _count(self, member: _Member, news: GroupsArrived) -> None:
        now = self._clock()
        member.seen_at = now
        for group in news.groups:
            right = _right_answers(group)
            member.answers += len(group.verdicts)
            member.right += len(right)
            dataset = group.question.dataset
            if right and dataset not in member.first_right_at:
                member.first_right_at[dataset] = now
                self._latest.append(_Answer(news.origin, dataset, now, group.question.text, _true_answer(right)))

    def _pupil(self, origin: bytes) -> PupilStatus:
        member = self._members[origin]
        return PupilStatus(name=member.chosen_name or name_of(origin), fingerprint=short_id(origin), right=member.right)

    def _title(self, dataset: str) -> str:
        return next((each.title for each in self._charter.specialties if each.dataset == dataset), dataset)

    def _own_finds(self, mine: PupilStatus | None, training: TrainingStatus | None) -> list[Find]:
        if mine is None or training is None:
            return []
        return [
            Find(by=mine, specialty=aha.specialty, at=aha.at, learned_from=self._teacher(aha.origin)) for aha in training.ahas
        ]

    def _teacher(self, origin: str) -> PupilStatus | None:
        """The peer with this id in base58; None without one."""
        if not origin:
            return None
        peer_id = peer_id_of(origin)
        member = self._members.get(peer_id)
        if member is not None and not member.hidden:
            return self._pupil(peer_id)
        return PupilStatus(name=name_of(peer_id), fingerprint=short_id(peer_id), right=None)

    def _specialty(self, dataset: str, title: str, visible: dict[bytes, PupilStatus], own: Iterable[Find]) -> SpecialtyFinds:
        moments = [
            (self._members[origin].first_right_at[dataset], pupil)
            for origin, pupil in visible.items()
            if dataset in self._members[origin].first_right_at
        ]
        mine = [find for find in own if find.specialty == title]
        moments += [(find.at, find.by) for find in filter(self._is_new, mine)]
        first = min(moments, key=lambda moment: moment[0], default=None)
        known = any(not self._is_new(find) for find in mine)
        return SpecialtyFinds(title=title, finders=len(moments) + known, first=first[1] if first else None)

    def _is_new(self, find: Find) -> bool:
        """Whether it was found here: what this node's model knew before counts, but it did not find it first."""
        return find.at >= self._since


def _own(name: str, training: TrainingStatus | None) -> PupilStatus | None:
    if training is None:
        return None
    return PupilStatus(name=name or training.name, fingerprint=training.fingerprint, right=None)


def _right_answers(group: JudgedGroup) -> list[tuple[Completion, Verdict]]:
    pairs = zip(group.group.completions, group.verdicts, strict=True)
    return [(completion, verdict) for completion, verdict in pairs if verdict.reward >= RIGHT]


def _true_answer(right: list[tuple[Completion, Verdict]]) -> str:
    """The true answer, where a completion has exactly this; else empty, because other words would be a stranger's."""
    return next((text.text[says.start : says.start + says.length] for text, says in right if says.exact), "")
