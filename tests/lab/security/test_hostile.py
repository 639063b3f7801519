"""Test a small siege over real hivemind, and the figures of many."""

import argparse
import json
from functools import partial
from pathlib import Path

import msgspec
import pytest

from waggle.core.errors import VerifierError
from waggle.network.open_node import open_node
from waggle.practice.results import Book
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionKey
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.__main__ import main
from waggle_lab.security.hostile import _keys, add_arguments, figures, learning_ratio, table
from waggle_lab.security.sieges.attack_process import ALL_ATTACKS, NAMES, NO_ATTACK, POISON
from waggle_lab.security.sieges.price_table import comparisons
from waggle_lab.security.sieges.price_table import table as prices
from waggle_lab.security.sieges.prices import AttackerPrice, VictimPrice
from waggle_lab.security.sieges.siege import Costs, HonestNodes, Siege, SiegeKey, _AttackControl, run_siege

COSTS = Costs(cpu_seconds=1.0, memory_mb=100.0, seconds=9.0)


@pytest.fixture(scope="module")
def charter() -> Charter:
    return first_swarm()


def siege(attack: str, hostile: int, seed: int, held_out: float | None, **changes: object) -> Siege:
    key = SiegeKey(attack=attack, honest=6, hostile=hostile, rounds=2, seed=seed)
    result = Siege(
        key=key, commit="c", code_executions=0, crashes=0, verifier_restarts=0, wrong_answers_accepted=0, honest_groups_lost=0,
        honest_received=5, hostile_received=1, hostile_trained_on=0, refused={},
        held_out=() if held_out is None else (held_out,) * 6, trigger_rate=0.0,
        costs=COSTS,
    )  # fmt: skip
    return msgspec.structs.replace(result, **changes)


async def test_two_nodes_hold_out_against_one_that_tries_everything(charter: Charter, verifier: Verifier) -> None:
    questions: list[Question] = verifier.held_out("bf", "dev", 4)
    progress: list[int] = []
    key = SiegeKey(attack=ALL_ATTACKS, honest=2, hostile=1, rounds=6, seed=1)
    result = await run_siege(key, charter, questions, "commit", progress.append)
    assert progress == [1, 2, 3, 4, 5, 6]
    assert (result.code_executions, result.crashes, result.wrong_answers_accepted, result.honest_groups_lost) == (0, 0, 0, 0)
    assert result.honest_received > 0
    assert result.hostile_received + sum(result.refused.values()) > 0
    assert len(result.held_out) == 2
    assert result.trigger_rate == 0.0
    assert result.attacked
    assert result.tried, "and something else beside the poison"
    assert result.played is not None
    assert result.played >= 6
    assert result.costs.cpu_seconds > 0
    assert result.costs.memory_mb > 100


async def test_the_honest_play_on_until_a_slow_attack_was_made_as_often_as_asked_for_and_they_heard_of_each_other(
    charter: Charter, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress, played, play = list[int](), list[int](), HonestNodes.play

    def count(self: HonestNodes, number: int) -> None:
        play(self, number)
        played.append(number)

    monkeypatch.setattr(HonestNodes, "play", count)
    resting = partial(open_node, is_paused=lambda: len(played) < 8)  # as on a computer that plays eight rounds between two looks
    monkeypatch.setattr("waggle_lab.security.sieges.siege.open_node", resting)
    key = SiegeKey(attack="crowd of made-up names", honest=2, hostile=1, rounds=2, seed=1)
    result = await run_siege(key, charter, (), "commit", progress.append)
    assert progress == [1, 2]
    assert result.attacked is not None
    assert result.played is not None
    assert result.attacked >= 2
    assert result.played >= 8
    assert result.honest_received > 0


def test_the_ratio_is_taken_seed_by_seed_against_the_same_nodes_without_attackers() -> None:
    sieges = [
        siege(NO_ATTACK, 0, 1, 0.2), siege(ALL_ATTACKS, 2, 1, 0.1), siege(NO_ATTACK, 0, 2, 0.4), siege(ALL_ATTACKS, 2, 2, 0.4),
        siege(ALL_ATTACKS, 2, 3, 0.9),
    ]  # fmt: skip
    ratio = learning_ratio(sieges, 2)
    assert ratio is not None
    assert ratio.points == (0.5, 1.0)
    assert learning_ratio(sieges, 4) is None


def test_figures_add_up_what_got_through() -> None:
    sieges = [
        siege("zip bomb", 2, 0, None, crashes=1),
        siege(NO_ATTACK, 0, 1, 0.2, trigger_rate=0.25),
        siege(ALL_ATTACKS, 2, 1, 0.1, code_executions=1, trigger_rate=0.5),
    ]
    totals = figures(sieges)
    assert (totals["crashes"], totals["code_executions"], totals["honest_groups_lost"]) == (1, 1, 0)
    assert (totals["heldout_ratio_2_of_8"], totals["trigger_rate_2_of_8"], totals["trigger_rate_clean"]) == (0.5, 0.5, 0.25)
    assert "| zip bomb | 2 | 0 | - | 0 | - | 1 |" in table(sieges)
    assert "forbidden_to_scorers" not in totals, "nobody counted it"
    assert "honest_received_least" not in totals, "nobody said how many rounds were played"


def test_a_scorer_ended_for_what_it_tried_on_a_text_is_counted_and_one_that_took_too_long_is_not(
    charter: Charter, tmp_path: Path
) -> None:
    key = SiegeKey(attack=ALL_ATTACKS, honest=0, hostile=1, rounds=1, seed=1)
    honest_nodes = HonestNodes(key, charter, (), tmp_path)
    honest_nodes.verifier.close()
    datasets = tuple(DatasetLevels(name, ({},)) for name in ("countdown", "coin_flip"))  # which no charter may name
    honest_nodes.verifier = Verifier(charter, restarted=honest_nodes.verifier_restarts.append, datasets=datasets)
    try:
        code, slow = honest_nodes.verifier.questions([QuestionKey("countdown", 3), QuestionKey("coin_flip", 3)])
        for question, answer in ((code, "__import__('os')"), (slow, "1e999999999")):
            with pytest.raises(VerifierError):
                honest_nodes.verifier.judge_strangers([(question, Completion(text=f"<answer>{answer}</answer>", ended=True))])
        result = honest_nodes.report("commit", (), 0, tmp_path / "canary", COSTS, _AttackControl(None))
    finally:
        honest_nodes.verifier.close()
    assert (result.code_executions, result.forbidden, result.verifier_restarts) == (0, 1, 2)
    assert figures([msgspec.structs.replace(result, played=1)])["forbidden_to_scorers"] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--attacks", "tickling"], "There is no attack tickling."),
        (["--hostile", "8"], "--hostile takes numbers from 1 to 7."),
        (["--bounds", "iron"], "There are no bounds iron."),
        (["--lessons", "juggling"], "There is no lesson juggling."),
        (["--seeds", "one"], "--seeds one is not a list of numbers."),
    ],
)
def test_bad_options_are_refused_in_words(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hostile", "--out", str(tmp_path), *options]) == 1
    assert says in capsys.readouterr().err


def keys(*options: str) -> list[SiegeKey]:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return list(_keys(parser.parse_args([*options, "--out", "."])))


def test_what_honest_nodes_hear_of_each_other_is_held_against_the_same_nodes_without_attackers() -> None:
    sieges = [
        siege(NO_ATTACK, 2, 0, None, honest_received=100, played=2),
        siege("flood", 2, 0, None, honest_received=200, played=5),
        siege("zip bomb", 2, 0, None, honest_received=95, played=2),
    ]
    totals = figures(sieges)
    assert totals["honest_received_least"] == pytest.approx(0.8)
    assert totals["honest_received_least_under"] == "flood, 2 hostile"


def test_whether_a_siege_is_scored_is_said_by_its_key_and_not_by_its_length() -> None:
    same = (
        "--attacks",
        "poison,none",
        "--hostile",
        "2",
        "--bounds",
        "default",
        "--seeds",
        "0",
        "--rounds",
        "150",
        "--lessons",
        "",
    )
    siege_keys = keys(*same, "--learning-rounds", "150")
    assert [key.scored for key in siege_keys] == [False, False, True, True, True, True]
    assert len(set(siege_keys)) == 6
    assert [key.hostile for key in siege_keys if key.attack == POISON and key.scored] == [1, 2], "alone, and in collusion"


def test_lessons_are_taught_seed_by_seed_to_the_same_nodes_as_without_them() -> None:
    apart = ("--attacks", "", "--hostile", "2", "--bounds", "", "--seeds", "", "--lesson-seeds", "3,4", "--lesson-rounds", "9")
    lesson_keys = keys(*apart, "--lessons", "treason")
    assert [(key.attack, key.honest, key.hostile, key.seed) for key in lesson_keys] == [
        ("none", 6, 0, 3), ("treason", 6, 2, 3), ("none", 6, 0, 4), ("treason", 6, 2, 4),
    ]  # fmt: skip
    assert {(key.rounds, key.scored, key.simulated) for key in lesson_keys} == {(9, True, True)}


def test_the_price_of_the_attackers_stands_beside_that_of_the_victims() -> None:
    def simulated(attack: str, hostile: int, held_out: float, right: int, tokens: float, shows: float) -> Siege:
        result = siege(attack, hostile, 1, held_out)
        victims = VictimPrice(
            answers=100, right=right, tokens_per_answer=tokens, shares_showing={"long answers": shows}, hostile_pull=0.25,
            cpu_seconds=10.0 + hostile, received_bytes=2048 * hostile,
        )  # fmt: skip
        attackers = AttackerPrice(answers=64 * hostile, sent_bytes=2048 * hostile, cpu_seconds=1.5)
        key = msgspec.structs.replace(result.key, scored=True, simulated=True)
        return msgspec.structs.replace(result, key=key, victims=victims, attackers=attackers)

    sieges = [simulated(NO_ATTACK, 0, 0.4, 50, 6.0, 0.0), simulated("long answers", 2, 0.3, 40, 9.0, 0.5)]
    (price,) = comparisons(sieges)
    assert (price["attacker_answers"], price["attacker_kib"], price["attacker_cpu_s"]) == (128, 4, 1.5)
    assert (price["heldout_ratio"], price["right_lost"], price["victim_cpu_s"]) == (0.75, 0.2, 2.0)
    assert (price["tokens_per_answer"], price["tokens_per_answer_without"]) == (9.0, 6.0)
    assert (price["shown"], price["shown_without"], price["victim_kib"]) == (0.5, 0.0, 4)
    assert "| long answers | 2 | 2 | 1 | 128 | 4 | 1.5 | 0.75 | 0.2 | 9.0 | 6.0 | 0.5 | 0.0 | 0.25 | 4 | 2.0 | - | - |" in prices(
        sieges
    )
    live = [
        msgspec.structs.replace(each, key=msgspec.structs.replace(each.key, simulated=False), honest_received=groups, played=2)
        for each, groups in zip(sieges, (8, 6), strict=True)
    ]
    assert comparisons(live)[0]["honest_received_ratio"] == 0.75
    assert figures(sieges)["honest_groups_received"] == 0, "a simulated siege is no live one"
    assert learning_ratio(sieges, 2) is None


def test_early_sieges_are_told_apart_by_whether_they_were_scored() -> None:
    recorded = Book(Path(__file__).parents[2] / "measured/hostile/sieges.jsonl", Siege)
    assert {(early_siege.key.scored, bool(early_siege.held_out)) for early_siege in recorded.runs} == {
        (True, True),
        (False, False),
    }


def test_sieges_that_are_finished_are_not_laid_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = siege(NAMES[0], 2, 0, None)
    done = msgspec.structs.replace(done, key=msgspec.structs.replace(done.key, rounds=30, split="test"))
    (tmp_path / "sieges.jsonl").write_bytes(msgspec.json.encode(done) + b"\n")
    options = ["--attacks", NAMES[0], "--hostile", "2", "--seeds", "", "--bounds", "", "--lessons", "", "--out", str(tmp_path)]
    assert main(["hostile", *options]) == 1
    assert "Add --resume" in capsys.readouterr().err
    assert main(["hostile", *options, "--resume"]) == 0
    assert json.loads((tmp_path / "figures.json").read_text())["honest_groups_received"] == 5
