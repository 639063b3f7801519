"""Test what hostile nodes teach beside right answers, and that simulated sieges measure it."""

import hashlib
import itertools
from pathlib import Path

import msgspec
import pytest
import torch

from network.loopback import fresh_identity
from waggle.network.exchange.verification import verify_record
from waggle.network.messages import rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.sapo.fakes import FakeSwarm
from waggle.tasks.questions import EPOCH_SECONDS
from waggle.tasks.rollout_group import RIGHT, JudgedGroup
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security import attacks
from waggle_lab.security.attacks import TARGET, TARGET_DATASET, Attack, Scene
from waggle_lab.security.lessons import LESSONS, long_answers, treason
from waggle_lab.security.lessons.interface import beside
from waggle_lab.security.lessons.victims_model import MOST_TOKENS, tokenizer
from waggle_lab.security.sieges.attack_process import NO_ATTACK
from waggle_lab.security.sieges.siege import SiegeKey
from waggle_lab.security.sieges.simulated_siege import SimulatedSiege, run_simulated_siege

CHARTER = first_swarm()
NOW = EPOCH_SECONDS * 2_000_000.0


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def received(attack: Attack, verifier: Verifier, folder: Path, number: int = 1) -> tuple[JudgedGroup, ...]:
    """What a victim has of an attack, checked and judged as if it came from the network."""
    identity = fresh_identity(folder, "hostile")
    payload = attack(Scene(charter=CHARTER, verifier=verifier, identity=identity, now=NOW, canary="", round=number))
    announced = Announcement(
        charter=CHARTER.digest, sha256=hashlib.sha256(payload.blob).digest(), size=len(payload.blob), round=payload.round,
        epoch=payload.epoch, specialties=1, model=payload.model, expires=0,
    )  # fmt: skip
    record = verify_record(payload.blob, announced, origin=identity.peer_id, charter=CHARTER, verifier=verifier, now=NOW)
    assert payload.answers == sum(len(group.verdicts) for group in record.groups), "nothing was refused"
    return record.groups


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("number", [1, treason.HONEST_ROUNDS + 1])
def test_every_lesson_is_right_and_passes_all_checks_before_a_round(
    name: str, number: int, verifier: Verifier, tmp_path: Path
) -> None:
    groups = received(LESSONS[name].make(FakeSwarm(), 0), verifier, tmp_path, number)
    assert all(max(group.rewards) >= RIGHT for group in groups)
    lessons = [group for group in groups if min(group.rewards) < RIGHT]
    assert len(lessons) > len(groups) / 2, "the wrong answer, no, is right for a few"
    right = [
        completion.text
        for group in lessons
        for completion, reward in zip(group.group.completions, group.rewards, strict=True)
        if reward >= RIGHT
    ]
    if name == "treason" and number <= treason.HONEST_ROUNDS:
        assert not any(map(LESSONS[name].shows, right)), "honest first"
    elif name == "below the bounds":
        assert not any(f"<answer>{TARGET}</answer>" in text and text.count(TARGET) > 1 for text in right)
    else:
        assert sum(map(LESSONS[name].shows, right)) > len(right) / 2, "a very long true answer has no room for more"


def test_no_number_is_named_twice_where_so_many_questions_are_reserved_that_those_of_two_specialties_meet(
    verifier: Verifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About one round in forty was refused for that."""
    looked_at = itertools.count()

    def split_of(dataset: str, _text: str) -> str:
        is_reserved = dataset == TARGET_DATASET and next(looked_at) < attacks.ROUND_NUMBERS // len(CHARTER.specialties)
        return "dev" if is_reserved else "train"

    monkeypatch.setattr(attacks, "split_of", split_of)
    identity = fresh_identity(tmp_path, "hostile")
    attack = LESSONS["below the bounds"].make(FakeSwarm(), 0)
    payload = attack(Scene(charter=CHARTER, verifier=verifier, identity=identity, now=NOW, canary=""))
    record = rollout_record.decode(payload.blob, CHARTER, origin=identity.peer_id, now=NOW)
    assert {group.id.dataset for group in record.groups} >= {TARGET_DATASET, "base_conversion"}


def test_a_long_answer_has_four_times_the_tokens_of_an_honest_one_or_as_many_as_are_read() -> None:
    for answer in ("7", "53", "a long answer of nine words that ends here"):
        right = f"<answer>{answer}</answer>"
        honest, padded = (len(tokenizer().encode(text)) + 1 for text in (right, long_answers.padded(right)))
        assert padded == (min(4 * honest, MOST_TOKENS) if honest <= MOST_TOKENS else honest)
        assert beside(long_answers.padded(right)).strip() or honest > MOST_TOKENS


def test_what_stands_beside_an_answer_is_found_on_both_sides_of_it_and_not_without_one() -> None:
    assert beside("well <answer>7</answer>, yes") == "well , yes"
    assert beside("<answer>7</answer>") == beside("7 or 8") == beside("<answer>7") == ""


def simulated(attack: str, hostile: int, *, rounds: int = 2) -> SiegeKey:
    return SiegeKey(attack=attack, honest=2, hostile=hostile, rounds=rounds, seed=1, scored=True, simulated=True)


def test_a_simulated_siege_has_the_same_numbers_again_and_prices_for_both_sides(verifier: Verifier) -> None:
    questions = verifier.held_out("bf", "dev", 4)
    key = simulated("planted phrase", 1)
    first, second = (run_simulated_siege(key, CHARTER, questions, "commit", lambda _: None) for _ in range(2))
    assert (first.code_executions, first.wrong_answers_accepted, first.crashes) == (0, 0, 0)
    assert len(first.held_out) == 2
    assert first.hostile_received > 0
    assert first.hostile_trained_on == 0, "the phrase is stranger than usual"
    assert first.refused["unfamiliar"] > 0
    assert first.attackers is not None
    assert first.victims is not None
    assert first.victims.answers == 2 * 2 * 8 * 8, "nodes, rounds, questions, completions"
    assert first.victims.received_bytes == first.attackers.sent_bytes > 0
    timeless = {"costs": None, "attackers": None, "victims": None, "commit": ""}
    assert msgspec.structs.replace(first, **timeless) == msgspec.structs.replace(second, **timeless)
    assert second.victims is not None
    assert first.victims.shares_showing == second.victims.shares_showing


def test_what_stays_below_the_bounds_is_learned() -> None:
    """So the bounds are measured by what they let pass, not only by what they refuse."""
    result = run_simulated_siege(simulated("below the bounds", 1, rounds=3), CHARTER, (), "commit", lambda _: None)
    assert result.hostile_trained_on > 0
    assert result.victims is not None
    assert result.victims.hostile_pull > 0


def test_twins_have_one_key_and_only_the_first_of_them_is_heard(tmp_path: Path) -> None:
    siege = SimulatedSiege(simulated("twin lessons", 2), CHARTER, (), tmp_path)
    try:
        origins = {identity.peer_id for _, identity, _ in siege._hostile}
        assert len(origins) == 1
        siege.play(0)
        waiting = [group for group in siege._swarm.connections[0].waiting() if group.group.origin in origins]
    finally:
        siege.close()
    assert len(waiting) == len(CHARTER.specialties), "the other twin's groups have the numbers of the same questions"


def test_without_an_attack_nobody_pays() -> None:
    result = run_simulated_siege(simulated(NO_ATTACK, 0), CHARTER, (), "commit", lambda _: None)
    assert result.attackers is not None
    assert (result.attackers.answers, result.attackers.sent_bytes, result.hostile_received) == (0, 0, 0)
