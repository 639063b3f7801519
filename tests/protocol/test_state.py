"""Test the fold of events into a State."""

import msgspec
import pytest
from msgspec.structs import replace

from waggle.protocol import events, events_leaderboard, events_playground
from waggle.protocol.events_chat import TURNS, ChatCleared, Reply, Turn, TurnProgress
from waggle.protocol.events_identity import DailyTotals, Day
from waggle.protocol.events_playground import AnswerShared
from waggle.protocol.events_swarms import StartedAgain
from waggle.protocol.state import CARDS, PEERS, REASONS, ROUNDS, SPECIALTIES, Snapshot, State, apply


def fold(*messages: object, state: State | None = None) -> State:
    state = state or State()
    for event in messages:
        state = apply(state, event)
    return state


def drawn(number: int, count: int = 2, size: int = 3) -> events.QuestionsDrawn:
    groups = tuple(events.ShownGroup(key=f"me/{number}/{i}", specialty="Logic", question=f"q{i}") for i in range(count))
    return events.QuestionsDrawn(at=1.0, round=number, epoch=1, groups=groups, group_size=size)


def summary(number: int) -> events.RoundSummary:
    return events.RoundSummary(round=number, at=float(number), reward=0.1, solved=0.25, seconds=0.1, completions=8)


def arrived(origin: str, count: int) -> events.PeerGroupsArrived:
    groups = tuple(events.ShownGroup(key=f"{origin}/{i}", specialty="Logic", question="q") for i in range(count))
    return events.PeerGroupsArrived(at=2.0, origin=origin, name="Brisk Otter", round=7, model="m", groups=groups)


def test_a_round_is_followed_from_question_to_lesson():
    state = fold(drawn(4))
    assert (state.stage, state.answers_expected, len(state.cards)) == ("answer", 6, 2)
    state = fold(events.CompletionsProgress(round=4, rows=((1, 2, "half", False), (0, 0, "done", True))), state=state)
    assert state.cards[1].completions[2].text == "half"
    assert state.answered == 1
    judged = events.ShownGroup(
        key="me/4/1",
        specialty="Logic",
        question="q1",
        completions=(events.ShownCompletion(text="x", judged=True, reward=1.0),) * 3,
    )
    state = fold(events.GroupsJudged(round=4, groups=(judged,)), state=state)
    assert state.cards[1].completions[0].reward == 1.0
    lesson = events.Lesson(key="me/4/1", effects=(1, -1, 0))
    state = fold(
        events.GroupsShared(round=4, groups=2, bytes=300),
        events.GroupsGathered(round=4, local=1, external=1, waiting=5),
        events.PolicyUpdated(round=4, step=1, metrics=events.Metrics(), lessons=(lesson,)),
        events.RoundCompleted(summary=summary(4)),
        state=state,
    )
    assert state.cards[1].effects == (1, -1, 0)
    assert (state.round, state.stage) == (5, "draw")
    assert (state.shared, state.local, state.external, state.waiting) == (2, 1, 1, state.rounds[-1].waiting)


def test_an_engine_that_no_window_started_is_known_as_such_until_a_window_starts_one():
    preparing = events.Preparing(part="Looking for the model", done=0, parts=5)
    state = fold(Snapshot(state=State(service=True)), preparing, StartedAgain(reason="Another swarm was chosen."), preparing)
    assert state.service
    assert not fold(events.EngineStopped(round=1), preparing, state=state).service


def test_a_shared_answer_of_ones_own_is_a_card_and_never_taken_for_one_of_the_round():
    by_hand = events.ShownGroup(
        key="me/by hand", specialty="Logic", question="q", completions=(events.ShownCompletion(text="7", human=True),)
    )
    grown = events.CompletionsProgress(round=4, rows=((0, 0, "done", True),))
    state = fold(drawn(4), AnswerShared(round=4, group=by_hand, at=3.0), grown)
    assert [(card.key, card.by_hand, card.completions[0].text) for card in state.cards] == [
        ("me/by hand", True, "7"), ("me/4/0", False, "done"), ("me/4/1", False, ""),
    ]  # fmt: skip


SHARES = (events.QuestionShare(specialty="Logic", levels={"easy": 0.75, "hard": 0.25}),)


def test_the_shares_of_the_questions_are_those_of_the_latest_round_and_of_this_swarm():
    state = fold(replace(drawn(4), shares=SHARES))
    assert state.shares == SHARES
    assert fold(events.RoundCompleted(summary=summary(4)), state=state).shares == SHARES, "until questions are drawn again"
    assert fold(drawn(5), state=state).shares == ()
    assert fold(StartedAgain(reason="another swarm"), state=state).shares == ()
    trained = fold(ready("a"), replace(drawn(4), shares=SHARES))
    assert fold(ready("a", 4), state=trained).shares == SHARES
    assert fold(ready("b", 4), state=trained).shares == ()


def test_the_shares_of_the_questions_are_bounded():
    assert len(fold(replace(drawn(4), shares=SHARES * 100)).shares) == SPECIALTIES


def test_all_answers_written_means_judging():
    state = fold(drawn(1, count=1, size=2), events.CompletionsProgress(round=1, rows=((0, 0, "a", True), (0, 1, "b", True))))
    assert state.stage == "judge"


def test_growth_of_rows_that_do_not_exist_changes_nothing():
    state = fold(drawn(1), events.CompletionsProgress(round=1, rows=((9, 0, "x", False), (0, 9, "x", False))))
    assert all(completion.text == "" for card in state.cards for completion in card.completions)


def test_a_state_stays_bounded():
    messages: list[object] = []
    for number in range(ROUNDS + 50):
        messages += [drawn(number, count=8), arrived("a", 8), events.RoundCompleted(summary=summary(number))]
    messages += [events.PeerChanged(peer=events.PeerInfo(id=str(i), name="n", seen_at=float(i))) for i in range(PEERS + 5)]
    state = fold(*messages)
    assert (len(state.rounds), len(state.cards), len(state.peers)) == (ROUNDS, CARDS, PEERS)
    assert "0" not in state.peers
    assert str(PEERS + 4) in state.peers


def test_a_lively_swarm_never_pushes_out_ones_own_cards():
    state = fold(drawn(1), *[arrived(f"peer{i}", 8) for i in range(20)])
    assert sum(card.mine for card in state.cards) == 2


def test_failure_is_shown_until_the_engine_is_back():
    failed = fold(events.EngineFailed(title="No.", advice="Yes."), events.EngineGone(code=1, restarts=1))
    assert (failed.phase, failed.problem.title, failed.gone.code) == ("problem", "No.", 1)
    assert fold(events.Preparing(part="p", done=0, parts=4), state=failed).problem is None


def amid_a_round() -> State:
    """Round 3 is done, round 4 judged in part; a peer is connected, and a question was tried."""
    judged = events.ShownGroup(
        key="me/3/0", specialty="Logic", question="q0", completions=(events.ShownCompletion(text="x", judged=True),) * 3
    )
    return fold(
        events.ReachChanged(reach="connected", peers=1, address="/ip4/1", way="direct"),
        events.PeerChanged(peer=events.PeerInfo(id="x", name="Brisk Otter", received=4)),
        events.TrafficMeasured(up=1.0, down=2.0),
        drawn(3, count=1), events.GroupsJudged(round=3, groups=(judged,)), arrived("x", 1), drawn(4),
        events.CompletionsProgress(round=4, rows=((0, 0, "done", True),)),
        events_playground.QuestionPosed(specialty="bf", title="Logic", number=1, question="q"),
        events_playground.QuestionAnswered(specialty="bf", number=1, answers=()),
    )  # fmt: skip


STARTING = events.Preparing(part="p", done=0, parts=5)


@pytest.mark.parametrize(
    "ends",
    [
        (events.EngineGone(code=9, restarts=1),),
        (events.EngineGone(code=9, restarts=1), STARTING),
        (events.EngineFailed(title="No.", advice="Yes."), STARTING),
        (events.EngineStopped(round=4), STARTING),
    ],
)
def test_what_an_engine_was_connected_to_and_amid_ends_with_it_and_what_it_finished_stays(ends):
    before = amid_a_round()
    state = fold(*ends, state=before)
    assert (state.reach, state.address, state.way, state.up, state.down, state.stage) == ("connecting", "", "", 0.0, 0.0, None)
    assert (state.questions_drawn, state.answered, state.answers_expected) == (0, 0, 0)
    assert state.members == ()
    assert [(peer.name, peer.connection, peer.received) for peer in state.peers.values()] == [("Brisk Otter", "gone", 4)]
    assert [card.key for card in state.cards] == ["x/0", "me/3/0"]
    assert (state.posed, state.tried) == (before.posed, before.tried)


def test_a_round_that_is_drawn_again_takes_the_place_of_what_stood_of_it():
    judged = events.ShownGroup(
        key="me/4/0", specialty="Logic", question="q0", completions=(events.ShownCompletion(text="x", judged=True),) * 3
    )
    state = fold(drawn(4), events.GroupsJudged(round=4, groups=(judged,)), events.EngineGone(code=9, restarts=1), drawn(4))
    everything = tuple((question, number, "done", True) for question in (0, 1) for number in range(3))
    state = fold(events.CompletionsProgress(round=4, rows=everything), state=state)
    assert [card.key for card in state.cards] == ["me/4/0", "me/4/1"]
    assert (state.answered, state.answers_expected) == (6, 6)


def test_elsewhere_nobody_is_known_yet_and_no_question_stands():
    state = fold(StartedAgain(reason="Going to Two laptops."), state=amid_a_round())
    assert (state.phase, state.cards, state.peers, state.posed, state.tried) == ("preparing", (), {}, None, None)
    assert (state.reach, state.answered) == ("connecting", 0)


def test_a_download_is_over_when_preparing_goes_on():
    downloading = fold(events.Downloading(model="q", done=1, total=2))
    assert downloading.downloading.done == 1
    moved_on = events.Preparing(part="p", done=0, parts=4)
    for ends in (moved_on, StartedAgain(reason="Going on."), events.EngineGone(code=9, restarts=1), ready("a")):
        assert fold(ends, state=downloading).downloading is None


def test_a_snapshot_replaces_everything():
    other = fold(drawn(3))
    assert fold(Snapshot(state=other), state=fold(drawn(9))) == other


@pytest.mark.parametrize(
    "event", [events.CommandDone(id="1"), events.TrafficMeasured(up=1, down=2), events.RecordRejected(origin="x", reason="y")]
)
def test_every_event_moves_the_clock(event):
    assert apply(State(), msgspec.structs.replace(event, seq=5, at=9.0)).seq == 5


def test_ahas_are_kept_in_their_order_and_come_back_with_the_history():
    first, second = (events.Aha(round=number, at=1.0, specialty=f"s{number}") for number in (1, 2))
    state = fold(events.AhaHappened(aha=first), events.AhaHappened(aha=second))
    assert state.ahas == (first, second)
    assert fold(events.TrainingHistory(rounds=(), held_out=(), ahas=(first,))).ahas == (first,)
    assert fold(events.TrainingHistory(rounds=(), held_out=()), state=state).ahas == (first, second)


def test_a_peer_has_the_name_that_it_chose_wherever_it_is_named_whatever_came_first():
    """A chosen name comes encrypted with a message of its own, perhaps after the groups that were learned from."""
    aha = events.Aha(round=1, at=1.0, specialty="Logic", origin="x", name="Brisk Otter")
    entrant = events_leaderboard.Entrant(id="x", name="Brisk Otter", model="m", round=1, together=True, right=1, total=9)
    compared = events_leaderboard.ModelsCompared(curves=(), entrants=(entrant,), ranked=True, sheets=1, since=0.0)
    named = events.PeerChanged(peer=events.PeerInfo(id="x", name="Kim"))
    other = events.PeerChanged(peer=events.PeerInfo(id="y", name="Nour"))
    history = events.TrainingHistory(rounds=(), held_out=(), ahas=(aha,))
    news = (arrived("x", 2), events.AhaHappened(aha=aha), compared)
    for messages in ((*news, other, named), (other, named, *news), (other, named, *news, history)):
        state = fold(*messages)
        names = {*(card.name for card in state.cards), *(each.name for each in (*state.ahas, *state.compared.entrants))}
        assert names == {"Kim"}
    assert fold(*news, other).ahas == (aha,), "an unknown peer has the name of its key"


@pytest.mark.parametrize(
    ("fields", "trains"),
    [
        ({"received": 1}, True),
        ({"groups_pulled": 1, "choice": "muted"}, True),
        ({"received": 1, "choice": "muted"}, False),
        ({"received": 1, "choice": "blocked"}, False),
        ({"received": 1, "connection": "gone"}, False),
        ({}, False),
    ],
)
def test_members_are_those_that_train_with_this_node(fields, trains):
    peer = events.PeerInfo(id="x", name="Brisk Otter", **fields)
    assert fold(events.PeerChanged(peer=peer)).members == ((peer,) if trains else ())


def turn(words: str, *, finished: bool = True) -> Turn:
    reply = Reply(rounds=0, text="4")
    return Turn(words=words, replies=(reply, reply), finished=finished)


def test_a_conversation_grows_turn_by_turn_never_beyond_its_end_and_is_cleared():
    state = fold(TurnProgress(number=0, turn=turn("a", finished=False)), TurnProgress(number=0, turn=turn("a")))
    state = fold(TurnProgress(number=1, turn=turn("b", finished=False)), state=state)
    assert [(spoken.words, spoken.finished) for spoken in state.talk] == [("a", True), ("b", False)]
    assert [spoken.words for spoken in fold(TurnProgress(number=1, turn=turn("c")), state=state).talk] == ["a", "c"], (
        "it is said anew"
    )
    long = fold(*(TurnProgress(number=number, turn=turn(str(number))) for number in range(TURNS + 5)))
    assert len(long.talk) == TURNS
    assert fold(ChatCleared(), state=state).talk == ()


def test_how_far_a_test_is_is_known_until_it_is_over():
    going = fold(events.HeldOutProgress(done=12, total=270))
    assert (going.test.done, going.test.total) == (12, 270)
    score = events.HeldOutScore(round=0, at=1.0, right=3, total=270)
    for over in (events.HeldOutMeasured(score=score), drawn(0)):
        assert fold(over, state=going).test is None
    after = fold(events.EngineGone(code=9, restarts=1), state=going)
    assert after.test is None, "the engine that took it is gone"


def test_another_model_knows_nothing_of_a_conversation():
    state = fold(ready("a"), TurnProgress(number=0, turn=turn("a")))
    assert fold(ready("a"), state=state).talk
    assert fold(ready("b"), state=state).talk == ()
    assert fold(Snapshot(state=fold(ready("a"))), state=state).talk == state.talk, "the engine remembers none"


def test_another_model_has_learned_nothing_of_what_this_one_has_and_the_same_one_all_of_it():
    early, score = (events.HeldOutScore(round=number, at=1.0, right=3, total=8) for number in (0, 1))
    aha = events.Aha(round=1, at=1.0, specialty="s")
    state = fold(
        ready("a"), events.TrainingHistory(rounds=(summary(0),), held_out=(early,), ahas=()), events.HeldOutMeasured(score=score),
        events.AhaHappened(aha=aha), events.RoundCompleted(summary=summary(1)), events.CheckpointSaved(round=1, bytes=9),
    )  # fmt: skip

    def learned(state: State) -> tuple[object, ...]:
        return state.history, state.history_scores, state.rounds, state.held_out, state.ahas, state.saved_round

    assert learned(fold(ready("a", 2), state=state)) == ((summary(0),), (early,), (summary(1),), (score,), (aha,), 1)
    other = fold(ready("b"), state=state)
    assert learned(other) == ((), (), (), (), (), None)
    history = events.TrainingHistory(rounds=(summary(7),), held_out=(), ahas=())
    assert learned(fold(history, state=other)) == ((summary(7),), (), (), (), (), None)


def test_what_is_known_of_later_rounds_than_the_model_goes_on_from_is_no_more_and_where_it_begins_anew_nothing():
    early, late = (events.HeldOutScore(round=number, at=1.0, right=3, total=8) for number in (1, 3))
    aha = events.Aha(round=0, at=1.0, specialty="s")
    history = events.TrainingHistory(rounds=(summary(0), summary(1), summary(2)), held_out=(early, late), ahas=(aha,))
    measured = (events.HeldOutMeasured(score=score) for score in (early, late))
    state = fold(ready("a"), history, *(events.RoundCompleted(summary=summary(number)) for number in range(3)), *measured)

    def learned(state: State) -> tuple[object, ...]:
        assert (state.history, state.history_scores) == (state.rounds, state.held_out)
        return [entry.round for entry in state.rounds], [entry.round for entry in state.held_out], state.ahas

    assert learned(fold(ready("a", 3), state=state)) == ([0, 1, 2], [1, 3], (aha,))
    assert learned(fold(ready("a", 1), state=state)) == ([0], [1], (aha,))
    assert learned(fold(ready("a", 0), state=state)) == ([], [], ())


def test_what_another_model_answered_is_not_this_ones():
    group = events.ShownGroup(key="k", specialty="s", question="q", completions=(events.ShownCompletion(text="9", reward=1.0),))
    drawn = events.QuestionsDrawn(round=1, epoch=1, group_size=1, groups=(group,))
    arrived = events.PeerGroupsArrived(origin="a", name="A", model="m", round=1, groups=(replace(group, key="theirs"),))
    state = fold(ready("a"), drawn, events.GroupsJudged(round=1, groups=(group,)), arrived)
    assert {card.key for card in fold(ready("a"), state=state).cards} == {"k", "theirs"}
    assert {card.key for card in fold(ready("b"), state=state).cards} == {"theirs"}


def test_two_models_of_one_name_share_nothing():
    state = fold(ready("a"), events.RoundCompleted(summary=summary(1)))
    assert fold(replace(ready("a"), base="ff"), state=state).rounds == ()


def test_all_that_were_asked_are_counted_however_many():
    state = fold(drawn(1, count=32), *[arrived(f"peer{i}", 8) for i in range(20)])
    rows = tuple((question, completion, "x", True) for question in range(32) for completion in range(3))
    state = fold(events.CompletionsProgress(round=1, rows=rows), state=state)
    assert (state.answered, state.stage) == (96, "judge")


def ready(model: str, first: int = 0) -> events.Ready:
    return events.Ready(
        protocol=1, version="1", node="n", name="Otter", swarm="s", charter="ab", specialties=(), model=model, model_note="",
        backend="torch", device="cpu", device_reason="", threads=1, cores=1, round=first, completions=0, group_size=4,
        parameters=1,
    )  # fmt: skip


def test_each_round_counts_once_whether_it_ended_before_or_after_the_days_were_counted():
    rounds = [summary(number) for number in range(4)]
    nothing = Day(date="2026-03-09", rounds=0, answers=0)
    completed = [events.RoundCompleted(summary=entry) for entry in rounds]
    counted = DailyTotals(days=(), all=nothing, newest=(1, rounds[1].at))
    assert fold(*completed[:2], counted).since == ()
    assert fold(*completed[:3], counted).since == (rounds[2],), "it ended while they were counted"
    assert fold(*completed[:1], counted, completed[1], completed[2]).since == (rounds[2],), "it was written, and not yet told"
    assert fold(*completed[:2], counted, completed[2], counted).since == (rounds[2],), "it ended while nothing new was counted"
    assert fold(*completed, replace(counted, newest=(1, 99.0))).since == (), "another model's"
    assert fold(*completed, replace(counted, newest=None)).since == ()


def test_refusals_are_counted_for_each_peer_by_reason():
    state = fold(
        events.GroupsGathered(
            round=4, local=1, external=1, waiting=5, refused={"teaches_nothing": 7, "too_long": 1},
            refused_by_peer={"otter": {"teaches_nothing": 5}, "wren": {"teaches_nothing": 2, "too_long": 1}},
        ),
        events.RecordRejected(origin="otter", reason="malformed"),
        events.RecordRejected(origin="otter", reason="reserved question", count=3),
        events.GroupsGathered(round=5, local=1, external=1, waiting=5, refused_by_peer={"otter": {"teaches_nothing": 5}}),
    )  # fmt: skip
    assert state.refusals == {
        "otter": {"teaches_nothing": 10, "malformed": 1, "reserved question": 3},
        "wren": {"teaches_nothing": 2, "too_long": 1},
    }
    assert state.rejected == 2
    assert fold(StartedAgain(reason="Another swarm was chosen."), state=state).refusals == {}


def test_refusals_are_bounded_in_peers_and_reasons():
    reasons = [events.RecordRejected(origin="first", reason=str(number)) for number in range(REASONS + 1)]
    others = [events.RecordRejected(origin=str(number), reason="malformed") for number in range(PEERS - 1)]
    state = fold(*reasons, *others)
    assert (len(state.refusals), len(state.refusals["first"])) == (PEERS, REASONS)
    state = fold(events.RecordRejected(origin="new", reason="malformed"), state=state)
    assert len(state.refusals) == PEERS
    assert "first" not in state.refusals
