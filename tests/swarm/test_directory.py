"""Shards, keys, and the choice of whom to pull from."""

from random import Random

import pytest

from waggle.swarm import directory
from waggle.swarm.announcement import Announcement
from waggle.tasks.charter import first_swarm

CHARTER = first_swarm()
PEERS = [i.to_bytes(38, "big") for i in range(1000)]


def announcement(number: int, epoch: int = 100) -> Announcement:
    digest = number.to_bytes(32, "big")
    return Announcement(charter=CHARTER.digest, sha256=digest, size=1, round=1, epoch=epoch, specialties=1, model="", expires=1)


ANNOUNCED = {peer: announcement(number) for number, peer in enumerate(PEERS[:20])}


def choose(**changes: object) -> list[bytes]:
    arguments = {"avoid": (), "tried": (), "count": 8, "random": Random(1), **changes}
    return directory.choose(ANNOUNCED, **arguments)  # type: ignore[arg-type]


def test_a_deeper_shard_lies_inside_the_one_above() -> None:
    for peer in PEERS:
        assert directory.shard_of(peer, 0) == 0
        for bits in range(directory.MAX_BITS):
            assert directory.shard_of(peer, bits + 1) >> 1 == directory.shard_of(peer, bits)


def test_shards_are_even() -> None:
    sizes = [sum(directory.shard_of(peer, 2) == shard for peer in PEERS) for shard in range(4)]
    assert min(sizes) > 200


@pytest.mark.parametrize(
    ("seen", "depths"),
    [(0, [3]), (191, [3]), (192, [3, 4]), (255, [3, 4]), (256, [4]), (5000, [4])],
)
def test_a_shard_that_splits_is_published_at_both_depths(seen: int, depths: list[int]) -> None:
    keys = directory.keys_to_publish(CHARTER.digest, PEERS[5], 3, seen)
    assert keys == [directory.key_of(CHARTER.digest, bits, directory.shard_of(PEERS[5], bits)) for bits in depths]


def test_the_deepest_shards_no_longer_split() -> None:
    assert len(directory.keys_to_publish(CHARTER.digest, PEERS[5], directory.MAX_BITS, 999)) == 1


def test_readers_look_at_every_shard_in_turn() -> None:
    keys = {directory.key_to_read(CHARTER.digest, 2, Random(seed)) for seed in range(60)}
    assert keys == {directory.key_of(CHARTER.digest, 2, shard) for shard in range(4)}


def test_k_and_two_more_are_chosen_at_random() -> None:
    assert len(set(choose())) == 10
    assert choose() != choose(random=Random(2))


def test_neither_those_to_avoid_nor_what_was_tried_is_chosen() -> None:
    tried = [(peer, ANNOUNCED[peer].sha256) for peer in PEERS[:5]]
    assert set(choose(avoid=PEERS[5:17], tried=tried)) == set(PEERS[17:20])


def test_half_of_those_chosen_are_known_where_so_many_have_something_new() -> None:
    trusted = set(PEERS[:6])
    for seed in range(20):
        assert len(trusted.intersection(choose(known=trusted, random=Random(seed)))) >= 5
    assert len(set(choose(known=trusted, count=20))) == 20


def test_announcing_anothers_payload_does_not_spoil_it() -> None:
    tried = [(PEERS[500], ANNOUNCED[PEERS[0]].sha256)]
    assert PEERS[0] in choose(tried=tried, count=20)


@pytest.mark.parametrize(("epoch", "current"), [(93, False), (94, True), (101, True), (102, False)])
def test_only_what_would_be_accepted_counts_as_current(epoch: int, current: bool) -> None:
    assert directory.is_current(announcement(0, epoch), CHARTER, now=100 * 600.0) == current
