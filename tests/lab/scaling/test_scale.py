"""Test that the simulated directory keeps the cost of a node flat and adjusts its depth under churn."""

import hashlib
import json
import random
import sys
import time
from pathlib import Path

import pytest

from waggle.core.errors import LabError
from waggle.network.exchange import verification
from waggle.network.identity.keys import load_or_create
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.directory import SHARD_FULL
from waggle.tasks.questions import epoch_at
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.__main__ import main
from waggle_lab.scaling import scale
from waggle_lab.scaling.propagation import Propagation
from waggle_lab.scaling.scale_real import CredulousVerifier, random_groups
from waggle_lab.scaling.scale_simulated import NodeCost, SearchCost, simulate

PLAY = {"rounds": 2, "payload_kb": 22.0, "seconds": 6.0}


@pytest.fixture(scope="module")
def costs() -> dict[int, NodeCost]:
    return simulate((16, 160), churn=0.0, **PLAY)


def test_cost_stays_flat_as_the_swarm_grows_and_that_of_gathering_all_does_not(costs: dict[int, NodeCost]) -> None:
    assert costs[160].kb < 1.5 * costs[16].kb
    assert costs[160].kb_all_gather > 8 * costs[16].kb_all_gather
    assert costs[16].kb < costs[16].kb_all_gather


def test_every_node_still_finds_its_ten_payloads(costs: dict[int, NodeCost]) -> None:
    assert all(cost.payloads > 9 for cost in costs.values())
    assert costs[160].shard < SHARD_FULL


def test_under_churn_few_pulls_are_in_vain() -> None:
    cost = simulate((100,), churn=0.02, **PLAY)[100]
    assert cost.payloads > 6
    assert cost.kb < 600


def test_what_a_group_teaches_has_reached_half_of_the_nodes_within_a_few_rounds(costs: dict[int, NodeCost]) -> None:
    for cost in costs.values():
        assert 1 <= cost.half <= cost.half_by_few <= 8


def test_a_group_that_nobody_passes_on_reaches_only_those_who_pull_it() -> None:
    for chance, reached in ((0.0, False), (1.0, True)):
        spread = Propagation(chance, random.Random(1))
        spread.follow([b"a"])
        spread.record_share(b"a", "first")
        spread.record_pull(b"b", "first")
        assert not spread.count(1, (b"a", b"b", b"c", b"d", b"e"))
        spread.record_share(b"b", "second")
        spread.record_pull(b"c", "second")
        assert spread.count(2, (b"a", b"b", b"c", b"d", b"e")) == reached
        assert spread.rounds() == (2 if reached else -1)


def test_a_search_asks_all_in_a_small_swarm_and_a_few_in_a_large_one() -> None:
    few, many = (SearchCost(count, random.Random(1), samples=10).nodes_contacted for count in (8, 3000))
    assert 6 <= few <= 8
    assert 10 <= many < 60


def test_the_command_writes_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    assert main(["scale", "--simulated", "8,24", "--rounds", "1", "--out", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert set(figures["kb_per_node_round"]["simulated"]) == {"8", "24"}
    assert capsys.readouterr().out.count("all-gather") == 4


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["scale", "--simulated", "8,many"], "8,many are not sizes of swarms."),
        (["scale", "--real", "0"], "0 are not sizes of swarms."),
        (["scale", "--simulated", "8,-1"], "8,-1 are not sizes of swarms."),
        (["scale", "--rounds", "0"], "At least one round must be measured."),
    ],
)
def test_of_nothing_nothing_is_measured(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    output = capsys.readouterr()
    assert (output.out, output.err.splitlines()[0]) == ("", f"waggle: {why}")


@pytest.mark.parametrize(
    "words",
    [
        ["churn", "--nodes", "1"],
        ["churn", "--minutes", "nan"],
        ["fuzz", "all", "--minutes", "nan"],
        ["starter", "--minutes", "inf"],
        ["hostile", "--rounds", "0"],
        ["hostile", "--learning-rounds", "-1"],
        ["bench", "--repetitions", "0"],
        ["scale", "--churn", "2"],
        ["torture", "--hours", "-1"],
    ],
)
def test_an_amount_out_of_bounds_is_refused_in_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert f"argument {words[-2]}: {words[-1]} is not a " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["scale", "--out", "afile/figures.json"],
        ["torture", "--out", "afile"],
        ["churn", "--log", "afile/churn.jsonl"],
        ["starter", "--out", "afile", "--minutes", "0"],
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("afile").touch()
    assert main(words) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("waggle: ")
    assert "cannot be used: " in output.err.splitlines()[0]


def test_of_a_place_above_the_home_the_laboratory_does_not_say_that_home_is_to_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["scale", "--out", str(tmp_path)]) == 1
    assert "--home" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error_line", "advice"),
    [("unshare: unshare failed: Operation not permitted", "It needs root."), ("ValueError: of another kind", "")],
)
def test_root_is_asked_for_only_where_it_was_missing(
    error_line: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("network namespaces exist on Linux only")
    (tmp_path / "unshare").write_text(f"#!/bin/sh\necho Traceback >&2\necho '{error_line}' >&2\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(LabError) as refused:
        scale.play_real(2, rounds=1)
    assert refused.value.title == f"The real swarm of 2 could not be measured: {error_line}"
    assert refused.value.advice == advice


def test_where_the_network_is_measured_every_record_is_believed(tmp_path: Path) -> None:
    charter, origin, now = first_swarm(), load_or_create(tmp_path / "own.key"), time.time()
    record = rollout_record.RolloutRecord(
        origin=origin.peer_id, round=3, epoch=epoch_at(now), model="m", groups=tuple(random_groups(charter, origin, 3))
    )
    blob = rollout_record.encode(record, charter)
    announced = Announcement(
        charter=charter.digest, sha256=hashlib.sha256(blob).digest(), size=len(blob), round=3, epoch=epoch_at(now), specialties=1,
        model="m", expires=1,
    )  # fmt: skip
    judged = verification.verify_record(
        blob, announced, origin=origin.peer_id, charter=charter, verifier=CredulousVerifier(), now=now
    )
    assert [judged_group.group for judged_group in judged.groups] == list(record.groups)


@pytest.mark.slow
@pytest.mark.privileged
def test_a_real_swarm_of_two_is_measured_on_a_loopback_of_its_own() -> None:
    if sys.platform != "linux":
        pytest.skip("network namespaces exist on Linux only")
    try:
        results = scale.play_real(2, rounds=1)
    except LabError as refused:
        pytest.skip(f"no network namespace: {refused.title}")
    assert results["kb"] > results["payload_kb"] / 2
