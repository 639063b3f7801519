"""The events made of what a round yields."""

from dataclasses import replace

import pytest

from sapo.test_round import node
from waggle.core.peer_id import text_of
from waggle.engine.runtime import round_events
from waggle.sapo.question_mix import FLOOR, QuestionMix
from waggle.sapo.stages import Gathered
from waggle.tasks.charter import Charter, Specialty

OTTER, WREN = b"o" * 38, b"w" * 38


def test_refusals_of_a_round_are_told_for_each_peer_and_in_all():
    refusals = {OTTER: {"teaches_nothing": 5}, WREN: {"teaches_nothing": 2, "too_long": 1}}
    event = round_events.groups_gathered_event(Gathered(4, local=1, external=2, waiting=3, refusals=refusals))
    assert event.refused_by_peer == {text_of(OTTER): refusals[OTTER], text_of(WREN): refusals[WREN]}
    assert event.refused == {"teaches_nothing": 7, "too_long": 1}
    assert (event.local, event.external, event.waiting) == (1, 2, 3)


CHARTER = Charter(
    name="Two kinds",
    specialties=(
        Specialty(dataset="gcd", title="Divisors", levels=("easy", "hard")),
        Specialty(dataset="lcm", title="Multiples"),
    ),
)


def test_the_share_of_each_level_is_what_questions_are_drawn_by(verifier):
    mix = QuestionMix({"gcd/0": 1.0, "gcd/1": 0.0, "lcm/0": 0.0})
    divisors, multiples = round_events.question_shares(replace(node(verifier), charter=CHARTER, mix=mix))
    least = pytest.approx(FLOOR / 3, abs=1e-4)
    assert (divisors.specialty, multiples.specialty) == ("Divisors", "Multiples")
    assert divisors.levels == {"easy": pytest.approx(1 - FLOOR * 2 / 3, abs=1e-4), "hard": least}
    assert list(divisors.levels) == ["easy", "hard"]
    assert multiples.levels == {"standard": least}


def test_a_specialty_that_a_person_does_not_train_on_has_no_share(verifier):
    (multiples,) = round_events.question_shares(replace(node(verifier), charter=CHARTER, specialties=("lcm",)))
    assert (multiples.specialty, multiples.levels) == ("Multiples", {"standard": 1.0})
