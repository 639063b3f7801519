"""The page and the metrics of a node that trains: its own figures first, whoever else is here."""

import re
from html.parser import HTMLParser

import msgspec
import pytest

from network.loopback import judged
from waggle.core.peer_id import short_id
from waggle.network.identity.keys import name_of
from waggle.network.messages.events import GroupsArrived
from waggle.network.web import status_page, training_metrics
from waggle.network.web.prometheus import metric
from waggle.network.web.statistics import SwarmStatistics, SwarmStatus
from waggle.network.web.training_status import HeldOutStatus, SpecialtyScore, TrainingStatus
from waggle.tasks.shipped_swarms import first_swarm

HOSTILE = '</title><script>alert("1")</script>\\'
ALONE = TrainingStatus(
    name="brisk otter", fingerprint="abcd1234", model="Starter 2.1M", device="cpu", phase="contributing",
    says="Round 37: answering, alone: nobody else is here.", company="alone", connected=1, members=0, round=37,
    reward=0.25, solved=0.125, external_share=0.0, learning_rate=2e-5, entropy=1.5, tokens_per_second=1234.5,
    memory=1_234_567_890,
    held_out=HeldOutStatus(
        round=30, right=34, total=136,
        specialties=(SpecialtyScore(dataset="bf", title=HOSTILE, right=30, total=60),
                     SpecialtyScore(dataset="arc_1d", title="Grids", right=4, total=76)),
    ),
    rewards=((0, 0.0), (18, 0.2), (36, 0.25)), scores=((0, 0.05), (30, 0.25)),
)  # fmt: skip


class Reader(HTMLParser):
    """Collects the words of a page, its tags and its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.tags, self.attributes = "", list[str](), list[tuple[str, str | None]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


def read(status: SwarmStatus) -> Reader:
    reader = Reader()
    reader.feed(status_page.html(status))
    return reader


def status(training: TrainingStatus | None) -> SwarmStatus:
    return SwarmStatistics(first_swarm(), lambda: 1_800_000_000.0).status((), training)


def test_the_page_of_a_lone_node_begins_with_what_its_own_model_does() -> None:
    words = read(status(ALONE)).words
    for part in (
        "brisk otter abcd1234 trains Starter 2.1M on cpu.", "Round 37: answering, alone", "34 of 136, after round 30",
        "Nobody else has shared anything lately.", "30 of 60", "2e-05", "1.2 GB", "12% right",
    ):  # fmt: skip
        assert part in words
    assert "Nobody yet." not in words
    assert "members" not in words


def test_the_page_of_a_seed_has_nothing_of_a_node_that_trains() -> None:
    page, metrics = read(status(None)), status_page.metrics(status(None))
    assert "members" in page.words
    assert "Nobody yet." in page.words
    assert "The last round" not in page.words
    assert "waggle_node" not in metrics


def test_titles_and_names_are_shown_as_words_and_the_page_loads_nothing() -> None:
    named = msgspec.structs.replace(ALONE, name=HOSTILE, model=HOSTILE, device=HOSTILE, says=HOSTILE, fingerprint=HOSTILE)
    reader = read(status(named))
    assert "script" not in reader.tags
    assert reader.words.count(HOSTILE) == 6
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "srcdoc")]
    assert {value for name, value in reader.attributes if name == "href"} == {"/metrics", "/status.json"}


def test_where_others_share_they_follow_after_the_node_with_the_fingerprints_of_their_keys() -> None:
    board, other = SwarmStatistics(first_swarm()), bytes(37) + b"\x07"
    board.add(GroupsArrived(origin=other, round=3, model="!! UPDATE: evil.example", groups=(judged(1, 0),)))
    together = msgspec.structs.replace(ALONE, company="together", members=1)
    words = read(board.status((), together)).words
    assert "One other computer shares what was tried there" in words
    assert words.index("The last round") < words.index("One other computer")
    assert f"{name_of(other)} {short_id(other)}not named here" in words
    assert "evil.example" not in words
    assert "peer trains with ittogether, 1 connected" in words


def test_the_chart_is_numbers_within_its_frame() -> None:
    page = status_page.html(status(ALONE))
    _, _, width, height = map(float, re.findall(r'viewBox="(\S+) (\S+) (\S+) (\S+)" role="img" aria-label="Rewards', page)[0])
    for kind, count in (("reward", 3), ("held-out", 2)):
        (points,) = re.findall(rf'<polyline class="{kind}" points="([^"]*)"', page)
        places = [tuple(map(float, place.split(","))) for place in points.split()]
        assert len(places) == count
        assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
        assert places == sorted(places), "time goes to the right"
        assert places[-1][1] < places[0][1], "more is higher"


@pytest.mark.parametrize("rewards", [(), ((5, 0.0),), ((5, -0.5), (6, 1.0))])
def test_a_first_round_and_a_negative_reward_have_a_page(rewards: tuple[tuple[int, float], ...]) -> None:
    young = TrainingStatus(
        name="n", fingerprint="f", model="m", device="cpu", phase="preparing", says="s", company="connecting", connected=0,
        members=0, round=5, rewards=rewards,
    )  # fmt: skip
    reader = read(status(young))
    assert "not measured yet" in reader.words
    assert reader.tags.count("circle") == min(1, len(rewards))
    assert "None" not in reader.words
    assert "nan" not in reader.words
    metrics = status_page.metrics(status(young))
    assert "# TYPE waggle_node_held_out_ratio gauge\n# HELP" in metrics, "what was not measured has no value"
    assert "None" not in metrics


def test_metrics_have_help_and_type_before_their_values() -> None:
    lines = training_metrics.lines(msgspec.structs.replace(ALONE, model='a"b\\c\nd'))
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    for line in lines:
        if not line.startswith("#"):
            name = re.match(r"\w+", line)
            assert name
            where = lines.index(f"# TYPE {name[0]} gauge")
            assert lines[where - 1].startswith(f"# HELP {name[0]} ")
            assert where < lines.index(line)
    assert r'model="a\"b\\c\nd"' in lines[2]
    for line in (
        "waggle_node_round 37", 'waggle_node_phase{phase="contributing"} 1', 'waggle_node_phase{phase="paused"} 0',
        'waggle_node_company{company="alone"} 1', "waggle_node_peers 1", "waggle_node_training_peers 0",
        "waggle_node_reward_mean 0.25", "waggle_node_learning_rate 2e-05", "waggle_node_entropy_nats 1.5",
        "waggle_node_memory_bytes 1234567890", "waggle_node_held_out_ratio 0.25",
        'waggle_node_held_out_right{specialty="bf"} 30', 'waggle_node_held_out_questions{specialty="arc_1d"} 76',
    ):  # fmt: skip
        assert line in lines


def test_counts_are_written_to_the_last_digit_and_what_is_no_number_as_prometheus_writes_it() -> None:
    values = (12_345_678, 0.1234567, float("nan"), float("inf"), None)
    lines = metric("x", "counter", "y", [({}, value) for value in values])
    assert lines == ["# HELP x y", "# TYPE x counter", "x 12345678", "x 0.123457", "x NaN", "x +Inf"]
