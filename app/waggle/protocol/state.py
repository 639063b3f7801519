"""The State that a window shows, and `apply`, the pure function that folds an event into it.

The State is bounded. Long charts come from QueryHistory, and stand beside the recent rounds.
"""

from functools import cached_property
from typing import Literal

import msgspec
from msgspec.structs import replace

from waggle.core.message import Message
from waggle.core.settings import Settings
from waggle.protocol import (
    events,
    events_chat,
    events_guards,
    events_identity,
    events_leaderboard,
    events_models,
    events_outbox,
    events_playground,
    events_questions,
    events_swarms,
    peer_names,
)
from waggle.protocol.schedule import ScheduleDecision

RECALLED = 20  # rounds: as many as a diagnosis needs
ROUNDS, PEERS, CARDS, SCORES, WARNINGS, MINUTES = 200, 500, 40, 400, 20, 30
UPDATES = 8  # optimizer steps: those of the rounds whose cards are here
SPECIALTIES = 64  # the most that a charter has
PREVIEWS = 8  # a window creates a swarm from at most four files, and waits for two answers about each
REASONS = 64  # of refusals: more than there are, so that a damaged recording costs no memory

Stage = Literal["draw", "answer", "judge", "share", "gather", "learn"]
STAGES: tuple[Stage, ...] = ("draw", "answer", "judge", "share", "gather", "learn")
HALTED_PHASES: tuple[events.Phase, ...] = ("paused", "waiting")  # the round stands still, and will continue where it is


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One group on the page Live. `origin` is empty for a local group, `effects` until it is trained on.

    `by_hand`: a person answered it on the playground and shared it; it is not part of a round.
    """

    key: str
    origin: str = ""
    name: str = ""
    model: str = ""
    round: int
    at: float
    specialty: str
    question: str
    completions: tuple[events.ShownCompletion, ...]
    effects: tuple[int, ...] = ()
    by_hand: bool = False
    truth: str = ""  # a right answer, where no completion has one and it is known

    @property
    def mine(self) -> bool:
        return not self.origin


def trains_with(peer: events.PeerInfo) -> bool:
    """Whether this node learns from a connected peer, or the peer from it.

    A blocked peer does neither, and this node learns nothing from a muted one.
    """
    return bool((peer.received and not peer.choice) or (peer.groups_pulled and peer.choice != "blocked"))


class State(msgspec.Struct, frozen=True, kw_only=True, dict=True):  # dict: for what is counted once, in swarms of hundreds
    """Everything that a window, a tray or `waggle ctl` may show."""

    seq: int = 0
    at: float = 0.0
    service: bool = False  # the engine runs without a window, and keeps running when an attached one closes
    phase: events.Phase = "preparing"
    phase_since: float = 0.0
    until: float | None = None
    decision: ScheduleDecision | None = None  # None: not decided yet
    settings: Settings | None = None
    after_restart: tuple[str, ...] = ()  # settings that wait for the engine's next start
    preparing: events.Preparing | None = None
    downloading: events.Downloading | None = None
    ready: events.Ready | None = None
    round: int = 0
    stage: Stage | None = None
    questions_drawn: int = msgspec.field(default=0, name="asked")  # this round
    shares: tuple[events.QuestionShare, ...] = ()  # by which this round's questions were drawn
    answers_expected: int = 0
    answered: int = 0
    judged: int = 0
    shared: int = 0  # groups this round
    local: int = 0
    external: int = 0
    waiting: int = 0
    cards: tuple[Card, ...] = ()  # newest first
    updates: tuple[events.PolicyUpdated, ...] = ()  # the last optimizer steps, and what each learned from; oldest first
    rounds: tuple[events.RoundSummary, ...] = ()  # oldest first
    recalled: tuple[events.RoundSummary, ...] = ()  # the last rounds before the engine started, oldest first
    recalled_score: events.HeldOutScore | None = None  # the newest before the engine started
    held_out: tuple[events.HeldOutScore, ...] = ()
    test: events.HeldOutProgress | None = None  # of the test under way; None: there is none, or nothing is answered yet
    ahas: tuple[events.Aha, ...] = ()  # oldest first; at most one for each specialty of a charter
    history: tuple[events.RoundSummary, ...] = ()
    history_scores: tuple[events.HeldOutScore, ...] = ()
    rejected: int = 0  # records of peers that broke a rule, since the engine started
    # Refused since the engine started, by peer id and reason: records that broke a rule (the value of a
    # waggle.network.messages.faults.Fault), and groups of which nothing could be learned (the value of a sapo.selection.Reason).
    refusals: dict[str, dict[str, int]] = {}
    reach: events.Reach = "connecting"
    address: str = ""
    way: events.Way = ""
    seeds_tried: int = 0
    peers: dict[str, events.PeerInfo] = {}
    up: float = 0.0
    down: float = 0.0
    load: events.LoadMeasured | None = None  # None: not measured yet
    awake: events.KeptAwake | None = None  # None: the system may sleep, as it was not asked for anything else
    energy: events.EnergyCounted | None = None  # of the engine's day; None: not counted yet
    arrivals: tuple[tuple[int, int], ...] = ()  # (unix minute, external groups received in it), oldest first
    saved_round: int | None = None
    sent: tuple[events_outbox.SentMessage, ...] | None = None  # None: not queried yet
    problem: events.EngineFailed | None = None
    gone: events.EngineGone | None = None
    warnings: tuple[events.Warned, ...] = ()  # newest first
    guards: tuple[events_guards.Guard, ...] = ()  # what holds something back for more than a minute
    swarms: events_swarms.KnownSwarms | None = None
    undecided: events_swarms.SwarmUndecided | None = None  # a person has to choose a swarm; None: nothing to choose
    created: events_swarms.SwarmCreated | None = None
    looked: events_swarms.InviteRead | None = None
    rounds_read: events.RoundsRead | None = None  # the last that were asked for
    runs: tuple[events.TrainingRun, ...] | None = None  # of other models, newest first; None: not queried yet
    invite: events_swarms.InviteWritten | None = None  # to the current swarm
    previews: tuple[events_questions.QuestionsPreviewed, ...] = ()  # of files of questions, newest first
    compared: events_leaderboard.ModelsCompared | None = None
    days: events_identity.DailyTotals | None = None
    since: tuple[events.RoundSummary, ...] = ()  # rounds not in `days`; by their order, as a clock may be set back
    models: events_models.ModelList | None = None
    hub_results: events_models.HubResults | None = None
    choice: events_models.ModelChoice | None = None  # under way, or failed
    posed: events_playground.QuestionPosed | None = None
    tried: events_playground.QuestionAnswered | None = None
    offered: events_chat.ChatOffer | None = None
    talk: tuple[events_chat.Turn, ...] = ()
    exported: events_models.ModelExported | None = None
    changed: events_models.ModelChanged | None = None  # a person has to decide; None: nothing to decide
    unavailable: events_models.ModelUnavailable | None = None  # the chosen model cannot be had: a person may choose another
    backup: events_identity.BackupWritten | events_identity.BackupRead | None = None  # the last event about one

    @cached_property
    def connected(self) -> tuple[events.PeerInfo, ...]:
        """The peers that are connected now: nobody without a running engine, whatever its last event said."""
        runs = self.phase not in ("problem", "stopped")
        return tuple(peer for peer in self.peers.values() if runs and peer.connection != "gone")

    @cached_property
    def members(self) -> tuple[events.PeerInfo, ...]:
        """The peers that train with this node: connected, and learning from it or it from them. Seeds train nothing."""
        return tuple(filter(trains_with, self.connected))

    @cached_property
    def takers(self) -> tuple[events.PeerInfo, ...]:
        """The members that have fetched answers of this node."""
        return tuple(peer for peer in self.members if peer.groups_pulled)

    @property
    def utc_offset(self) -> int | None:
        """Seconds by which the time of day where the engine runs is ahead of UTC; None: not known yet."""
        if self.decision is not None and self.decision.utc_offset is not None:
            return self.decision.utc_offset
        return self.days.utc_offset if self.days is not None else None

    @property
    def takes_first_test(self) -> bool:
        """Whether the model answers the questions of the test before its first round."""
        return self.phase == "contributing" and self.test is not None and not self.round and self.stage is None

    @property
    def waits_for_choice(self) -> bool:
        """Whether a person has to choose the model or the swarm before the engine keeps running."""
        questions = (self.changed, self.undecided, self.unavailable)
        return self.phase == "preparing" and any(question is not None for question in questions)


class Snapshot(events.Event, frozen=True, kw_only=True, tag=True):
    """The whole State, for a client that connects later."""

    state: State


AnyEvent = (
    events.EngineEvent
    | events_leaderboard.ComparingEvent
    | events_swarms.SwarmEvent
    | events_questions.QuestionsEvent
    | events_identity.PersonEvent
    | events_models.ModelEvent
    | events_playground.PlaygroundEvent
    | events_chat.ChatEvent
    | events_outbox.SentMessages
    | events_guards.GuardsChanged
    | Snapshot
)


def apply(state: State, event: AnyEvent) -> State:
    """The State after an event. An event that does not concern the State changes its `seq` and `at` only."""
    moved = replace(state, seq=event.seq or state.seq, at=event.at or state.at)
    match event:
        case Snapshot():  # an engine stores no conversation, so keep the window's own
            return replace(event.state, talk=event.state.talk or state.talk, offered=event.state.offered or state.offered)
        case events.Preparing():
            fresh = _without_engine(moved) if state.phase in ("problem", "stopped") else moved  # a new process
            service = state.service and fresh is moved
            if state.ready is None and state.waits_for_choice:  # the history may be that of a model that was not chosen
                fresh = replace(fresh, history=(), history_scores=(), ahas=())
            fresh = replace(fresh, downloading=None, problem=None, gone=None, changed=None, undecided=None, unavailable=None)
            return replace(fresh, service=service, phase="preparing", preparing=event)
        case events.Downloading():
            return replace(moved, downloading=event, unavailable=None)
        case events.Ready():
            if state.ready is not None and (state.ready.base, state.ready.model) != (event.base, event.model):
                # another model: the history and the local completions are not its own
                cards = tuple(card for card in state.cards if not card.mine or card.by_hand)
                moved = replace(
                    moved, talk=(), rounds=(), history=(), held_out=(), history_scores=(), ahas=(), saved_round=None, cards=cards,
                    shares=(), updates=(),
                )  # fmt: skip
            moved = replace(
                moved, rejected=0, refusals={}, preparing=None, downloading=None, problem=None, gone=None, offered=None,
                recalled=(), recalled_score=None,
            )  # fmt: skip
            return replace(_rewind_to(moved, event.round), ready=event, round=event.round)
        case events.AnswersLengthened():
            return replace(moved, ready=msgspec.structs.replace(state.ready, answer_length=event.length) if state.ready else None)
        case events.PhaseChanged():
            return replace(moved, phase=event.phase, phase_since=event.at, until=event.until, round=event.round)
        case events.RulesChecked():
            return replace(moved, decision=event.decision)
        case events.SettingsChanged():
            return replace(moved, settings=event.settings, after_restart=event.after_restart)
        case events.EngineFailed():
            return replace(moved, phase="problem", phase_since=event.at, problem=event, stage=None, choice=_settled_choice(state))
        case events.EngineStopped():
            return replace(moved, phase="stopped", phase_since=event.at, stage=None, choice=_settled_choice(state))
        case events.EngineGone():
            gone = replace(_without_engine(moved), choice=_settled_choice(state))
            return replace(gone, phase="problem", phase_since=event.at, gone=event)
        case events.Warned():
            return replace(moved, warnings=(event, *state.warnings)[:WARNINGS])
        case events_guards.GuardsChanged():
            return replace(moved, guards=event.guards)
        case events.CheckpointSetAside():
            warned = events.Warned(
                at=event.at,
                title=Message("A saved state could not be read: %1", event.reason),
                advice=Message("The one before it was used."),
            )
            return replace(moved, warnings=(warned, *state.warnings)[:WARNINGS])
        case events_outbox.SentMessages():
            return replace(moved, sent=event.messages)
        case events_chat.TurnProgress():
            return replace(moved, talk=(*state.talk[: event.number], event.turn)[: events_chat.TURNS])
        case events_chat.ChatCleared():
            return replace(moved, talk=())
        case events_chat.ChatOffer():
            return replace(moved, offered=event)
        case events.CheckpointSaved():
            return replace(moved, saved_round=event.round)
        case _:
            return _apply_swarm(_apply_round(moved, event), event)


def _apply_round(state: State, event: AnyEvent) -> State:
    match event:
        case events.QuestionsDrawn():
            blank = tuple(events.ShownCompletion(text="", ended=False) for _ in range(event.group_size))
            cards = tuple(_local_card(group, event.round, event.at, blank) for group in event.groups)
            before = tuple(card for card in state.cards if not _of_round(card, event.round))  # a round may be drawn again
            return replace(
                state,
                round=event.round,
                stage="answer",
                test=None,
                questions_drawn=len(event.groups),
                shares=event.shares[:SPECIALTIES],
                answers_expected=len(event.groups) * event.group_size,
                answered=0,
                judged=0,
                shared=0,
                local=0,
                external=0,
                cards=_newest(cards, before, len(event.groups)),
            )
        case events.CompletionsProgress():
            return _grow_completions(state, event)
        case events.GroupsJudged():
            judged = {group.key: group for group in event.groups}
            cards = tuple(
                replace(card, completions=judged[card.key].completions, truth=judged[card.key].truth)
                if card.key in judged
                else card
                for card in state.cards
            )
            count = sum(len(group.completions) for group in event.groups)
            return replace(state, stage="share", answered=count, judged=count, cards=cards)
        case events.GroupsShared():
            return replace(state, stage="gather", shared=event.groups)
        case events.GroupsGathered():
            refusals = _with_refusals(state.refusals, event.refused_by_peer)
            return replace(
                state, stage="learn", local=event.local, external=event.external, waiting=event.waiting, refusals=refusals
            )
        case events.PolicyUpdated():
            lessons = {lesson.key: lesson.effects for lesson in event.lessons}
            cards = tuple(replace(card, effects=lessons[card.key]) if card.key in lessons else card for card in state.cards)
            return replace(state, cards=cards, updates=(*state.updates, event)[-UPDATES:])
        case events.RoundsRecalled():
            return replace(state, recalled=event.rounds[-RECALLED:], recalled_score=event.score)
        case events.RoundCompleted():
            return _complete_round(state, event.summary)
        case events.HeldOutMeasured():
            return replace(state, held_out=(*state.held_out, event.score)[-SCORES:], test=None)
        case events.HeldOutProgress():
            return replace(state, test=event)
        case events.AhaHappened():
            return replace(state, ahas=(*state.ahas, peer_names.of_aha(event.aha, state.peers))[-SPECIALTIES:])
        case events.RoundsRead():
            return replace(state, rounds_read=event)
        case events.RunsRead():
            return replace(state, runs=event.runs)
        case events.TrainingHistory():
            ahas = tuple(peer_names.of_aha(aha, state.peers) for aha in event.ahas)
            return replace(state, history=event.rounds, history_scores=event.held_out, ahas=ahas or state.ahas)
        case _:
            return state


def _apply_swarm(state: State, event: AnyEvent) -> State:
    match event:
        case events.ReachChanged():
            address = event.address or state.address
            return replace(state, reach=event.reach, seeds_tried=event.tried, address=address, way=event.way)
        case events.PeerChanged():
            peers = {**state.peers, event.peer.id: event.peer}
            if len(peers) > PEERS:
                del peers[min(peers, key=lambda known: (bool(peers[known].choice), peers[known].seen_at))]
            return _renamed(replace(state, peers=peers), event.peer)
        case events.PeerGroupsArrived():
            cards = tuple(
                Card(
                    key=group.key,
                    origin=event.origin,
                    name=peer_names.name_in(state.peers, event.origin, event.name),
                    model=event.model,
                    round=event.round,
                    at=event.at,
                    specialty=group.specialty,
                    question=group.question,
                    completions=group.completions,
                )
                for group in event.groups
            )
            return replace(
                state, cards=_newest(cards, state.cards, state.questions_drawn), arrivals=_count_arrivals(state, event)
            )
        case (
            events_swarms.SwarmUndecided()
            | events_swarms.KnownSwarms()
            | events_swarms.SwarmCreated()
            | events_swarms.InviteRead()
            | events_swarms.InviteWritten()
            | events_swarms.StartedAgain()
        ):
            return _apply_swarm_list(state, event)
        case events_questions.QuestionsPreviewed():
            return replace(state, previews=(event, *state.previews)[:PREVIEWS])
        case events_leaderboard.ModelsCompared():
            return replace(state, compared=peer_names.of_comparison(event, state.peers))
        case events_playground.QuestionPosed():
            return replace(state, posed=event)
        case events_playground.QuestionAnswered():
            return replace(state, tried=event)
        case events_playground.AnswerShared():
            return replace(state, cards=_newest((_card_by_hand(event),), state.cards, state.questions_drawn))
        case events_models.ModelList():
            return replace(state, models=event)
        case events_models.HubResults():
            return replace(state, hub_results=event)
        case events_models.ModelChoice():
            return replace(state, choice=None if event.stage == "ended" else event)
        case events_models.ModelExported():
            return replace(state, exported=event)
        case events_models.ModelChanged():
            return replace(state, changed=event)
        case events_models.ModelUnavailable():
            return replace(state, unavailable=event)
        case events_identity.DailyTotals():
            return replace(state, days=event, since=_rounds_after(state, event.newest))
        case events_identity.BackupWritten() | events_identity.BackupRead():
            return replace(state, backup=event)
        case events.RecordRejected():
            refusals = _with_refusals(state.refusals, {event.origin: {event.reason: event.count}})
            return replace(state, rejected=state.rejected + 1, refusals=refusals)
        case events.TrafficMeasured():
            return replace(state, up=event.up, down=event.down)
        case events.LoadMeasured():
            return replace(state, load=event)
        case events.KeptAwake():
            return replace(state, awake=event if event.holds or event.trouble else None)
        case events.EnergyCounted():
            return replace(state, energy=event)
        case _:
            return state


def _renamed(state: State, peer: events.PeerInfo) -> State:
    """The State with the present name of a peer wherever it stands: a chosen name is known only after its first message."""
    if any(card.origin == peer.id and card.name != peer.name for card in state.cards):
        cards = (replace(card, name=peer.name) if card.origin == peer.id else card for card in state.cards)
        state = replace(state, cards=tuple(cards))
    if any(aha.origin == peer.id and aha.name != peer.name for aha in state.ahas):
        state = replace(state, ahas=tuple(peer_names.of_aha(aha, state.peers) for aha in state.ahas))
    if state.compared is not None:
        state = replace(state, compared=peer_names.of_comparison(state.compared, state.peers))
    return state


def _apply_swarm_list(state: State, event: events_swarms.SwarmEvent) -> State:
    match event:
        case events_swarms.SwarmUndecided():
            return replace(state, undecided=event)
        case events_swarms.KnownSwarms():
            return replace(state, swarms=event)
        case events_swarms.SwarmCreated():
            return replace(state, created=event)
        case events_swarms.InviteRead():
            return replace(state, looked=event)
        case events_swarms.InviteWritten():
            return replace(state, invite=event)
        case events_swarms.StartedAgain():  # perhaps in another swarm, with other peers and questions
            return replace(
                _without_engine(state), phase="preparing", phase_since=event.at, cards=(), peers={}, refusals={}, compared=None,
                arrivals=(), posed=None, tried=None, shares=(), updates=(),
            )  # fmt: skip


def _rewind_to(state: State, number: int) -> State:
    """Drop what comes after this round: the engine went back to an earlier state of the model, or begins again at 0."""
    return replace(
        state,
        rounds=tuple(entry for entry in state.rounds if entry.round < number),
        updates=tuple(update for update in state.updates if update.round < number),
        history=tuple(entry for entry in state.history if entry.round < number),
        held_out=tuple(entry for entry in state.held_out if entry.round <= number),
        history_scores=tuple(entry for entry in state.history_scores if entry.round <= number),
        ahas=state.ahas if number else (),
    )


def _without_engine(state: State) -> State:
    """Drop what ends with the engine's process: connections and the unfinished round. Known peers and results stay."""
    cards = (
        card for card in state.cards if not card.mine or card.by_hand or any(completion.judged for completion in card.completions)
    )
    return replace(
        state, until=None, preparing=None, downloading=None, changed=None, undecided=None, unavailable=None, stage=None,
        questions_drawn=0, answers_expected=0, answered=0, judged=0, shared=0, local=0, external=0, waiting=0,
        reach="connecting", address="", way="", seeds_tried=0, up=0.0, down=0.0, load=None, awake=None, guards=(), invite=None,
        looked=None, test=None, cards=tuple(cards),
        peers={name: replace(peer, connection="gone") for name, peer in state.peers.items()},
    )  # fmt: skip


def _settled_choice(state: State) -> events_models.ModelChoice | None:
    """The choice of a model after the engine's process has ended: a download ended with it, a failure is still true."""
    return state.choice if state.choice is not None and state.choice.stage == "failed" else None


def _local_card(group: events.ShownGroup, number: int, at: float, blank: tuple[events.ShownCompletion, ...]) -> Card:
    return Card(key=group.key, round=number, at=at, specialty=group.specialty, question=group.question, completions=blank)


def _count_arrivals(state: State, event: events.PeerGroupsArrived) -> tuple[tuple[int, int], ...]:
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


def _card_by_hand(event: events_playground.AnswerShared) -> Card:
    group = event.group
    return Card(
        key=group.key, round=event.round, at=event.at, specialty=group.specialty, question=group.question,
        completions=group.completions, by_hand=True,
    )  # fmt: skip


def _newest(added: tuple[Card, ...], cards: tuple[Card, ...], questions: int) -> tuple[Card, ...]:
    """The newest cards. Local and external cards have half of the room each, so that a busy swarm displaces no local ones.

    All cards of the current round stay, however many, as its progress is counted on them.
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


def _grow_completions(state: State, event: events.CompletionsProgress) -> State:
    own = [i for i, card in enumerate(state.cards) if _of_round(card, event.round)]
    cards = list(state.cards)
    for question, completion, text, ended in event.rows:
        if not (0 <= question < len(own) and 0 <= completion < len(cards[own[question]].completions)):
            continue
        card = cards[own[question]]
        grown = list(card.completions)
        grown[completion] = events.ShownCompletion(text=text, ended=ended)
        cards[own[question]] = replace(card, completions=tuple(grown))
    answered = sum(completion.ended for i in own for completion in cards[i].completions)
    stage: Stage = "judge" if answered and answered == state.answers_expected else "answer"
    return replace(state, cards=tuple(cards), answered=answered, stage=stage)


def _rounds_after(state: State, newest: tuple[int, float] | None) -> tuple[events.RoundSummary, ...]:
    """The rounds after `newest`, which were played while the engine counted the days; all, if it counted none of them."""
    counted = [state.days.newest if state.days else None, *((summary.round, summary.at) for summary in state.since)]
    return state.since[counted.index(newest) :] if newest in counted and newest else ()


def _complete_round(state: State, summary: events.RoundSummary) -> State:
    rounds = (*state.rounds, summary)[-ROUNDS:]
    counted = state.days is not None and state.days.newest == (summary.round, summary.at)
    since = state.since if counted else (*state.since, summary)[-ROUNDS:]
    return replace(state, round=summary.round + 1, stage="draw", rounds=rounds, since=since, waiting=summary.waiting)
