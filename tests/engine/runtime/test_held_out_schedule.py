"""Test when held-out scores are due: first a few questions at once, then by time, and at most a fifth of it."""

from itertools import pairwise

import pytest

from waggle.engine.runtime.held_out_schedule import EARLY_SECONDS, SHARE, HeldOutPlan, HeldOutSchedule
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.sapo.evaluation import exam_of
from waggle.tasks.questions import Question

ALL = tuple(Question(dataset=dataset, seed=seed, text=f"{seed}?") for dataset in ("a", "b", "c") for seed in range(90))
FEW = tuple(question for question in ALL if question.seed < 21)
BY_TIME = HeldOutPlan(ALL, 0, FEW)


def score_of(number: int, questions: tuple[Question, ...], seconds: float) -> HeldOutScore:
    return HeldOutScore(
        round=number, at=0.0, right=1, total=len(questions), exam=exam_of(questions), early=questions == FEW, seconds=seconds
    )


def run(schedule: HeldOutSchedule, rounds: int, each: float, answer_s: float, first: int = 0) -> list[HeldOutScore]:
    """Play rounds of so many seconds each, and measure what is due at so many seconds an answer."""
    scores = []
    for number in range(first, first + rounds):
        if questions := schedule.due(number):
            scores.append(score_of(number, questions, answer_s * len(questions)))
            schedule.add_score(scores[-1])
        schedule.add_round(each)
    return scores


def test_a_slow_model_has_a_score_at_once_and_moves_visibly_within_half_an_hour():
    scores = run(HeldOutSchedule(BY_TIME), 100, 90.0, 0.4)
    assert [(score.round, score.total) for score in scores[:4]] == [(0, 63), (2, 63), (4, 63), (6, 63)]
    half_an_hour = [score for score in scores if score.round * 90 < EARLY_SECONDS]
    assert len(half_an_hour) == 10
    assert all(score.early for score in half_an_hour)
    assert [score.total for score in scores[10:]] == [270] * (len(scores) - 10), "then on all of them, and never back"
    gaps = [after.round - before.round for before, after in pairwise(scores[10:])]
    assert gaps == sorted(gaps), "ever rarer"
    assert max(gaps) <= 25


@pytest.mark.parametrize("answer_s", [0.01, 0.4, 3.0, 20.0])
@pytest.mark.parametrize("each", [0.5, 90.0, 600.0])
def test_scores_take_a_fifth_of_the_time_at_the_most_after_the_first(each, answer_s):
    rounds = 400
    scores = run(HeldOutSchedule(BY_TIME), rounds, each, answer_s)
    spent, trained = sum(score.seconds for score in scores[1:]), rounds * each
    assert spent <= SHARE * (trained + spent) + 1e-6
    assert len(scores) > 1 or answer_s >= 3.0, "some are measured where that is possible"


def test_a_fast_model_is_scored_as_often_as_the_starter():
    scores = run(HeldOutSchedule(BY_TIME), 200, 2.0, 0.01)
    assert [score.round for score in scores][:4] == [0, 25, 50, 75]


def test_a_restart_changes_nothing():
    whole = run(HeldOutSchedule(BY_TIME), 60, 70.0, 0.4)
    for stop in (1, 2, 13, 31, 45):
        first = run(HeldOutSchedule(BY_TIME), stop, 70.0, 0.4)
        rounds = [RoundSummary(round=number, at=0.0, reward=0.0, solved=0.0, seconds=70.0) for number in range(stop)]
        resumed = run(HeldOutSchedule(BY_TIME, rounds, first), 60 - stop, 70.0, 0.4, first=stop)
        assert first + resumed == whole


def test_in_another_swarm_the_first_score_is_small_and_soon_again():
    other = tuple(Question(dataset="d", seed=seed, text="?") for seed in range(60))
    rounds = [RoundSummary(round=number, at=0.0, reward=0.0, solved=0.0, seconds=70.0) for number in range(500)]
    assert HeldOutSchedule(BY_TIME, rounds, [score_of(0, other, 9.0), score_of(499, other, 9.0)]).due(500) == FEW


def test_a_home_that_has_scores_on_all_questions_goes_on_with_these():
    """Homes of earlier versions have no others, and did not say how long they took."""
    rounds = [RoundSummary(round=number, at=0.0, reward=0.0, solved=0.0, seconds=70.0) for number in range(5)]
    schedule = HeldOutSchedule(BY_TIME, rounds, [score_of(0, ALL, 0.0)])
    assert schedule.due(5) == ALL


def test_as_a_person_set_it_every_so_many_rounds_on_all_questions():
    scores = run(HeldOutSchedule(HeldOutPlan(ALL, 10, FEW)), 31, 90.0, 0.4)
    assert [(score.round, score.total) for score in scores] == [(0, 270), (10, 270), (20, 270), (30, 270)]


def test_after_a_score_without_a_readable_question_it_is_not_tried_each_round():
    schedule = HeldOutSchedule(BY_TIME)
    schedule.add_score(HeldOutScore(round=0, at=0.0, right=0, total=0, exam=exam_of(FEW), early=True, seconds=0.1))
    schedule.add_round(1.0)
    assert schedule.due(1) == ()


class CountedRounds(list[RoundSummary]):
    """Counts how often one of its rounds is read."""

    reads = 0

    def __getitem__(self, place):
        self.reads += 1
        return super().__getitem__(place)

    def __iter__(self):
        for place in range(len(self)):
            yield self[place]


def test_each_round_of_a_long_history_is_read_a_few_times_however_many_scores_it_has():
    rounds = CountedRounds(
        RoundSummary(round=number, at=0.0, reward=0.0, solved=0.0, seconds=1.0, completions=1) for number in range(3000)
    )
    scores = [score_of(number, ALL, 1.0) for number in range(0, 3000, 10)]
    schedule = HeldOutSchedule(HeldOutPlan(ALL, 10), rounds, scores)
    assert schedule._trained == len(rounds)
    assert rounds.reads < 5 * len(rounds)
