"""The sharing strategies against numbers worked by hand."""

import math

import msgspec
import numpy as np
import pytest

from waggle.core.errors import SettingsError
from waggle.core.message import packed_message, unpacked_message
from waggle.core.settings import LIVE_SHARING_STRATEGIES
from waggle.sapo.sharing import guard, strategy, table
from waggle.sapo.sharing.interface import Candidates, PeerGroup
from waggle.sapo.training_groups import file_of
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict

NAMES = sorted(table())
RIGHT, HALF, CRUMBS = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0), (0.05, 0.0, 0.0, 0.05)
NONE, ALL = (0.0,) * 4, (1.0,) * 4
SINGLE = [3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)]  # advantages of a single success, one token each


def group(number: int, rewards=RIGHT, *, origin="p", dataset="bf", logp=None) -> JudgedGroup:
    completions = tuple(Completion(text="x", ended=True, logp=logp) for _ in rewards)
    return JudgedGroup(
        group=Group(origin=origin.encode() * 38, id=QuestionId(dataset, 5, number), completions=completions),
        question=Question(dataset=dataset, seed=number, text="?"),
        verdicts=tuple(Verdict(reward=reward, reason="") for reward in rewards),
    )


def own(*rewards, **also) -> list[JudgedGroup]:
    return [group(100 + i, each, origin="o", **also) for i, each in enumerate(rewards)]


def offer(mine=(NONE,) * 8, pool=(), local=4, external=4, seed=1) -> Candidates:
    mine = own(*mine) if mine and not isinstance(mine[0], JudgedGroup) else mine
    return Candidates(mine, list(pool), local, external, crumb_span=0.2, noise=np.random.default_rng(seed))


def peer(judged: JudgedGroup, advantage, *, logp=None, lengths=None) -> PeerGroup:
    lengths = lengths or (1,) * len(judged.rewards)
    as_floats = [None if values is None else np.asarray(values, np.float32) for values in (advantage, logp)]
    return PeerGroup(judged, lengths, *as_floats)


# what holds for every one of them


@pytest.mark.parametrize("name", NAMES)
def test_equal_noise_gives_the_same_training_sets_and_a_strategy_shares_no_memory(name):
    def sets():
        instance = strategy(name).make()
        pool = [group(i, (RIGHT, HALF)[i % 2], origin="pq"[i % 2]) for i in range(9)]
        return [instance.choose(offer((RIGHT, NONE, HALF, ALL) * 2, pool, seed=seed)) for seed in range(5)]

    assert sets() == sets()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("filtered", "success_gated")])
@pytest.mark.parametrize(("waiting", "external"), [(0, 0), (1, 1), (3, 3), (9, 4)])
def test_where_the_pool_is_short_own_groups_take_the_empty_places(name, waiting, external):
    pool = [group(i) for i in range(waiting)] + [group(20, NONE), group(21, ALL), group(22, CRUMBS)]
    training = strategy(name).make().choose(offer((RIGHT,) * 8, pool))
    assert (len(training.local), len(training.external)) == (8 - external, external)
    assert set(training.local) <= set(range(8))
    assert len(set(training.local)) == len(training.local)
    assert all(each in pool[:waiting] for each in training.external)


@pytest.mark.parametrize("name", NAMES)
def test_without_peers_every_place_is_ones_own(name):
    training = strategy(name).make().choose(offer((RIGHT,) * 8, [group(1)], local=8, external=0))
    assert (training.local, training.external) == (tuple(range(8)), ())


@pytest.mark.parametrize("name", NAMES)
def test_a_group_that_teaches_nothing_is_left_as_it_is(name):
    instance = strategy(name).make()
    instance.choose(offer())
    assert not instance.temper(peer(group(1, ALL), [0.0] * 4, logp=[-1.0] * 4)).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_strategy_declares_whether_it_needs_the_log_prob_at_the_sender(name):
    def tempered(sender_logp):
        return strategy(name).make().temper(peer(group(1, logp=sender_logp), SINGLE, logp=[-2.0] * 4)).tolist()

    assert (tempered(-1.0) != tempered(None)) == strategy(name).needs_sender_logp
    assert (name in LIVE_SHARING_STRATEGIES) == (not strategy(name).needs_sender_logp)


def test_truncated_importance_without_the_log_prob_at_the_sender_is_plain():
    judged = peer(group(1), SINGLE, logp=[-2.0] * 4)
    np.testing.assert_array_equal(strategy("truncated_importance").make().temper(judged), strategy("plain").make().temper(judged))


@pytest.mark.parametrize("name", ["gated", "adaptive", "informative", "balanced", "replay"])
def test_those_that_gate_keep_a_single_success_and_drop_the_misses(name):
    np.testing.assert_allclose(strategy(name).make().temper(peer(group(1), SINGLE)), [3**0.5, 0, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("name", ["plain", "filtered", "guard"])
def test_those_that_do_not_keep_both(name):
    np.testing.assert_allclose(strategy(name).make().temper(peer(group(1), SINGLE)), SINGLE, rtol=1e-6)


# how strongly a completion pulls


def test_own_probability_weighs_only_misses_and_token_by_token():
    tempered = strategy("own_probability").make().temper(
        peer(group(1, (1.0, 0.0)), [1, 1, -1, -1], logp=np.log([0.5, 0.25, 0.5, 0.01]), lengths=(2, 2))
    )  # fmt: skip
    np.testing.assert_allclose(tempered, [1, 1, -0.5, -0.01], rtol=1e-5)


def test_truncated_importance_takes_the_ratio_of_whole_sequences_and_never_more_than_one():
    judged = group(1, (1.0, 0.0), logp=math.log(0.5))  # the sender gave each completion a half
    instance = strategy("truncated_importance").make()
    # here the first has .5 * .2 = .1: ratio .2; the second .9 * .9 = .81: ratio 1.62, truncated
    tempered = instance.temper(peer(judged, [1, 1, -1, -1], logp=np.log([0.5, 0.2, 0.9, 0.9]), lengths=(2, 2)))
    np.testing.assert_allclose(tempered, [0.2, 0.2, -1, -1], rtol=1e-5)
    unknown = instance.temper(peer(group(1, (1.0, 0.0)), [1, -1], logp=[-9.0, -9.0]))
    np.testing.assert_allclose(unknown, [1, -1])


def test_capability_of_a_stranger_as_able_as_oneself_is_the_plain_advantage_with_the_sample_deviation():
    tempered = strategy("capability").make().temper(peer(group(1), SINGLE, logp=[-1.0] * 4))
    # mean 1/4, sample standard deviation 1/2
    np.testing.assert_allclose(tempered, [1.5, -0.5, -0.5, -0.5], rtol=1e-4)


def test_capability_raises_the_pull_of_an_abler_peer_and_lowers_its_baseline():
    instance = strategy("capability").make()
    instance.choose(offer((RIGHT, NONE, ALL, NONE), [group(1, HALF), group(2, HALF)]))  # own 1/4 against 1/2: omega 1/2
    # baseline .5 * .5 = .25, deviation sqrt(1/3), times 1 / omega = 2
    tempered = instance.temper(peer(group(1, HALF), [1, 1, -1, -1], logp=[-1.0] * 4))
    deviation = (1 / 3) ** 0.5
    np.testing.assert_allclose(tempered, np.array([0.75, 0.75, -0.25, -0.25]) * 2 / deviation, rtol=1e-4)


def test_capability_lowers_the_pull_of_a_weaker_peer_and_a_baseline_above_one_gives_way():
    instance = strategy("capability").make()
    instance.choose(offer([group(0, (1.0, 1.0, 1.0, 0.0), origin="o")], [group(1)]))  # own 3/4 against 1/4: omega 3
    weak = instance.temper(peer(group(1), SINGLE, logp=[-1.0] * 4))  # baseline 3 * 1/4 = 3/4, deviation 1/2, times 1/3
    np.testing.assert_allclose(weak, np.array([0.25, -0.75, -0.75, -0.75]) * 2 / 3, rtol=1e-4)
    lucky = instance.temper(peer(group(2, HALF), [1, 1, -1, -1], logp=[-1.0] * 4))  # 3 * 1/2 > 1: own 3/4 instead
    np.testing.assert_allclose(lucky, np.array([0.25, 0.25, -0.75, -0.75]) / (1 / 3) ** 0.5 / 3, rtol=1e-4)


def test_capability_squares_the_ratio_inside_the_clip_and_cuts_outside():
    judged = group(1, RIGHT, logp=2 * math.log(0.5))  # two tokens of a half each
    here = np.repeat([0.45, 0.39, 0.5, 0.55], 2)  # s = .9, .78 (below .8), 1, 1.1 (above 1)
    tempered = strategy("capability").make().temper(peer(judged, np.repeat(SINGLE, 2), logp=np.log(here), lengths=(2,) * 4))
    np.testing.assert_allclose(tempered[::2], [1.5 * 0.81, 0, -0.5, 0], rtol=1e-4)
    np.testing.assert_array_equal(tempered[::2], tempered[1::2])


def test_capability_is_the_mean_of_five_rounds_of_groups_that_teach():
    instance = strategy("capability").make()
    waiting = []
    for number, rewards in enumerate((HALF, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT)):  # the first is forgotten
        waiting.append(group(number, rewards))
        instance.choose(offer((RIGHT, NONE, ALL, CRUMBS), waiting))  # one that goes on waiting counts once
    # equal at last: omega 1
    np.testing.assert_allclose(instance.temper(peer(group(1), SINGLE, logp=[-1.0] * 4)), [1.5, -0.5, -0.5, -0.5], rtol=1e-4)


# which groups are trained on


@pytest.mark.parametrize(
    ("mine", "waiting", "local", "external"),
    [
        ((NONE,) * 8, 9, 0, 8),  # nothing own teaches: peers fill every place
        ((NONE,) * 8, 3, 5, 3),
        ((RIGHT, NONE, CRUMBS, ALL, NONE, NONE, HALF, NONE), 9, 2, 6),
        ((RIGHT,) * 8, 9, 4, 4),  # I of one's own are safe
        ((RIGHT,) * 8, 0, 8, 0),
    ],
)
def test_adaptive_gives_the_places_of_idle_own_groups_to_peers(mine, waiting, local, external):
    training = strategy("adaptive").make().choose(offer(mine, [group(i) for i in range(waiting)]))
    assert (len(training.local), len(training.external)) == (local, external)
    teaching = {i for i, rewards in enumerate(mine) if rewards in (RIGHT, HALF)}
    assert len(teaching & set(training.local)) == min(local, len(teaching))


def test_informative_takes_those_nearest_half_right_and_draws_among_equals():
    # variances 3/16, 1/4, 3/16, .0625 (half rewards), 1/4
    pool = [group(0, RIGHT), group(1, HALF), group(2, (1.0, 1.0, 0.0, 1.0)), group(3, (0.5, 0.0, 0.5, 0.0)), group(4, HALF)]
    instance = strategy("informative").make()
    chosen = [instance.choose(offer((RIGHT,) * 8, pool, local=5, external=3, seed=seed)).external for seed in range(20)]
    ids = [[judged.group.id.number for judged in each] for each in chosen]
    assert all(set(each[:2]) == {1, 4} for each in ids)
    assert {each[2] for each in ids} == {0, 2}


def test_balanced_asks_the_weakest_specialty_first_and_the_others_in_turn():
    mine = [group(1, HALF, origin="o", dataset="bf"), group(2, RIGHT, origin="o", dataset="arc_1d")]  # .5 and .25
    pool = [group(i, RIGHT, dataset="bf") for i in range(5)] + [group(10 + i, RIGHT, dataset="arc_1d") for i in range(2)]
    instance = strategy("balanced").make()
    datasets = [judged.question.dataset for judged in instance.choose(offer(mine, pool)).external]
    assert datasets == ["arc_1d", "bf", "arc_1d", "bf"]
    # .8 * .25 + .2 * 1 = .4 is still below .5; the next time .8 * .4 + .2 = .52 is above
    for expected in ("arc_1d", "bf"):
        better = [group(3, ALL, origin="o", dataset="arc_1d")]
        assert instance.choose(offer(better, pool)).external[0].question.dataset == expected
    unmet = [*pool, group(30, dataset="decimal_arithmetic")]
    assert instance.choose(offer(mine, unmet)).external[0].question.dataset == "decimal_arithmetic"


def test_replay_brings_rare_successes_back_from_the_next_round_on():
    instance = strategy("replay").make()
    often = (1.0, 1.0, 1.0, 1.0, 0.0)
    mine = own(RIGHT, NONE, ALL, often, CRUMBS, (0.5, 0.0, 0.5, 0.0), NONE, NONE)
    theirs = group(1, HALF)
    first = instance.choose(offer(mine, [theirs]))
    assert first.external == (theirs,)
    second = instance.choose(offer((NONE,) * 8))
    assert {judged.group.id.number for judged in second.external} == {100, 1}  # of own only the single success was rare
    assert len(second.local) == 6
    third = instance.choose(offer((NONE,) * 8, [group(i) for i in range(2, 9)]))
    assert set(second.external) == set(third.external[:2])
    assert len(third.external) == 4


def test_replay_never_takes_more_than_the_external_places():
    instance = strategy("replay").make()
    instance.choose(offer((RIGHT,) * 8))
    training = instance.choose(offer((RIGHT,) * 8, local=7, external=1))
    assert (len(training.local), len(training.external)) == (7, 1)


def externals(instance, rewards, rounds, logp=None) -> list[int]:
    """How many external groups each of so many rounds with the same own rewards takes."""
    pool = [group(i) for i in range(9)]
    return [len(instance.choose(offer(own(*(rewards,) * 8, logp=logp), pool)).external) for _ in range(rounds)]


def test_guard_halves_what_it_takes_while_reward_falls_and_gives_it_back():
    instance = guard.make()
    assert externals(instance, HALF, 3) == [4, 4, 4]
    # mean reward .5, then 0: .5 * .9^n falls under .6 * .5 * .998^n at n = 5 (.295 < .297)
    assert externals(instance, NONE, 8) == [4, 4, 4, 4, 2, 1, 0, 0]
    # at n = 8 the mean is .215; with reward .5 again it is .244, .269, .292, .313: above .3 * .998^12 = .293 at the fourth
    assert externals(instance, HALF, 8) == [0, 0, 0, 1, 2, 3, 4, 4]


def test_guard_fills_the_places_it_does_not_give_to_peers():
    instance = guard.make()
    externals(instance, HALF, 3)
    externals(instance, NONE, 8)
    training = instance.choose(offer((NONE,) * 8, [group(i) for i in range(9)]))
    assert (len(training.local), len(training.external)) == (8, 0)


def test_guard_notices_that_a_policy_always_says_the_same():
    instance = guard.make()
    assert externals(instance, HALF, 2, logp=-5.0) == [4, 4]
    # surprise 5, then 0: .9^n falls under .2 * .998^n at n = 16
    assert externals(instance, HALF, 17, logp=0.0) == [4] * 15 + [2, 1]


def test_guard_is_not_alarmed_by_a_reward_that_never_was():
    instance = guard.make()
    assert externals(instance, CRUMBS, 1) + externals(instance, NONE, 40) == [4] * 41  # a peak of .025 is noise


def test_filtered_trains_on_own_groups_that_teach_and_on_no_others():
    mine = (NONE, RIGHT, ALL, HALF, CRUMBS, NONE, RIGHT, NONE) * 2
    instance = strategy("filtered").make()
    assert instance.choose(offer(mine, local=8, external=0)).local == (1, 3, 6, 9, 11, 14)
    few = instance.choose(offer(mine, local=4, external=0)).local
    assert len(few) == 4
    assert set(few) < {1, 3, 6, 9, 11, 14}
    assert instance.choose(offer((NONE,) * 8, local=8, external=0)).local == ()


# the table


def test_every_strategy_has_the_name_of_its_file():
    for name, entry in table().items():
        assert entry.name == name
        assert file_of(entry.make()).endswith(f"/{name}.py")


def test_an_unknown_strategy_is_answered_with_those_there_are():
    with pytest.raises(SettingsError, match=r"no sharing strategy best\. There are adaptive, balanced"):
        strategy("best")


@pytest.mark.parametrize("name", NAMES)
def test_a_strategy_remembers_nothing_beside_its_memory_so_an_unfinished_run_can_be_saved(name):
    instance = strategy(name).make()
    for rewards in (RIGHT, NONE, HALF):
        instance.choose(offer((rewards,) * 8, [group(i) for i in range(9)]))
    assert set(vars(instance)) <= {"memory"}
    packed = msgspec.msgpack.encode(instance.memory, enc_hook=packed_message)
    assert msgspec.msgpack.decode(packed, type=type(instance.memory), dec_hook=unpacked_message) == instance.memory
    assert strategy(name).make().memory == type(instance.memory)(), "no two nodes share a memory"
