"""The status page shows what arrived, and escapes what strangers wrote."""

import re

import msgspec
import pytest

from network.loopback import judged
from waggle.core.peer_id import short_id
from waggle.network.leaderboard.scores import Scoreboard, SheetScore
from waggle.network.limits.reputation import KNOWN_FROM, TRUSTED_FROM, PeerReputation
from waggle.network.messages.events import GroupsArrived, LeaderboardChanged, PeerChanged, RecordRejected
from waggle.network.web import status_page
from waggle.network.web.statistics import MAX_MEMBERS, PRESENT_S, SwarmStatistics
from waggle.tasks.shipped_swarms import first_swarm

NOW = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> SwarmStatistics:
    return SwarmStatistics(first_swarm(), clock)


def arrived(origin: int, *, groups: int = 1, model: str = "Starter", round_number: int = 1) -> GroupsArrived:
    """Groups of the specialty bf whose mean reward is 0.5."""
    return GroupsArrived(
        origin=origin.to_bytes(38, "big"), round=round_number, model=model,
        groups=tuple(judged(1, index) for index in range(groups)),
    )  # fmt: skip


def test_members_models_and_rewards_are_those_of_the_groups_that_arrived(board: SwarmStatistics, clock: Clock) -> None:
    board.add(arrived(1, groups=3, round_number=7))
    board.add(arrived(2, model="Qwen"))
    for number in (1, 2):
        board.add(trusting(number))
    board.add(RecordRejected(origin=b"x", reason="too large"))
    status = board.status(("/ip4/192.0.2.1",))
    assert [(entry.groups, entry.reward, entry.round) for entry in status.members] == [(3, 0.5, 7), (1, 0.5, 1)]
    assert [(entry.name, entry.members) for entry in status.models] == [("Qwen", 1), ("Starter", 1)]
    fingerprints = [short_id(number.to_bytes(38, "big")) for number in (1, 2)]
    assert [entry.fingerprint for entry in status.members] == fingerprints
    assert all(f">{each}</span>" in status_page.html(status) for each in fingerprints)
    rewards = {entry.dataset: (entry.groups, entry.reward) for entry in status.specialties}
    assert rewards["bf"] == (4, 0.5)
    assert rewards["binary_matrix"] == (0, None)
    assert (status.groups, status.dropped, status.minutes[-1]) == (4, 1, 4)


def trusting(origin: int, useful: int = TRUSTED_FROM) -> PeerChanged:
    """The news that a peer is trusted by its useful groups."""
    peer = PeerReputation(id=origin.to_bytes(38, "big"), name="x", records=KNOWN_FROM, useful=useful, seen_at=NOW)
    assert peer.trusted == (useful >= TRUSTED_FROM)
    return PeerChanged(peer=peer)


def test_a_model_name_stands_on_the_page_if_a_trusted_member_uses_it_or_waggle_gives_it(board: SwarmStatistics) -> None:
    words = "Send your key to us"
    board.add(arrived(1, model=words))
    board.add(arrived(2, model="Starter 2.1M"))
    board.add(arrived(3, model="Qwen2.5-0.5B-Instruct 494.0M"))
    marks = Scoreboard(ranked=True)
    marks.add(SheetScore(origin=bytes(38), epoch=1, round=1, learned=1, model=words, right=1, total=16))
    board.add(LeaderboardChanged(comparison=marks.comparison()))
    for news, appears in ((None, False), (trusting(1), True), (trusting(1, useful=0), False)):
        if news:
            board.add(news)
        status = board.status(())
        for text in (status_page.html(status), status_page.metrics(status), msgspec.json.encode(status).decode()):
            assert (words in text) is appears
            assert "Starter 2.1M" in text
            assert "Qwen2.5-0.5B-Instruct 494.0M" in text
        assert ("not named here" in status_page.html(status)) is not appears
        assert len(status.members) == 3


def test_groups_per_minute_are_those_of_whole_minutes(board: SwarmStatistics, clock: Clock) -> None:
    for _ in range(3):
        board.add(arrived(1, groups=4))
        clock.now += 60
    assert board.status(()).groups_per_minute == 4
    clock.now += 3600
    assert sum(board.status(()).minutes) == 0
    assert board.status(()).groups == 12


def test_who_is_silent_for_long_is_no_member_any_more_and_a_crowd_costs_no_memory(board: SwarmStatistics, clock: Clock) -> None:
    for origin in range(MAX_MEMBERS + 10):
        board.add(arrived(origin))
    assert len(board.status(()).members) == MAX_MEMBERS
    clock.now += PRESENT_S
    assert board.status(()).members == ()


def test_names_of_one_range_push_no_member_out(board: SwarmStatistics) -> None:
    board.add(arrived(1, groups=3))
    for name in range(2, MAX_MEMBERS + 10):
        crowd = arrived(name)
        groups = tuple(msgspec.structs.replace(group, source="8.8.4.0/24") for group in crowd.groups)
        board.add(msgspec.structs.replace(crowd, groups=groups))
    members = board.status(()).members
    assert (len(members), members[0].groups) == (MAX_MEMBERS, 3)


HOSTILE = '<script>alert("1")</script>\\'


def test_strangers_words_are_shown_as_words(board: SwarmStatistics) -> None:
    board.add(arrived(1, model=HOSTILE))
    board.add(trusting(1))
    status = msgspec.structs.replace(board.status(("<b>",)), swarm="<i>")
    page, metrics = status_page.html(status), status_page.metrics(status)
    assert "<script" not in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert r'{model="<script>alert(\"1\")</script>\\"} 1' in metrics


def test_the_page_loads_nothing_and_runs_nothing(board: SwarmStatistics) -> None:
    board.add(arrived(1))
    page = status_page.html(board.status(()))
    assert not re.search(r"https?://|src=|url\(|@import|<link|\son\w+=", page)


def test_metrics_have_the_form_that_prometheus_reads(board: SwarmStatistics) -> None:
    board.add(arrived(1, groups=2))
    line = re.compile(r'(# (HELP|TYPE) waggle_\w+ .+|waggle_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+)')
    text = status_page.metrics(board.status(()))
    assert all(line.fullmatch(each) for each in text.splitlines())
    assert 'waggle_reward_mean{specialty="bf"} 0.5' in text
    assert "waggle_groups_total 2" in text


def test_before_anybody_came_the_page_says_so(board: SwarmStatistics) -> None:
    page = status_page.html(board.status(()))
    assert "Nobody has shared anything lately" in page
    assert "Nobody yet." in page


def test_models_are_compared_as_they_were_marked_and_a_public_swarm_ranks_nobody(board: SwarmStatistics) -> None:
    assert "Nobody publishes answers yet" in status_page.html(board.status(()))
    board.add(arrived(1, model="<b>"))
    board.add(trusting(1))
    for ranked in (False, True):
        marks = Scoreboard(ranked=ranked)
        for node, (right, learned) in enumerate(((8, 3), (2, 0))):
            for epoch in (1, 2):
                origin = bytes([node] * 38)
                marks.add(
                    SheetScore(origin=origin, epoch=epoch, round=epoch, learned=learned, model="<b>", right=right, total=16)
                )
        board.add(LeaderboardChanged(comparison=marks.comparison()))
        page = status_page.html(board.status(()))
        assert "With peers 50%" in page
        assert "Alone 12%" in page
        assert "<b>" not in page
        assert ("nobody is ranked" in page) is not ranked
        assert ("16 of 32" in page) is ranked
        assert (f'<span class="key">{short_id(bytes([0] * 38))}</span>' in page) is ranked


@pytest.mark.parametrize(
    ("learned", "words"), [(3, "Nobody who trains this model alone"), (0, "Nobody who trains this model with")]
)
def test_a_page_with_one_side_only_says_that_there_is_nothing_to_compare(
    board: SwarmStatistics, learned: int, words: str
) -> None:
    board.add(arrived(1, model="m"))
    board.add(trusting(1))
    marks = Scoreboard(ranked=False)
    marks.add(SheetScore(origin=bytes(38), epoch=1, round=0, learned=learned, model="m", right=0, total=16))
    board.add(LeaderboardChanged(comparison=marks.comparison()))
    assert words in status_page.html(board.status(()))
