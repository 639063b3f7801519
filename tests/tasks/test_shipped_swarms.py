"""The swarms that come with Waggle: their hashes, which name them for good, their questions, and which models they are for."""

from contextlib import closing

import pytest

from waggle.tasks import shipped_swarms
from waggle.tasks.charter import Charter, check, decode, encode
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_steps, first_swarm

DIGESTS = {
    "First light": "62a0290f761895579273459917fa1b0e00609d0bc978821f2101fab9ee548dd8",
    "First steps": "5ca40372cf4edef19ddcb6f18838aebec7926428368050f9a2f96bb9cd2b4b2a",
}
each_swarm = pytest.mark.parametrize("charter", shipped_swarms.shipped_swarms(), ids=lambda charter: charter.name)


def test_their_hashes_are_those_by_which_members_meet():
    assert {charter.name: charter.digest.hex() for charter in shipped_swarms.shipped_swarms()} == DIGESTS


@each_swarm
def test_each_is_a_charter_that_anybody_could_have_written(charter: Charter):
    check(charter)
    assert decode(encode(charter), expected=charter.digest) == charter
    assert not charter.is_private


@each_swarm
def test_this_computer_makes_the_questions_that_each_agreed_on(charter: Charter):
    with closing(Verifier(charter)) as verifier:
        verifier.check_charter()


@each_swarm
def test_each_is_known_by_its_hash_and_its_name(charter: Charter):
    assert shipped_swarms.shipped_swarm(charter.digest.hex()) == charter
    assert shipped_swarms.shipped_swarm_called(f" {charter.name.upper()}") == charter
    assert shipped_swarms.is_shipped(charter)


def test_no_other_swarm_is_taken_for_a_shipped_one():
    assert shipped_swarms.shipped_swarm("") is None
    assert shipped_swarms.shipped_swarm("ab" * 32) is None
    assert shipped_swarms.shipped_swarm_called("First") is None


@pytest.mark.parametrize(
    ("weights", "suggested"),
    [(400_000, None), (134_515_008, first_steps()), (999_000_000, first_steps()), (3_000_000_000, None)],
)
def test_first_steps_is_suggested_to_small_language_models_in_first_light(weights: int, suggested: Charter | None):
    assert shipped_swarms.better_swarm(first_swarm(), weights) == suggested


def test_nothing_is_suggested_in_a_swarm_that_a_person_chose():
    assert shipped_swarms.better_swarm(first_steps(), 134_515_008) is None
    assert shipped_swarms.better_swarm(first_steps(), 400_000) is None
