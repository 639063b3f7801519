"""Series for charts, against values worked out by hand."""

import pytest
from msgspec.structs import replace

from waggle.core.confidence_interval import interval_of
from waggle.gui.state import chart_series
from waggle.protocol.events import Aha, HeldOutMeasured, HeldOutScore, RoundSummary, TrainingHistory
from waggle.protocol.state import State, apply


def summary(number: int, *, at: float = 0.0, seconds: float = 10.0, reward: float = 0.5) -> RoundSummary:
    return RoundSummary(round=number, at=at, reward=reward, solved=reward, seconds=seconds)


def test_history_and_recent_rounds_become_one() -> None:
    state = State(history=(summary(1), summary(3, reward=0.1)), rounds=(summary(3, reward=0.9), summary(4)))
    assert [(round_summary.round, round_summary.reward) for round_summary in chart_series.rounds(state)] == [
        (1, 0.5),
        (3, 0.9),
        (4, 0.5),
    ]


def test_the_long_curve_of_scores_stays_whole_as_further_ones_come() -> None:
    scores = [HeldOutScore(round=25 * number, at=0.0, right=1, total=10) for number in range(1002)]
    state = apply(State(), TrainingHistory(rounds=(), held_out=tuple(scores[:1000])))
    for score in scores[999:]:
        state = apply(state, HeldOutMeasured(score=score))
    assert chart_series.scores(state) == scores


def test_scores_on_other_questions_are_another_curve() -> None:
    results = ((0, 270, ""), (25, 270, ""), (50, 270, "a"), (75, 270, "b"), (100, 60, "b"), (125, 60, "b"))
    scores = [HeldOutScore(round=number, at=0.0, right=1, total=total, exam=exam) for number, total, exam in results]
    assert [[score.round for score in exam] for exam in chart_series.by_question_set(scores)] == [[0, 25, 50], [75], [100, 125]]
    assert chart_series.by_question_set([]) == []


def test_the_trend_is_a_mean_of_neighbours() -> None:
    assert chart_series.trend([0, 3, 6, 3], 3) == [1.5, 3.0, 4.0, 4.5]


def test_the_interval_is_wilsons() -> None:
    low, high = interval_of(38, 100)
    assert (low, high) == (pytest.approx(0.2909, abs=1e-3), pytest.approx(0.4778, abs=1e-3))
    assert interval_of(0, 50)[0] == 0.0
    assert interval_of(0, 0) == (0.0, 1.0)


def test_elapsed_counts_work_and_bridges_thinned_history() -> None:
    assert chart_series.seconds_worked([summary(1), summary(2), summary(5)]) == [10.0, 20.0, 50.0]


def test_scores_stand_where_their_round_ended() -> None:
    rounds = [summary(0), summary(1), summary(2)]
    scores = [HeldOutScore(round=n, at=0.0, right=1, total=10) for n in (0, 1, 3, 9)]
    assert chart_series.event_positions(scores, rounds, "elapsed") == [0.0, 10.0, 30.0, 30.0]
    assert chart_series.event_positions(scores, rounds, "round") == [0.0, 1.0, 3.0, 9.0]
    ahas = [Aha(round=index, at=0.0, specialty="Logic") for index in (0, 2)]
    assert chart_series.event_positions(ahas, rounds, "elapsed") == [10.0, 30.0], "at the end of their round"
    assert chart_series.event_positions(ahas, rounds, "round") == [1.0, 3.0]
    assert chart_series.round_positions(rounds, "round") == [1.0, 2.0, 3.0], "the first round is round 1"


def test_a_pause_is_found_between_neighbours_only() -> None:
    rounds = [summary(1, at=100), summary(2, at=1110), summary(9, at=9000)]
    assert chart_series.pauses(rounds) == [chart_series.PauseSpan(100, 1100)]


def test_what_peers_earned_begins_when_they_came_and_ends_when_they_left() -> None:
    alone, rewards = summary(1), [None] * 5 + [0.2] * 10 + [None] * 3 + [0.4] * 10 + [None] * 2
    rounds = [replace(alone, round=number, external_reward=reward) for number, reward in enumerate(rewards)]
    (trend,) = chart_series.peers_rewards(rounds)
    assert [place for place, _ in trend] == [*range(5, 15), *range(18, 28)]
    assert trend[0][1] == pytest.approx(0.2)
    assert trend[-1][1] == pytest.approx(0.4)
    assert chart_series.peers_reward_now([trend], len(rounds)) == trend[-1][1]
    assert chart_series.peers_rewards([alone] * 5) == []
    assert chart_series.peers_reward_now([], 5) is None


def test_what_peers_earned_is_not_drawn_through_the_rounds_without_them() -> None:
    rewards = [None] * 10 + [0.2] * 11 + [None] * 79 + [0.4] * 21 + [None] * 20
    rounds = [replace(summary(number), external_reward=reward) for number, reward in enumerate(rewards)]
    first, second = chart_series.peers_rewards(rounds)
    assert [place for place, _ in first] == [*range(10, 21)]
    assert [place for place, _ in second] == [*range(100, 121)]
    assert {round(reward, 9) for _, reward in first} == {0.2}  # neither trend reaches into the other
    assert {round(reward, 9) for _, reward in second} == {0.4}
    assert chart_series.peers_reward_now([first, second], len(rounds)) is None  # they left 20 rounds ago
    assert chart_series.peers_reward_now([first, second], 125) == pytest.approx(0.4)


@pytest.mark.parametrize(("top", "ticks"), [(0.1, [0, 0.02, 0.04, 0.06, 0.08, 0.1]), (0.47, [0, 0.1, 0.2, 0.3, 0.4, 0.5])])
def test_steps_are_round(top: float, ticks: list[float]) -> None:
    assert chart_series.value_ticks(top) == pytest.approx(ticks)


@pytest.mark.parametrize(("low", "high", "step"), [(0.0, 34.0, 5.0), (0.0, 3000.0, 600.0), (0.0, 400_000.0, 86400.0)])
def test_steps_in_time_are_round(low: float, high: float, step: float) -> None:
    ticks = chart_series.time_ticks(low, high)
    assert ticks[:2] == [0.0, step]
    assert len(ticks) <= 8


def test_whole_steps_are_round_and_few() -> None:
    assert chart_series.integer_ticks(0, 812) == [0, 100, 200, 300, 400, 500, 600, 700, 800]
    assert chart_series.integer_ticks(1, 5) == [1, 2, 3, 4, 5]
    assert chart_series.integer_ticks(3, 3) == [3]


def test_a_reward_chart_holds_its_wildest_round() -> None:
    assert chart_series.reward_ceiling([0.1] * 99 + [0.9], [0.1] * 100, [[(99, 0.2)]]) == 0.9
    assert chart_series.reward_ceiling([], [], []) == 0.1
