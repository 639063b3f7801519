"""Test the statistics of studies against numbers worked out by hand."""

import math
from collections.abc import Sequence

import msgspec
import pytest

from waggle.practice.results import BIN, Aha, Key, Run
from waggle_lab.study import statistics
from waggle_lab.study.comparison import Lead, against_alone, best_rate, comparisons, configuration_label, rate_label
from waggle_lab.study.plan import names_in
from waggle_lab.study.report.tables import result_table
from waggle_lab.study.statistics import Estimate, estimate


def make_run(
    configuration: str = "8/0",
    *,
    setting: str = "sparse",
    seed: int = 0,
    rate: float = 3e-4,
    split: str = "test",
    reward: Sequence[float] = (0.1,) * 40,
    per_round: int = 64,
    measured_at: Sequence[int] | None = None,
    held_out: Sequence[Sequence[float]] = ((0.0, 0.2), (0.0, 0.4)),
    models: Sequence[str] = ("starter", "starter"),
    ahas: Sequence[Aha] = (),
) -> Run:
    """Two nodes, two specialties; what the node scores rise to, the specialties share."""
    rounds = len(reward)
    bins = -(-rounds // BIN)
    at = measured_at or (0, rounds)
    return Run(
        key=Key(setting=setting, configuration=configuration, seed=seed, learning_rate=rate, rounds=rounds, split=split),
        commit="0123456789abcdef",
        cpu_seconds=1800.0,
        models=tuple(models),
        specialties=("basic_arithmetic", "bf"),
        reward=tuple(reward),
        completions=(per_round,) * rounds,
        node_reward=((0.1,) * bins,) * len(models),
        specialty_reward=((0.1,) * bins,) * 2,
        external_share=(0.0,) * bins,
        entropy=(1.0,) * bins,
        measured_at=tuple(at),
        held_out=tuple(map(tuple, held_out)),
        specialty_held_out=((0.0,) * (len(at) - 1) + (0.5,), (0.0,) * (len(at) - 1) + (0.25,)),
        ahas=tuple(ahas),
    )


def scored_run(configuration: str, score: float, **more: object) -> Run:
    return make_run(configuration, held_out=((0.0, score), (0.0, score)), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("points", "mean", "half"),
    [((1, 2, 3), 2.0, 2.48417), ((1, 3), 2.0, 12.7062), ((5, 5, 5, 5), 5.0, 0.0), ((0, 1) * 15, 0.5, 0.19368)],
)
def test_an_interval_is_students(points: Sequence[float], mean: float, half: float) -> None:
    interval = estimate(points)
    assert (interval.mean, interval.low, interval.high) == pytest.approx((mean, mean - half, mean + half), abs=1e-4)


def test_one_seed_has_no_interval_and_settles_nothing() -> None:
    interval = estimate([7.0])
    assert interval == Estimate(7.0, 7.0, 7.0, (7.0,))
    assert interval.is_one_seed
    assert not interval.excludes(0.0)


def test_cumulative_reward_is_the_sum_over_rounds() -> None:
    assert statistics.reward_cumulative(make_run(reward=(0.1, 0.2, 0.3))) == pytest.approx(0.6)


def test_a_round_that_nobody_played_earns_nothing() -> None:
    played = make_run(reward=(0.1, 0.1, 0.3, 0.3), per_round=10)
    half = msgspec.structs.replace(played, completions=(10, 0, 10, 0))
    assert statistics.reward_cumulative(half) == pytest.approx(0.4)
    assert statistics.reward_per_thousand(half) == pytest.approx(statistics.reward_per_thousand(played))
    assert statistics.reward_per_thousand(msgspec.structs.replace(played, completions=(0, 0, 0, 0))) == 0.0


def test_the_area_is_interpolated_at_round_200_and_ends_with_a_shorter_run() -> None:
    long = make_run(reward=(0.1,) * 300, measured_at=(0, 100, 300), held_out=((0.0, 0.0, 0.4), (0.0, 0.2, 0.6)))
    assert statistics.held_out(long) == pytest.approx((0.0, 0.1, 0.5))
    assert statistics.heldout_auc(long) == pytest.approx((0.05 * 100 + 0.2 * 100) / 200)
    assert statistics.heldout_final(long) == pytest.approx(0.5)
    short = make_run(reward=(0.1,) * 100, measured_at=(0, 100), held_out=((0.0, 0.1), (0.0, 0.1)))
    assert statistics.heldout_auc(short) == pytest.approx(0.05)


def test_cost_is_counted_in_completions() -> None:
    run = make_run(reward=(0.1,) * 20, per_round=100, measured_at=(0, 10, 20), held_out=((0.0, 0.2, 0.4),) * 2)
    assert statistics.completions_at(run) == (0, 1000, 2000)
    assert statistics.reward_per_thousand(run) == pytest.approx(1.0)
    assert statistics.heldout_auc_within(run, 1500) == pytest.approx((100 + 125) / 1500)
    assert [statistics.heldout_at(run, budget) for budget in (0, 1500, 2000, 9999)] == pytest.approx([0.0, 0.3, 0.4, 0.4])


def test_rounds_until_a_smoothed_reward() -> None:
    stepped = make_run(reward=(0.0,) * 20 + (0.125,) * 20)  # the window holds 8 high rounds when its mean is .05
    assert [statistics.rounds_until(stepped, level) for level in (0.05, 0.1, 0.15)] == [28, 36, None]
    assert statistics.rounds_until(make_run(reward=(0.05,) * 30), 0.05) == 20
    assert statistics.moving_mean((1.0, 3.0)) == (2.0,)


def test_a_median_counts_never_as_latest() -> None:
    assert statistics.median_round([40, None, 30]) == 40
    assert statistics.median_round([40, None, None]) is None


@pytest.mark.parametrize(
    ("heights", "fall", "last"),
    [
        ((0.1, 0.2), 0.0, 1.0),
        ((0.1, 0.05), 0.5, 0.5),
        ((0.1, 0.08, 0.2, 0.15), 0.25, 0.75),
        ((0.1, 0.05, 0.2), 0.5, 1.0),
        ((0.019, 0.0), 0.0, 0.0),  # too low for a fall to mean anything
        ((0.0, 0.0), 0.0, 1.0),
    ],
)
def test_how_steady_a_run_is(heights: Sequence[float], fall: float, last: float) -> None:
    run = make_run(reward=[height for height in heights for _ in range(20)])
    assert statistics.largest_fall(run) == pytest.approx(fall)
    assert statistics.last_over_peak(run) == pytest.approx(last)


def test_pairs_are_the_seeds_that_both_have() -> None:
    ours, theirs = {0: 2.0, 1: 4.0, 2: 6.0, 9: 100.0}, {0: 1.0, 1: 2.0, 2: 3.0, 8: 7.0}
    assert statistics.paired_difference(ours, theirs) == estimate([1, 2, 3])
    ratio = statistics.paired_ratio(ours, theirs)
    assert ratio is not None
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))
    assert statistics.paired_difference({0: 1.0}, {1: 1.0}) is None
    assert statistics.paired_ratio({0: 1.0}, {1: 1.0}) is None
    assert statistics.paired_ratio({0: 1.0}, {0: 0.0}) is None


def test_a_ratio_is_averaged_on_the_logarithm() -> None:
    ratio = statistics.paired_ratio({0: 1.0, 1: 4.0}, {0: 1.0, 1: 1.0})
    assert ratio is not None
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((2.0, 2 * 2**-12.7062, 2 * 2**12.7062))
    wild = statistics.paired_ratio({0: 1e-40, 1: 1e40}, {0: 1.0, 1: 1.0})
    assert wild is not None
    assert math.isfinite(wild.high)


def test_scores_by_specialty_and_by_model() -> None:
    run = make_run(models=("wide", "deep"))
    assert statistics.final_by_specialty(run) == {"basic_arithmetic": 0.5, "bf": 0.25}
    assert statistics.final_by_model(run) == {"wide": 0.2, "deep": 0.4}
    assert statistics.final_by_model(make_run())["starter"] == pytest.approx(0.3)


def test_the_score_at_the_end_is_that_on_more_questions_where_there_is_one() -> None:
    run = msgspec.structs.replace(make_run(models=("wide", "deep")), final=(0.6, 0.8), specialty_final=(0.9, 0.5))
    assert statistics.heldout_final(run) == pytest.approx(0.7)
    assert statistics.final_by_model(run) == {"wide": 0.6, "deep": 0.8}
    assert statistics.final_by_specialty(run) == {"basic_arithmetic": 0.9, "bf": 0.5}
    assert statistics.held_out(run)[-1] == pytest.approx(0.3), "the curve's own"


def test_only_what_a_node_asks_about_can_be_a_success_of_it() -> None:
    assert (
        statistics.first_successes([make_run(), msgspec.structs.replace(make_run(), specialty_counts=(1, 2))]).possible == 4 + 3
    )


def test_first_successes_with_and_without_another() -> None:
    first_seed = make_run(ahas=[Aha(node=0, specialty="bf", round=4), Aha(node=1, specialty="bf", round=10, learned_from=0)])
    second_seed = make_run(seed=1, ahas=[Aha(node=1, specialty="bf", round=6)])
    successes = statistics.first_successes([first_seed, second_seed, make_run(seed=2)])
    assert (successes.achieved, successes.possible) == (3, 12)
    assert successes.share_after_others is not None
    assert successes.share_after_others.points == (0.5, 0.0)  # the third seed has none to share out
    assert (successes.median_round_after_others, successes.median_round_alone) == (10, 5)
    nothing = statistics.first_successes([make_run()])
    assert nothing.share_after_others is nothing.median_round_alone is None


def test_configurations_stand_in_the_papers_order_and_splits_apart() -> None:
    names = ("4/4 gated", "default", "2/6", "8/0", "4/4", "8/0-filtered", "6/2", "4/4 capable")
    runs = [make_run(name) for name in names]
    runs += [make_run("8/0", split="dev"), make_run("8/0", setting="diversified"), make_run("8/0", setting="another")]
    settings = comparisons(runs, split="test")
    assert [comparison.name for comparison in settings] == ["sparse", "diversified", "another"]
    assert [arm.name for arm in settings[0].arms] == [
        *("8/0", "8/0-filtered", "6/2", "4/4", "2/6", "default", "4/4 capable", "4/4 gated")
    ]
    assert [len(arm.runs) for comparison in settings for arm in comparison.arms] == [1] * 10


def test_other_rates_and_lengths_never_share_an_arm() -> None:
    runs = [make_run(seed=0, rate=1e-3), make_run(seed=0), make_run(seed=1), make_run(reward=(0.1,) * 20)]
    shorter, longer = sorted(comparisons(runs, split="test"), key=lambda comparison: comparison.rounds)
    assert (longer.name, shorter.name) == ("sparse", "sparse, 20 rounds")
    assert [(arm.name, len(arm.runs)) for arm in longer.arms] == [("8/0", 2), ("8/0 at 1e-3", 1)]
    assert (longer.budget, shorter.budget) == (2560, 1280)
    assert [rate_label(rate) for rate in (3e-4, 1.5e-3, 1e-10)] == ["3e-4", "1.5e-3", "1e-10"]


@pytest.mark.parametrize(
    ("alone", "ours", "verdict"),
    [
        ((0.1, 0.1, 0.1), (0.2, 0.21, 0.22), "higher"),
        ((0.2, 0.21, 0.22), (0.1, 0.1, 0.1), "lower"),
        ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), "undecided"),
        ((0.1,), (0.2,), "one seed"),
        ((0.0, 0.0, 0.0), (0.2, 0.21, 0.22), "higher"),  # no ratio to nothing: the difference decides
    ],
)
def test_a_verdict_says_whether_the_interval_excludes_no_difference(
    alone: Sequence[float], ours: Sequence[float], verdict: str
) -> None:
    runs = [scored_run("8/0", score, seed=seed) for seed, score in enumerate(alone)]
    runs += [scored_run("default", score, seed=seed) for seed, score in enumerate(ours)]
    (comparison,) = comparisons(runs, split="test")
    reference, arm = comparison.arms
    advantage = against_alone(arm, comparison, statistics.heldout_final)
    assert isinstance(advantage, Lead)
    assert advantage.verdict == verdict
    assert against_alone(reference, comparison, statistics.heldout_final) is None


def test_the_best_rate_has_the_highest_held_out_area() -> None:
    tried = [(1e-4, 0.1), (3e-4, 0.3), (1e-3, 0.2)]
    runs = [scored_run("4/4", score + 0.01 * seed, rate=rate, seed=seed, split="dev") for rate, score in tried for seed in (0, 1)]
    (comparison,) = comparisons(runs, split="dev")
    assert best_rate(comparison.arms) == 3e-4


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ("8/0-filtered", "8/0-filtered"),
        ("4/4:plain:grpo:crumbs=0.2", "4/4, crumbs 0.2"),
        ("4/4:gated:dapo", "4/4 gated dapo"),
        ("4/4:adaptive:grpo:crumbs=0.2:questions=8", "4/4 adaptive, crumbs 0.2, 8 drawn"),
        ("default:form=0.25", "default, 0.25 for the form"),
    ],
)
def test_a_configuration_is_named_in_words(configuration: str, words: str) -> None:
    assert configuration_label(configuration) == words


def test_an_interval_that_only_touches_a_value_does_not_leave_it_out() -> None:
    touching = Estimate(1.5, 1.0, 2.0, (1.0, 2.0))
    assert [touching.excludes(value) for value in (0.99, 1.0, 1.5, 2.0, 2.01)] == [True, False, False, False, True]


def test_the_last_rounds_are_a_window_and_not_the_very_last_one() -> None:
    assert statistics.last_over_peak(make_run(reward=(0.1,) * 39 + (0.0,))) == pytest.approx(0.95)


def test_the_mean_height_of_no_width_is_the_height_there() -> None:
    assert statistics.mean_height((5, 10), (1.0, 2.0), 5) == 1.0
    assert statistics.mean_height((5, 10), (1.0, 2.0), 0) == 1.0


def test_of_equally_good_rates_the_lowest_is_best() -> None:
    runs = [scored_run("4/4", 0.2, rate=rate, split="dev") for rate in (1e-3, 3e-4, 5e-4)]
    (comparison,) = comparisons(runs, split="dev")
    assert best_rate(comparison.arms) == 3e-4


def test_of_equally_many_runs_the_longer_ones_bear_the_settings_name() -> None:
    for runs in ([make_run(), make_run(reward=(0.1,) * 20)], [make_run(reward=(0.1,) * 20), make_run()]):
        assert [comparison.name for comparison in comparisons(runs, split="test")] == ["sparse", "sparse, 20 rounds"]


def test_training_alone_at_another_rate_is_compared_with_training_alone_too() -> None:
    runs = [scored_run("8/0", 0.1, seed=seed) for seed in (0, 1)] + [scored_run("8/0", 0.2, rate=1e-3)]
    (comparison,) = comparisons(runs, split="test")
    alone, other = comparison.arms
    assert against_alone(alone, comparison, statistics.heldout_final) is None
    advantage = against_alone(other, comparison, statistics.heldout_final)
    assert advantage is not None
    assert advantage.difference.mean == pytest.approx(0.1)


@pytest.mark.parametrize("options", ["", ":updates=4"])
def test_published_rules_are_compared_with_their_own_control_alone(options: str) -> None:
    names = names_in(f"published{options}")
    (comparison,) = comparisons([scored_run(name, 0.1) for name in names], split="test")
    assert comparison.alone is not None
    assert comparison.alone.configuration == f"8/0:plain:grpo:crumbs=0.2{options}"
    unpaired = [arm.name for arm in comparison.arms if against_alone(arm, comparison, statistics.heldout_final) is None]
    assert unpaired == [comparison.alone.name]
    assert all(f"against {comparison.alone.name}" in head.columns for head in result_table(comparison).heads[2:])


def test_without_anybody_alone_nothing_is_compared() -> None:
    (comparison,) = comparisons([scored_run("4/4", 0.1), scored_run("8/0-filtered", 0.1)], split="test")
    assert comparison.alone is None


def test_the_budget_is_what_the_thriftiest_run_generated() -> None:
    (comparison,) = comparisons([make_run(), make_run("4/4", per_round=32), make_run("6/2", per_round=48)], split="test")
    assert comparison.budget == 40 * 32
