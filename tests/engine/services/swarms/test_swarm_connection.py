"""Test that a person's choice about a peer reaches the swarm, and that invalid ids are refused."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from network.loopback import fresh_identity, serving
from waggle.cli.control.peers import list_peers, sorted_peers
from waggle.core import paths
from waggle.core.errors import EngineError, SwarmError
from waggle.core.peer_id import text_of
from waggle.core.settings import Settings, SwarmSettings
from waggle.engine.runtime.event_publisher import EventPublisher
from waggle.engine.runtime.pause_gate import PauseGate
from waggle.engine.runtime.round_events import Titles
from waggle.engine.services.swarms import swarm_connection
from waggle.network.limits.reputation import PeerReputation
from waggle.network.messages import comparison as network_comparison
from waggle.network.messages import events as network_events
from waggle.network.messages import rollout_record
from waggle.network.messages.comparison import Comparison, Entrant
from waggle.network.messages.events import ClockSkewed, GroupsArrived, LeaderboardChanged
from waggle.network.messages.options import SwarmOptions
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.node import SwarmNode
from waggle.network.open_node import open_node
from waggle.network.solo_node import SoloNode
from waggle.protocol import json_lines
from waggle.protocol.events import PeerChanged, PeerInfo
from waggle.protocol.events_leaderboard import ModelsCompared, ScoreCurve, ScorePoint
from waggle.protocol.events_outbox import SentMessages
from waggle.protocol.state import CARDS, Snapshot, State, apply
from waggle.protocol.text.peer_text import standing_text
from waggle.tasks import charter as charters
from waggle.tasks.charter import LONGEST_COMPLETION
from waggle.tasks.questions import EPOCH_SECONDS, Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm

ORIGIN, EPOCH = b"p" * 38, 1000
WORDY = msgspec.structs.replace(first_swarm(), completion_characters=LONGEST_COMPLETION)  # as a stranger may write one


async def test_a_charter_named_by_its_hash_is_asked_of_the_seeds_once_and_kept(tmp_path: Path) -> None:
    charter = msgspec.structs.replace(first_swarm(), name="Another swarm")
    home = paths.Home(tmp_path / "home").prepare()
    async with serving(fresh_identity(tmp_path, "seed"), charter) as address:
        chosen = Settings(swarm=SwarmSettings(charter=charter.digest.hex(), seeds=(address,), host="127.0.0.1"))
        assert await swarm_connection.charter_of(home, chosen) == charter
    assert await swarm_connection.charter_of(home, chosen) == charter  # the seed is gone


async def test_a_kept_charter_that_was_damaged_is_asked_for_again(tmp_path: Path) -> None:
    home, charter = paths.Home(tmp_path / "home").prepare(), msgspec.structs.replace(first_swarm(), name="Another swarm")
    digest = charter.digest.hex()
    (home.charters / f"{digest}.json").write_bytes(charters.encode(msgspec.structs.replace(charter, name="Not the one")))
    async with serving(fresh_identity(tmp_path, "seed"), charter) as address:
        chosen = Settings(swarm=SwarmSettings(charter=digest, seeds=(address,), host="127.0.0.1"))
        assert await swarm_connection.charter_of(home, chosen) == charter
    assert (home.charters / f"{digest}.json").read_bytes() == charters.encode(charter)


async def test_a_charter_that_finds_no_room_is_used_all_the_same(tmp_path: Path) -> None:
    home, charter = paths.Home(tmp_path / "home").prepare(), msgspec.structs.replace(first_swarm(), name="Another swarm")
    home.charters.rmdir()
    home.charters.touch()
    async with serving(fresh_identity(tmp_path, "seed"), charter) as address:
        chosen = Settings(swarm=SwarmSettings(charter=charter.digest.hex(), seeds=(address,), host="127.0.0.1"))
        assert await swarm_connection.charter_of(home, chosen) == charter


@pytest.mark.parametrize("is_warned", [False, True], ids=["no hivemind", "told to call no peers"])
async def test_where_gateways_are_the_only_way_and_none_is_named_a_node_trains_alone_and_says_so(
    tmp_path: Path, verifier: Verifier, monkeypatch: pytest.MonkeyPatch, is_warned: bool
) -> None:
    home = paths.Home(tmp_path / "home").prepare()
    seed = f"/ip4/127.0.0.1/tcp/9/p2p/{text_of(fresh_identity(tmp_path, 'seed').peer_id)}"
    chosen = Settings(swarm=SwarmSettings(light=is_warned, seeds=(seed,) if is_warned else (), host="127.0.0.1"))
    async with AsyncExitStack() as stack:
        windows = stack.enter_context(monkeypatch.context())
        if not is_warned:
            windows.setitem(sys.modules, "hivemind", None)  # type: ignore[arg-type] # nobody finds it there
        publisher = EventPublisher(tmp_path)
        stack.callback(publisher.close)
        own = fresh_identity(tmp_path, "own")
        gate = PauseGate(lambda: None)
        node = await swarm_connection.join(
            home, chosen, first_swarm(), own, verifier, publisher, stack, is_paused=lambda: gate.is_closed
        )
        assert isinstance(node, SwarmNode)
        assert await node.addresses() == []
        gate.close()
        assert node._collector._context.is_paused(), "what is paused judges nothing"
        with pytest.raises(SwarmError, match="none is named"):
            await swarm_connection.charter_of(
                home, msgspec.structs.replace(chosen, swarm=SwarmSettings(charter="ff" * 32, light=is_warned))
            )
    assert (publisher.state.reach, publisher.state.way) == ("alone", "gateway")
    (warned,) = publisher.state.warnings
    assert "none is named" in warned.title
    assert "the gateway of a member in Settings" in warned.advice


def test_a_peer_named_by_its_id_is_muted(tmp_path: Path, verifier: Verifier) -> None:
    own, peer = fresh_identity(tmp_path, "own"), fresh_identity(tmp_path, "peer").peer_id
    events_sent: list[object] = []
    node = open_node(SwarmOptions(reputation_file=tmp_path / "standings.json"), first_swarm(), own, verifier, events_sent.append)

    swarm_connection.choose_peer(node, text_of(peer), "muted")

    assert node._reputations.of(peer).choice == "muted"
    assert b"muted" in (tmp_path / "standings.json").read_bytes()


@pytest.mark.parametrize("name", ["", "Brisk Otter", "12D3KooW", "0" * 52])
def test_what_is_no_peers_id_is_refused(tmp_path: Path, verifier: Verifier, name: str) -> None:
    node = open_node(SwarmOptions(), first_swarm(), fresh_identity(tmp_path, "own"), verifier, lambda news: None)
    with pytest.raises(EngineError, match="is no peer's id"):
        swarm_connection.choose_peer(node, name, "blocked")


def test_alone_there_is_nobody_to_mute(tmp_path: Path) -> None:
    peer = fresh_identity(tmp_path, "peer").peer_id
    with pytest.raises(EngineError, match="no peers in a swarm of one"):
        swarm_connection.choose_peer(SoloNode(), text_of(peer), "muted")


def test_alone_nothing_has_left_this_computer() -> None:
    assert swarm_connection.sent_messages(SoloNode(), {}) == ()


def test_a_peer_whose_groups_promised_much_and_taught_nothing_is_said_to_be_so_and_one_that_is_silent_is_not() -> None:
    promised = PeerReputation(id=ORIGIN, name="Brisk Otter", records=9, received=40, useful=40, used=30)
    for standing, taught_nothing in ((promised, False), (msgspec.structs.replace(promised, idle=40), True)):
        event = swarm_connection.event_from_news(network_events.PeerChanged(peer=standing), Titles(first_swarm()))
        assert isinstance(event, PeerChanged)
        assert ("taught nothing" in standing_text(event.peer, 0.0)) is taught_nothing
        assert ("Used 30 of its 40 examples." in standing_text(event.peer, 0.0)) is not taught_nothing


def test_peers_are_listed_with_their_sentence_those_connected_first() -> None:
    gone = PeerInfo(id="a", name="Brisk Otter", connection="gone", received=9, useful=3)
    here = PeerInfo(id="b", name="Calm Vole", connection="direct", choice="blocked")
    first, second = list_peers(sorted_peers([gone, here]), now=0.0).split("\n")
    assert first.startswith("Calm Vole  b  You blocked it")
    assert second.startswith("Brisk Otter  a  ")
    assert list_peers([], now=0.0) == "No peer has been met yet."


@pytest.mark.parametrize(
    ("ahead", "title"),
    [(100.0, "100 seconds slow"), (-180.0, "3 minutes fast"), (7300.0, "2 hours slow"), (-172_800.0, "2 days fast")],
)
def test_a_clock_that_is_wrong_is_told_in_words(ahead: float, title: str) -> None:
    warned = swarm_connection.event_from_news(ClockSkewed(seconds=ahead, agreeing=2), Titles(first_swarm()))
    assert warned.title == f"This computer's clock is {title}."


def test_one_clock_against_another_is_told_as_a_difference() -> None:
    for ahead in (1200.0, -1200.0):
        warned = swarm_connection.event_from_news(ClockSkewed(seconds=ahead, agreeing=1), Titles(first_swarm()))
        assert warned.title.endswith("of another one differ by 20 minutes: one of the two is wrong.")


@pytest.mark.parametrize(("ranked", "count"), [(True, swarm_connection.ENTRANTS), (False, 1)])
def test_of_a_public_swarm_only_oneself_is_told_however_many_take_part(ranked: bool, count: int) -> None:
    entrants = tuple(
        Entrant(id=str(i), name=f"Node {i:04}", model="Starter", round=i, together=True, right=i % 17, total=16)
        for i in range(300)
    )
    point = network_comparison.ScorePoint(round=5, right=3, total=16, nodes=2)
    curve = network_comparison.ScoreCurve(model="Starter", together=True, points=(point,))
    comparison = Comparison(curves=(curve,), entrants=entrants, ranked=ranked, sheets=300, since=7.0)
    event = swarm_connection.event_from_news(LeaderboardChanged(comparison=comparison), Titles(first_swarm()), me="250")
    assert isinstance(event, ModelsCompared)
    assert len(event.entrants) == count
    assert [(entrant.id, entrant.round) for entrant in event.entrants if entrant.mine] == ([] if ranked else [("250", 250)])
    assert event.curves == (
        ScoreCurve(model="Starter", together=True, points=(ScorePoint(round=5, right=3, total=16, nodes=2),)),
    )
    assert (event.sheets, event.since) == (300, 7.0)


def shared(sign: str, *, groups: int, completions: int) -> RolloutRecord:
    """The longest texts that this swarm allows, of one character."""
    completions_of_group = tuple(Completion(text=sign * LONGEST_COMPLETION, ended=True) for _ in range(completions))
    shared_groups = tuple(
        Group(origin=ORIGIN, id=QuestionId("bf", EPOCH, number), completions=completions_of_group) for number in range(groups)
    )
    return RolloutRecord(origin=ORIGIN, round=1, epoch=EPOCH, model="m", groups=shared_groups)


def arrived(record: RolloutRecord) -> GroupsArrived:
    question = Question(dataset="bf", seed=1, text="What is the output? " * 100)
    missed = Verdict(reward=0.0, reason="no answer tag")
    groups = tuple(
        JudgedGroup(group=group, question=question, verdicts=(missed,) * len(group.completions)) for group in record.groups
    )
    return GroupsArrived(origin=ORIGIN, round=1, model="m", groups=groups)


def test_the_most_that_a_stranger_can_send_at_once_is_told_in_a_line_that_a_window_reads() -> None:
    sent = shared("\\", groups=104, completions=4)
    record = rollout_record.decode(rollout_record.encode(sent, WORDY), WORDY, origin=ORIGIN, now=EPOCH * EPOCH_SECONDS)
    assert len(record.groups) == 104, "a record may be so large"
    event = swarm_connection.event_from_news(arrived(record), Titles(WORDY))
    assert apply(State(), event).arrivals[0][1] == 104
    assert len(json_lines.line(event)) < json_lines.MAX_LINE / 4


async def test_what_peers_wrote_is_told_no_faster_than_anybody_reads_and_the_rest_is_counted(
    tmp_path: Path, verifier: Verifier
) -> None:
    home, charter = paths.Home(tmp_path / "home").prepare(), first_swarm()
    publisher = EventPublisher(home.events)
    async with AsyncExitStack() as stack:
        chosen = Settings(swarm=SwarmSettings(host="127.0.0.1", seeds=(), lan=False))
        swarm = await swarm_connection.join(home, chosen, charter, fresh_identity(tmp_path, "own"), verifier, publisher, stack)
        assert isinstance(swarm, SwarmNode)
        for _ in range(30):  # such a record packs to less than a kilobyte, and a new one may come each second
            swarm._context.report(arrived(shared("\N{HONEYBEE}", groups=128, completions=16)))
        await asyncio.sleep(0)
    publisher.close()
    assert sum(groups for _, groups in publisher.state.arrivals) == 30 * 128
    assert len(publisher.state.cards) == CARDS // 2
    assert sum(path.stat().st_size for path in home.events.iterdir()) < 6_000_000


def test_a_state_full_of_the_longest_texts_is_told_in_a_line_that_a_window_reads() -> None:
    event = swarm_connection.event_from_news(arrived(shared("\N{HONEYBEE}", groups=1, completions=16)), Titles(WORDY))
    state = State()
    for _ in range(CARDS):
        state = apply(state, event)
    assert len(state.cards) == CARDS // 2
    assert len(json_lines.line(Snapshot(state=state))) < json_lines.MAX_LINE / 2


def test_the_longest_messages_that_left_this_computer_are_told_in_a_line_that_a_window_reads(
    tmp_path: Path, verifier: Verifier
) -> None:
    node = open_node(SwarmOptions(), WORDY, fresh_identity(tmp_path, "own"), verifier, lambda news: None)
    blob = rollout_record.encode(shared("x", groups=24, completions=4), WORDY)
    for number in range(10):
        node.outbox.add("groups", blob, bytes([number]) * 38)
    messages = swarm_connection.sent_messages(node, {})
    assert [len(message.text) for message in messages] == [swarm_connection.LONGEST_MESSAGE] * 10
    assert len(json_lines.line(SentMessages(messages=messages))) < json_lines.MAX_LINE / 4
