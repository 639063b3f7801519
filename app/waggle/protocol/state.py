"""The State a window shows, and the pure fold that makes it: apply(state, event) -> State.

Bounded: 200 rounds, 500 peers, 40 cards. Long charts come from a history query and are kept beside the recent rounds.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from waggle.core.settings import Settings
from waggle.protocol import events as e
from waggle.protocol import events_chat as k
from waggle.protocol import events_identity as p
from waggle.protocol import events_leaderboard as c
from waggle.protocol import events_models as m
from waggle.protocol import events_outbox as s
from waggle.protocol import events_playground as t
from waggle.protocol import events_swarms as g
from waggle.protocol.schedule import Decision

ROUNDS, PEERS, CARDS, SCORES, WARNINGS, MINUTES = 200, 500, 40, 400, 20, 30
SPECIALTIES = 64  # of the largest charter
REASONS = 64  # of refusals: more than there are, so that a damaged recording costs no memory

Stage = Literal["draw", "answer", "judge", "share", "gather", "learn"]
STAGES: tuple[Stage, ...] = ("draw", "answer", "judge", "share", "gather", "learn")
HELD: tuple[e.Phase, ...] = ("paused", "waiting")  # nothing moves, and it goes on from where it stands


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One question in the Live feed. `origin` is empty for this node's own; `effects` is empty until it was learned from.

    `by_hand`: it was answered on Try it and shared, and is no part of a round.
    """

    key: str
    origin: str = ""
    name: str = ""
    model: str = ""
    round: int
    at: float
    specialty: str
    question: str
    completions: tuple[e.ShownCompletion, ...]
    effects: tuple[int, ...] = ()
    by_hand: bool = False

    @property
    def mine(self) -> bool:
        return not self.origin


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a window, a tray or `waggle ctl` may say."""

    seq: int = 0
    at: float = 0.0
    service: bool = False  # no window started the engine, and none that looks at it takes it along
    phase: e.Phase = "preparing"
    phase_since: float = 0.0
    until: float | None = None
    decision: Decision | None = None  # None: the rules were not looked at yet
    settings: Settings | None = None
    after_restart: tuple[str, ...] = ()  # settings that wait for the engine's next start
    preparing: e.Preparing | None = None
    downloading: e.Downloading | None = None
    ready: e.Ready | None = None
    round: int = 0
    stage: Stage | None = None
    asked: int = 0  # questions this round
    answers_expected: int = 0
    answered: int = 0
    judged: int = 0
    shared: int = 0  # groups this round
    local: int = 0
    external: int = 0
    waiting: int = 0
    cards: tuple[Card, ...] = ()  # newest first
    rounds: tuple[e.RoundSummary, ...] = ()  # oldest first
    held_out: tuple[e.HeldOutScore, ...] = ()
    ahas: tuple[e.Aha, ...] = ()  # oldest first; at most one for each specialty of a charter
    history: tuple[e.RoundSummary, ...] = ()
    history_scores: tuple[e.HeldOutScore, ...] = ()
    rejected: int = 0  # records of peers that broke a rule, since the engine started
    # Refused since the engine started, by peer id and reason: records that broke a rule (the reason is an English phrase of
    # waggle.network), and groups of which nothing could be learned (the value of a sapo.selection.Reason).
    refusals: dict[str, dict[str, int]] = {}
    reach: e.Reach = "connecting"
    address: str = ""
    way: e.Way = ""
    seeds_tried: int = 0
    peers: dict[str, e.PeerInfo] = {}
    up: float = 0.0
    down: float = 0.0
    arrivals: tuple[tuple[int, int], ...] = ()  # unix minutes, and the groups of peers that came in each; oldest first
    saved_round: int | None = None
    sent: tuple[s.SentMessage, ...] | None = None  # None: nobody has asked
    problem: e.EngineFailed | None = None
    gone: e.EngineGone | None = None
    warnings: tuple[e.Warned, ...] = ()  # newest first
    swarms: g.SwarmsTold | None = None
    created: g.SwarmCreated | None = None
    looked: g.InviteRead | None = None
    invite: g.InviteWritten | None = None  # to the swarm of now
    compared: c.ModelsCompared | None = None
    days: p.DaysTold | None = None
    since: tuple[e.RoundSummary, ...] = ()  # rounds that are not in `days`; no clock tells which: it may be set back
    models: m.ModelsTold | None = None
    posed: t.QuestionPosed | None = None
    tried: t.QuestionAnswered | None = None
    offered: k.TalkOffered | None = None
    talk: tuple[k.Turn, ...] = ()
    exported: m.ModelExported | None = None
    backup: p.BackupWritten | p.BackupRead | None = None  # what was last heard of one

    @property
    def members(self) -> tuple[e.PeerInfo, ...]:
        """Peers that train with this node now: connected, not blocked, and groups went one way or the other."""
        return tuple(
            peer
            for peer in self.peers.values()
            if (peer.received or peer.taken)  # seeds train nothing
            and not (peer.connection == "gone" or peer.choice == "blocked")
        )


class Snapshot(e.Event, frozen=True, kw_only=True, tag=True):
    """The whole State, for whoever attaches later."""

    state: State


AnyEvent = (
    e.EngineEvent
    | c.ComparingEvent
    | g.GatheringEvent
    | p.PersonEvent
    | m.ModelEvent
    | t.TryingEvent
    | k.TalkEvent
    | s.SentTold
    | Snapshot
)


def apply(state: State, event: AnyEvent) -> State:
    """The State after an event. Pure and total: an event that does not matter to a State only moves its clock."""
    moved = replace(state, seq=event.seq or state.seq, at=event.at or state.at)
    match event:
        case Snapshot():  # of an engine, which remembers no conversation
            return replace(event.state, talk=event.state.talk or state.talk, offered=event.state.offered or state.offered)
        case e.Preparing():
            begun = _left_alone(moved) if state.phase in ("problem", "stopped") else moved  # by another process
            service = state.service and begun is moved
            return replace(begun, service=service, phase="preparing", preparing=event, downloading=None, problem=None, gone=None)
        case e.Downloading():
            return replace(moved, downloading=event)
        case e.Ready():
            if state.ready is not None and (state.ready.base, state.ready.model) != (event.base, event.model):
                # what is known of a model is of that one alone, and what it answered was its own
                cards = tuple(card for card in state.cards if not card.mine or card.by_hand)
                moved = replace(
                    moved, talk=(), rounds=(), history=(), held_out=(), history_scores=(), ahas=(), saved_round=None, cards=cards
                )  # fmt: skip
            moved = replace(
                moved, rejected=0, refusals={}, preparing=None, downloading=None, problem=None, gone=None, offered=None
            )
            return replace(_gone_back(moved, event.round), ready=event, round=event.round)
        case e.PhaseChanged():
            return replace(moved, phase=event.phase, phase_since=event.at, until=event.until, round=event.round)
        case e.RulesChecked():
            return replace(moved, decision=event.decision)
        case e.SettingsChanged():
            return replace(moved, settings=event.settings, after_restart=event.after_restart)
        case e.EngineFailed():
            return replace(moved, phase="problem", phase_since=event.at, problem=event, stage=None)
        case e.EngineStopped():
            return replace(moved, phase="stopped", phase_since=event.at, stage=None)
        case e.EngineGone():
            return replace(_left_alone(moved), phase="problem", phase_since=event.at, gone=event)
        case e.Warned():
            return replace(moved, warnings=(event, *state.warnings)[:WARNINGS])
        case e.CheckpointSetAside():
            warned = e.Warned(
                at=event.at, title=f"A saved state could not be read: {event.reason}", advice="The one before it was used."
            )
            return replace(moved, warnings=(warned, *state.warnings)[:WARNINGS])
        case s.SentTold():
            return replace(moved, sent=event.messages)
        case k.TurnGrew():
            return replace(moved, talk=(*state.talk[: event.number], event.turn)[: k.TURNS])
        case k.TalkCleared():
            return replace(moved, talk=())
        case k.TalkOffered():
            return replace(moved, offered=event)
        case e.CheckpointSaved():
            return replace(moved, saved_round=event.round)
        case _:
            return _apply_swarm(_apply_round(moved, event), event)


def _apply_round(state: State, event: AnyEvent) -> State:
    match event:
        case e.QuestionsDrawn():
            blank = tuple(e.ShownCompletion(text="", ended=False) for _ in range(event.group_size))
            cards = tuple(_own_card(group, event.round, event.at, blank) for group in event.groups)
            before = tuple(card for card in state.cards if not _of_round(card, event.round))  # it may be drawn again
            return replace(
                state,
                round=event.round,
                stage="answer",
                asked=len(event.groups),
                answers_expected=len(event.groups) * event.group_size,
                answered=0,
                judged=0,
                shared=0,
                local=0,
                external=0,
                cards=_newest(cards, before, len(event.groups)),
            )
        case e.CompletionsGrew():
            return _grow(state, event)
        case e.GroupsJudged():
            judged = {group.key: group for group in event.groups}
            cards = tuple(
                replace(card, completions=judged[card.key].completions) if card.key in judged else card for card in state.cards
            )
            count = sum(len(group.completions) for group in event.groups)
            return replace(state, stage="share", answered=count, judged=count, cards=cards)
        case e.GroupsShared():
            return replace(state, stage="gather", shared=event.groups)
        case e.GroupsGathered():
            refusals = _with_refusals(state.refusals, event.refused_by_peer)
            return replace(
                state, stage="learn", local=event.local, external=event.external, waiting=event.waiting, refusals=refusals
            )
        case e.PolicyUpdated():
            lessons = {lesson.key: lesson.effects for lesson in event.lessons}
            cards = tuple(replace(card, effects=lessons[card.key]) if card.key in lessons else card for card in state.cards)
            return replace(state, cards=cards)
        case e.RoundCompleted():
            return _complete(state, event.summary)
        case e.HeldOutMeasured():
            return replace(state, held_out=(*state.held_out, event.score)[-SCORES:])
        case e.AhaHappened():
            return replace(state, ahas=(*state.ahas, event.aha)[-SPECIALTIES:])
        case e.HistoryTold():
            return replace(state, history=event.rounds, history_scores=event.held_out, ahas=event.ahas or state.ahas)
        case _:
            return state


def _apply_swarm(state: State, event: AnyEvent) -> State:
    match event:
        case e.ReachChanged():
            address = event.address or state.address
            return replace(state, reach=event.reach, seeds_tried=event.tried, address=address, way=event.way)
        case e.PeerChanged():
            peers = {**state.peers, event.peer.id: event.peer}
            if len(peers) > PEERS:
                del peers[min(peers, key=lambda known: (bool(peers[known].choice), peers[known].seen_at))]
            return replace(state, peers=peers)
        case e.PeerGroupsArrived():
            cards = tuple(
                Card(
                    key=group.key,
                    origin=event.origin,
                    name=event.name,
                    model=event.model,
                    round=event.round,
                    at=event.at,
                    specialty=group.specialty,
                    question=group.question,
                    completions=group.completions,
                )
                for group in event.groups
            )
            return replace(state, cards=_newest(cards, state.cards, state.asked), arrivals=_arrived(state, event))
        case g.SwarmsTold() | g.SwarmCreated() | g.InviteRead() | g.InviteWritten() | g.StartedAgain():
            return _apply_gathering(state, event)
        case c.ModelsCompared():
            return replace(state, compared=event)
        case t.QuestionPosed():
            return replace(state, posed=event)
        case t.QuestionAnswered():
            return replace(state, tried=event)
        case t.AnswerShared():
            return replace(state, cards=_newest((_card_by_hand(event),), state.cards, state.asked))
        case m.ModelsTold():
            return replace(state, models=event)
        case m.ModelExported():
            return replace(state, exported=event)
        case p.DaysTold():
            return replace(state, days=event, since=_behind(state, event.newest))
        case p.BackupWritten() | p.BackupRead():
            return replace(state, backup=event)
        case e.RecordRejected():
            refusals = _with_refusals(state.refusals, {event.origin: {event.reason: event.count}})
            return replace(state, rejected=state.rejected + 1, refusals=refusals)
        case e.TrafficMeasured():
            return replace(state, up=event.up, down=event.down)
        case _:
            return state


def _apply_gathering(state: State, event: g.GatheringEvent) -> State:
    match event:
        case g.SwarmsTold():
            return replace(state, swarms=event)
        case g.SwarmCreated():
            return replace(state, created=event)
        case g.InviteRead():
            return replace(state, looked=event)
        case g.InviteWritten():
            return replace(state, invite=event)
        case g.StartedAgain():  # others are there, and what they asked and answered is not what is asked here
            return replace(
                _left_alone(state), phase="preparing", phase_since=event.at, cards=(), peers={}, refusals={}, compared=None,
                arrivals=(), posed=None, tried=None,
            )  # fmt: skip


def _gone_back(state: State, number: int) -> State:
    """Without what a model did that is no more: an earlier state of it goes on from this round, or a new one from 0."""
    return replace(
        state,
        rounds=tuple(entry for entry in state.rounds if entry.round < number),
        history=tuple(entry for entry in state.history if entry.round < number),
        held_out=tuple(entry for entry in state.held_out if entry.round <= number),
        history_scores=tuple(entry for entry in state.history_scores if entry.round <= number),
        ahas=state.ahas if number else (),
    )


def _left_alone(state: State) -> State:
    """Without what an engine is connected to and in the middle of. Whom it met and what it finished stays known."""
    cards = (
        card for card in state.cards if not card.mine or card.by_hand or any(completion.judged for completion in card.completions)
    )
    return replace(
        state, until=None, preparing=None, downloading=None, stage=None, asked=0, answers_expected=0, answered=0, judged=0,
        shared=0, local=0, external=0, waiting=0, reach="connecting", address="", way="", seeds_tried=0, up=0.0, down=0.0,
        invite=None, looked=None, cards=tuple(cards),
        peers={name: replace(peer, connection="gone") for name, peer in state.peers.items()},
    )  # fmt: skip


def _own_card(group: e.ShownGroup, number: int, at: float, blank: tuple[e.ShownCompletion, ...]) -> Card:
    return Card(key=group.key, round=number, at=at, specialty=group.specialty, question=group.question, completions=blank)


def _arrived(state: State, event: e.PeerGroupsArrived) -> tuple[tuple[int, int], ...]:
    minute, count = int(event.at // 60), len(event.groups) + event.more
    known = state.arrivals
    if known and known[-1][0] == minute:
        return (*known[:-1], (minute, known[-1][1] + count))
    return (*known, (minute, count))[-MINUTES:]


def _with_refusals(known: dict[str, dict[str, int]], added: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The counts with more of them. The peers whose last refusal is longest ago make room."""
    refusals = dict(known)
    for peer, counts in added.items():
        by_reason = dict(refusals.pop(peer, {}))
        for reason, count in counts.items():
            if reason in by_reason or len(by_reason) < REASONS:
                by_reason[reason] = by_reason.get(reason, 0) + count
        refusals[peer] = by_reason
    return dict(list(refusals.items())[-PEERS:])


def _card_by_hand(event: t.AnswerShared) -> Card:
    group = event.group
    return Card(
        key=group.key, round=event.round, at=event.at, specialty=group.specialty, question=group.question,
        completions=group.completions, by_hand=True,
    )  # fmt: skip


def _newest(added: tuple[Card, ...], cards: tuple[Card, ...], questions: int) -> tuple[Card, ...]:
    """Own cards and peers' cards each keep half of the room, so that a lively swarm never pushes out one's own.

    Of a large round all are kept, and as many others: what is answered is counted on its cards.
    """
    kept_cards: list[Card] = []
    room = {True: max(CARDS // 2, 2 * questions), False: CARDS // 2}
    for card in (*added, *cards):
        if room[card.mine] > 0:
            room[card.mine] -= 1
            kept_cards.append(card)
    return tuple(kept_cards)


def _of_round(card: Card, number: int) -> bool:
    return card.mine and not card.by_hand and card.round == number


def _grow(state: State, event: e.CompletionsGrew) -> State:
    own = [i for i, card in enumerate(state.cards) if _of_round(card, event.round)]
    cards = list(state.cards)
    for question, completion, text, ended in event.rows:
        if not (0 <= question < len(own) and 0 <= completion < len(cards[own[question]].completions)):
            continue
        card = cards[own[question]]
        grown = list(card.completions)
        grown[completion] = e.ShownCompletion(text=text, ended=ended)
        cards[own[question]] = replace(card, completions=tuple(grown))
    answered = sum(completion.ended for i in own for completion in cards[i].completions)
    stage: Stage = "judge" if answered and answered == state.answers_expected else "answer"
    return replace(state, cards=tuple(cards), answered=answered, stage=stage)


def _behind(state: State, newest: tuple[int, float] | None) -> tuple[e.RoundSummary, ...]:
    """The rounds that ended while the days were counted, of which this was the newest: all, where nothing new was counted."""
    counted = [state.days.newest if state.days else None, *((summary.round, summary.at) for summary in state.since)]
    return state.since[counted.index(newest) :] if newest in counted and newest else ()


def _complete(state: State, summary: e.RoundSummary) -> State:
    rounds = (*state.rounds, summary)[-ROUNDS:]
    counted = state.days is not None and state.days.newest == (summary.round, summary.at)
    since = state.since if counted else (*state.since, summary)[-ROUNDS:]
    return replace(state, round=summary.round + 1, stage="draw", rounds=rounds, since=since, waiting=summary.waiting)
