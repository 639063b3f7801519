"""The bounds on one peer: places, share of the gradient, strangeness of text. Numbers by hand, without a policy."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network.loopback import judged
from waggle.sapo.fakes import FakePrompt
from waggle.sapo.selection import inexcusable_tokens, pull_scales, share_places, strangeness, strangeness_limits
from waggle.sapo.stages import UNBOUNDED
from waggle.tasks.rollout_group import NEWCOMERS, JudgedGroup, Verdict

A, B, C, D, E = (bytes([i]) * 38 for i in range(1, 6))


def noise() -> np.random.Generator:
    return np.random.default_rng(1)


def of(origins: str) -> list[JudgedGroup]:
    return [judged("abcde".index(letter) + 1, i) for i, letter in enumerate(origins)]


def counts(groups: list[JudgedGroup]) -> dict[bytes, int]:
    return {origin: sum(group.group.origin == origin for group in groups) for origin in {group.group.origin for group in groups}}


def test_of_many_parties_none_gets_more_than_a_quarter_of_the_places() -> None:
    staying = share_places(of("aaaaaaaaaabcde"), 8, 0.25, noise())
    assert counts(staying) == {A: 2, B: 1, C: 1, D: 1, E: 1}


@pytest.mark.parametrize(("origins", "most"), [("aaaaaaaaaa", 8), ("aaaaaaaab", 4), ("aaaaaaaabc", 3), ("aaaaaaaabcd", 2)])
def test_where_there_are_few_parties_each_may_fill_an_equal_part(origins: str, most: int) -> None:
    assert counts(share_places(of(origins), 8, 0.25, noise()))[A] == most


def test_a_draw_without_bounds_is_one_from_the_whole_pool() -> None:
    pool = of("aaaaaaaaaaaaaaaabc")
    assert share_places(pool, 4, UNBOUNDED.share, noise()) == pool


def test_all_peers_of_an_address_range_are_one_party() -> None:
    crowd = [msgspec.structs.replace(group, source="192.0.2.0/24") for group in of("abab")]
    staying = share_places([*crowd, *of("cde")], 8, 0.25, noise())
    assert sum(group.source != "" for group in staying) == 2


@pytest.mark.parametrize(("known", "newcomers"), [("", 8), ("aaaaaaaa", 4), ("aabbcc", 2), ("aaabbbccce", 1), ("aabbccdd", 0)])
def test_newcomers_get_together_what_places_others_leave(known: str, newcomers: int) -> None:
    fresh = [msgspec.structs.replace(group, source=NEWCOMERS) for group in of("e" * 20)]
    staying = share_places([*fresh, *of(known)], 8, 0.25, noise())
    assert sum(group.source == NEWCOMERS for group in staying) == newcomers


def test_the_order_is_kept_and_who_stays_is_drawn() -> None:
    pool = of("aaaabcde")
    draws = [share_places(pool, 8, 0.25, np.random.default_rng(seed)) for seed in range(30)]
    assert all([pool.index(group) for group in draw] == sorted(pool.index(group) for group in draw) for draw in draws)
    assert {group.group.id.number for draw in draws for group in draw if group.group.origin == A} == {0, 1, 2, 3}


def test_strangeness_is_the_worst_stretch_of_eight_tokens() -> None:
    calm = np.full(40, -0.1)
    loud = calm.copy()
    loud[20:28] = -6.0
    assert strangeness(calm) == pytest.approx(0.8)
    assert strangeness(loud) == pytest.approx(48.0)
    assert strangeness(np.array([-3.0, -1.0])) == pytest.approx(4.0)
    assert strangeness(np.array([])) == 0.0
    excused = np.ones(40, bool)
    excused[20:28] = False
    assert strangeness(loud, excused) == pytest.approx(0.8)


def test_the_true_answer_and_its_tags_are_excused_and_nothing_else() -> None:
    text = "gold! <answer>42</answer>."
    verdict = Verdict(reward=1.0, reason="", start=14, length=2, exact=True)
    free = ~inexcusable_tokens(FakePrompt("").offsets(text), verdict, len(text) + 1)
    assert "".join(letter for letter, excused in zip(text, free[:-1], strict=True) if excused) == "<answer>42</answer>"
    assert free[-1]  # the stop token


@pytest.mark.parametrize("reward", [0.4, 1.0])
def test_of_an_answer_that_is_not_the_true_one_only_the_tags_are_excused_even_where_it_is_paid_in_full(reward: float) -> None:
    text = "<answer>42 gold</answer>"
    free = ~inexcusable_tokens(FakePrompt("").offsets(text), Verdict(reward=reward, reason="", start=8, length=7), len(text))
    assert "".join(letter for letter, excused in zip(text, free, strict=True) if excused) == "<answer></answer>"


def test_what_is_strange_is_measured_by_oneself_and_by_a_majority_of_the_others() -> None:
    honest = {A: [20.0], B: [22.0], C: [24.0]}
    assert strangeness_limits([5.0, 9.0], {D: [90.0]}) == {D: 9.0}
    assert strangeness_limits([9.0], {**honest, D: [90.0]})[D] == 22.0
    assert strangeness_limits([9.0], {A: [20.0], B: [22.0], D: [90.0]})[D] == 9.0  # too few to speak of
    assert strangeness_limits([30.0], {**honest, D: [90.0]})[D] == 30.0


def test_three_of_seven_in_collusion_do_not_make_a_phrase_usual() -> None:
    honest = {bytes([i]): [2.0] for i in range(4)}
    hostile = {bytes([10 + i]): [90.0] for i in range(3)}
    limits = strangeness_limits([3.0], {**honest, **hostile})
    assert all(limits[each] == 3.0 for each in hostile)


def test_who_pulls_most_is_brought_down_to_its_share_of_the_sum() -> None:
    scales = pull_scales(1.0, {A: 9.0, B: 0.5, C: 0.5}, 0.25)
    assert scales[B] == scales[C] == 1.0
    assert 9.0 * scales[A] == pytest.approx(0.25 * 11.0)


def test_a_lone_teacher_is_learned_from_whole_and_one_beside_a_weak_voice_nearly() -> None:
    assert pull_scales(0.0, {A: 3.0}, 0.25) == {A: 1.0}
    assert pull_scales(0.001, {A: 10.0}, 0.25)[A] == pytest.approx(0.5, abs=0.01)
    assert pull_scales(0.0, {}, 0.25) == {}
    assert pull_scales(0.0, {A: 0.0}, 0.25) == {A: 1.0}


def test_somebody_who_hardly_pulls_holds_nobody_down() -> None:
    scales = pull_scales(0.0, {A: 3.0, B: 3.0, C: 3.0, D: 0.01}, 0.25)
    assert min(scales.values()) > 0.7


@given(st.floats(0, 10), st.lists(st.floats(0, 10), max_size=12), st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_the_share_holds_for_any_pulls(own: float, pulls: list[float], share: float) -> None:
    peers = {bytes([i]): pull for i, pull in enumerate(pulls)}
    scales = pull_scales(own, peers, share)
    parties = sum(pull > 0 for pull in pulls) + (own > 0)
    most = max(share, 1 / max(1, parties)) * (own + sum(pulls))
    for each, pull in peers.items():
        assert pull * scales[each] == pytest.approx(min(pull, most))
        assert 0 <= scales[each] <= 1


def test_in_a_shared_source_every_peer_has_its_turn() -> None:
    relayed = [msgspec.structs.replace(group, source="relay") for group in of("aaaaaaaabc")]
    staying = share_places([*relayed, *of("ddeee")], 12, 0.25, noise())
    assert {A, B, C} <= set(counts(staying))
