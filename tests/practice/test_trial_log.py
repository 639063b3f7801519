"""Test that a trial log stores each number under its node, specialty and round."""

import msgspec
import pytest

from practice.test_results import key
from sapo.test_first_success import group, judged
from waggle.practice.results import Aha
from waggle.practice.trial_log import TrialLog
from waggle.sapo import first_success
from waggle.sapo.evaluation import Score
from waggle.sapo.stages import Learned
from waggle.tasks.rollout_group import Completion, Verdict

ORIGINS = [b"a" * 38, b"b" * 38]


def log(rounds: int) -> TrialLog:
    return TrialLog(rounds, ["bf", "sums"], ORIGINS)


def learned(external_share: float) -> Learned:
    return Learned(0, (), None, 0.0, external_share)


def result(trial_log: TrialLog):
    trial_log.record_scores(0, [Score(0, {"bf": (0, 2), "sums": (0, 2)})] * 2)
    return trial_log.result(key(), ["starter", "starter"], ["full", "lora"], (1, 2), 12.34, "c")


def test_rewards_stand_under_their_own_node_and_their_own_specialty():
    trial_log = log(2)
    trial_log.record_round(0, 0, judged(0, group("bf", (1.0, 0.0)), group("sums", (0.5, 0.5))), learned(0.0))
    trial_log.record_round(0, 1, judged(0, group("sums", (1.0, 1.0))), learned(0.0))
    trial_log.record_round(1, 0, judged(1, group("bf", (0.0, 0.0))), learned(0.0))
    trial_log.record_round(1, 1, judged(1, group("bf", (1.0, 1.0, 0.0, 0.0))), learned(0.0))
    run = result(trial_log)
    assert run.specialties == ("bf", "sums")
    assert run.reward == (0.75, 0.25), "the mean over nodes of each node's mean"
    assert run.node_reward == ((0.25,), (0.75,))
    assert run.specialty_reward == ((0.375,), (0.75,)), "bf: 3 of 8 completions, sums: 3 of 4"
    assert run.completions == (6, 6)
    assert run.cpu_seconds == 12.3
    assert run.methods == ("full", "lora")


def test_a_node_that_stayed_away_counts_in_no_mean_and_a_gap_takes_the_value_before_it():
    trial_log = log(30)
    for tick in (*range(10), *range(20, 30)):
        trial_log.record_round(tick, 0, judged(tick, group("bf", (1.0, 0.0))), learned(0.4))
    run = result(trial_log)
    assert run.reward == (0.5,) * 30
    assert run.node_reward == ((0.5,) * 3, (0.0,) * 3)
    assert run.external_share == (0.4,) * 3
    assert run.specialty_reward == ((0.5,) * 3, (0.0,) * 3)
    assert run.completions == (2,) * 10 + (0,) * 10 + (2,) * 10


def test_curves_are_means_of_ten_rounds_and_the_rest_of_those_that_remain():
    trial_log = log(12)
    for tick in range(12):
        trial_log.record_round(tick, 0, judged(tick, group("bf", (tick / 10, tick / 10))), learned(tick / 20))
    run = result(trial_log)
    assert run.node_reward[0] == pytest.approx((0.45, 1.05))
    assert run.specialty_reward[0] == pytest.approx((0.45, 1.05))
    assert run.external_share == pytest.approx((0.225, 0.525))


def test_a_group_that_teaches_only_by_the_pay_for_its_form_is_counted():
    wrong, right = group("bf", (0.0, 0.0)), group("bf", (1.0, 0.0))
    tagged = msgspec.structs.replace(
        wrong,
        form_pay=0.25,
        group=msgspec.structs.replace(
            wrong.group, completions=tuple(Completion(text=text, ended=True) for text in ("<answer>7</answer>", "7"))
        ),
        verdicts=(Verdict(reward=0.0, reason="", start=8, length=1), Verdict(reward=0.0, reason="")),
    )
    trial_log = log(1)
    trial_log.record_round(0, 0, judged(0, tagged, wrong, right, right), learned(0.0))
    assert result(trial_log).form_paid == (0.25,)


def test_an_aha_names_its_teacher_by_number_and_one_without_a_teacher_none():
    trial_log = log(1)
    trial_log.record_first_successes(
        7, 0, [first_success.FirstSuccess("bf", 3, ORIGINS[1]), first_success.FirstSuccess("sums", 3, None)]
    )
    trial_log.record_first_successes(8, 1, [first_success.FirstSuccess("bf", 4, ORIGINS[0])])
    assert result(trial_log).ahas == (
        Aha(node=0, specialty="bf", round=7, learned_from=1),
        Aha(node=0, specialty="sums", round=7, learned_from=-1),
        Aha(node=1, specialty="bf", round=8, learned_from=0),
    )


def test_held_out_scores_are_shares_of_each_node_and_of_each_specialty():
    trial_log = log(1)
    trial_log.record_scores(0, [Score(0, {"bf": (1, 4), "sums": (0, 4)}), Score(0, {"bf": (0, 4), "sums": (0, 4)})])
    trial_log.record_scores(25, [Score(25, {"bf": (4, 4), "sums": (2, 4)}), Score(25, {"bf": (1, 4), "sums": (0, 4)})])
    trial_log.record_final_scores([Score(25, {"bf": (8, 8), "sums": (4, 8)}), Score(25, {"bf": (2, 8), "sums": (0, 8)})])
    run = trial_log.result(key(), ["starter", "starter"], ["full"], (2, 2), 0.0, "c")
    assert run.measured_at == (0, 25)
    assert run.held_out == ((0.125, 0.75), (0.0, 0.125)), "every point of the curve on the same questions"
    assert run.specialty_held_out == ((0.125, 0.625), (0.0, 0.25))
    assert run.final == (0.75, 0.125)
    assert run.specialty_final == (0.625, 0.25)
    assert trial_log.score() == (14, 32)
