"""First successes, and the peer whose success was learned from before."""

import numpy as np

from waggle.sapo.first_success import FirstSuccess, FirstSuccessTracker
from waggle.sapo.stages import Judged, Learned
from waggle.sapo.training_groups import Lesson
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict

ME, ANNA, BEN = b"m" * 38, b"a" * 38, b"b" * 38


def group(dataset: str, rewards: tuple[float, ...], origin: bytes = ME) -> JudgedGroup:
    completions = tuple(Completion(text="x", ended=True) for _ in rewards)
    return JudgedGroup(
        group=Group(origin=origin, id=QuestionId(dataset, 1, 1), completions=completions),
        question=Question(dataset=dataset, seed=1, text="?"),
        verdicts=tuple(Verdict(reward=reward, reason="") for reward in rewards),
    )


def judged(number: int, *groups: JudgedGroup) -> Judged:
    return Judged(number, groups, 1)


def learned(number: int, *lessons: tuple[JudgedGroup, tuple[int, ...]]) -> Learned:
    taught = tuple(
        Lesson(group=judged_group, effects=effects, pull=float(np.abs(effects).mean()), batch=None)
        for judged_group, effects in lessons
    )
    return Learned(number, taught, None, 0.0, 0.0)


def test_only_the_first_full_success_of_a_specialty_counts():
    tracker = FirstSuccessTracker()
    assert tracker.find(judged(0, group("bf", (0.0, 0.5)))) == ()
    assert tracker.find(judged(1, group("bf", (0.0, 1.0)), group("arc_1d", (0.0, 0.0)))) == (FirstSuccess("bf", 1, None),)
    assert tracker.find(judged(2, group("bf", (1.0, 1.0)), group("arc_1d", (1.0, 0.0)))) == (FirstSuccess("arc_1d", 2, None),)


def test_it_names_whose_right_answer_was_made_likelier_last():
    tracker = FirstSuccessTracker()
    tracker.record_lessons(learned(0, (group("bf", (1.0, 0.0), ANNA), (1, 0))), ME)
    tracker.record_lessons(learned(1, (group("bf", (1.0, 0.0), BEN), (1, 0))), ME)
    assert tracker.find(judged(2, group("bf", (1.0,)))) == (FirstSuccess("bf", 2, BEN),)


def test_own_groups_wrong_answers_and_what_was_not_trained_on_teach_no_aha():
    tracker = FirstSuccessTracker()
    tracker.record_lessons(
        learned(
            0,
            (group("bf", (1.0, 0.0), ME), (1, 0)),
            (group("bf", (1.0, 0.0), ANNA), (0, -1)),
            (group("bf", (0.4, 0.0), BEN), (1, 0)),
            (group("arc_1d", (1.0, 0.0), BEN), (1, 0)),
        ),
        ME,
    )
    assert tracker.find(judged(1, group("bf", (1.0,)))) == (FirstSuccess("bf", 1, None),)


def test_what_was_known_before_a_restart_is_no_aha_again():
    after_restart = FirstSuccessTracker(["bf"], {"arc_1d": ANNA})
    assert after_restart.find(judged(9, group("bf", (1.0,)), group("arc_1d", (1.0,)))) == (FirstSuccess("arc_1d", 9, ANNA),)


def test_only_new_teachers_of_specialties_that_are_still_unknown_are_named():
    tracker = FirstSuccessTracker(["bf"], {"arc_1d": ANNA})
    right = (1.0, 0.0)
    taught = learned(
        0,
        (group("bf", right, BEN), (1, 0)),
        (group("arc_1d", right, BEN), (1, 0)),
        (group("arc_1d", right, ANNA), (1, 0)),
        (group("sums", right, ANNA), (1, 0)),
    )
    assert tracker.record_lessons(taught, ME) == {"sums": ANNA}, "bf is known, and arc_1d was taught by Anna last, as before"
    assert tracker.record_lessons(taught, ME) == {}
    assert tracker.record_lessons(learned(1, (group("sums", right, BEN), (1, 0))), ME) == {"sums": BEN}
    assert tracker.find(judged(2, group("sums", right))) == (FirstSuccess("sums", 2, BEN),)
    assert tracker.record_lessons(learned(2, (group("sums", right, ANNA), (1, 0))), ME) == {}


def test_a_nearly_right_answer_is_no_aha_and_teaches_none():
    tracker = FirstSuccessTracker()
    assert tracker.record_lessons(learned(0, (group("bf", (0.98, 0.0), ANNA), (1, 0))), ME) == {}
    assert tracker.find(judged(1, group("bf", (0.98, 0.0)))) == ()


def test_a_right_answer_that_was_made_less_likely_teaches_no_aha():
    assert FirstSuccessTracker().record_lessons(learned(0, (group("bf", (1.0, 0.0), ANNA), (-1, 1))), ME) == {}
