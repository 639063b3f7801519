"""Shards, keys, and the choice of whom to pull from."""

import os
from random import Random

import msgspec
import pytest

from waggle.network.messages import directory, rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.rollout_record import MIN_BLOB, RolloutRecord
from waggle.tasks.shipped_swarms import first_swarm
from waggle.tasks.questions import EPOCH_SECONDS, QuestionId
from waggle.tasks.rollout_group import Completion, Group

CHARTER = first_swarm()
EPOCH, OLDEST = 2_900_000, 6  # OLDEST: epochs of the charter's age window
PEERS = [i.to_bytes(38, "big") for i in range(1000)]


def announcement(number: int, epoch: int = 100) -> Announcement:
    digest = number.to_bytes(32, "big")
    return Announcement(charter=CHARTER.digest, sha256=digest, size=1, round=1, epoch=epoch, specialties=1, model="", expires=1)


ANNOUNCED = {peer: announcement(number) for number, peer in enumerate(PEERS[:20])}


def choose(**changes: object) -> list[bytes]:
    arguments = {"avoid": (), "tried": (), "count": 8, "random": Random(1), **changes}
    return directory.choose_peers(ANNOUNCED, **arguments)  # type: ignore[arg-type]


def test_a_deeper_shard_lies_inside_the_one_above() -> None:
    for peer in PEERS:
        assert directory.shard_of(peer, 0) == 0
        for bits in range(directory.MAX_BITS):
            assert directory.shard_of(peer, bits + 1) >> 1 == directory.shard_of(peer, bits)


def test_shards_are_even() -> None:
    sizes = [sum(directory.shard_of(peer, 2) == shard for peer in PEERS) for shard in range(4)]
    assert min(sizes) > 200


@pytest.mark.parametrize(
    ("peers_in_shard", "depths"),
    [(0, [2, 3]), (23, [2, 3]), (24, [3]), (47, [3]), (48, [3, 4]), (63, [3, 4]), (64, [3, 4]), (5000, [3, 4])],
)
def test_a_shard_that_splits_or_merges_is_published_at_both_depths(peers_in_shard: int, depths: list[int]) -> None:
    keys = directory.keys_to_publish(CHARTER.digest, PEERS[5], 3, peers_in_shard)
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


def test_at_every_depth_above_stand_as_many_representatives_as_in_any_shard_and_others_in_each_epoch() -> None:
    def at_top(epoch: int) -> set[bytes]:
        top = directory.key_of(CHARTER.digest, 0, 0)
        return {peer for peer in PEERS if top in directory.keys_to_publish(CHARTER.digest, peer, 4, 40, epoch)}

    assert len(PEERS) / 16 * 0.5 < len(at_top(1)) < len(PEERS) / 16 * 2
    assert at_top(1) != at_top(2)


def test_a_full_shard_splits_an_empty_one_merges_and_a_newcomer_goes_where_the_others_are() -> None:
    depth = directory.DirectoryDepth()
    depth.observe([0] * 63)
    assert depth.bits == 0
    depth.observe([0] * 64)
    assert depth.bits == 1
    depth.observe([1] * 16)
    assert depth.bits == 1
    depth.observe([1] * 15)
    assert depth.bits == 0
    depth.observe([5] * 40)
    assert depth.bits == 5
    for _ in range(40):
        depth.observe([])
    assert depth.bits == 0


def test_a_few_peers_cannot_send_others_down_and_nobody_goes_below_the_floor() -> None:
    depth = directory.DirectoryDepth()
    depth.observe([directory.MAX_BITS] * (directory.ENOUGH - 1))
    assert depth.bits == 0
    depth.observe([directory.MAX_BITS] * 1000)
    depth.observe([directory.MAX_BITS] * 1000)
    assert depth.bits == directory.MAX_BITS


def test_light_clients_have_no_word_on_the_depth_and_count_for_how_full_it_is() -> None:
    depth = directory.DirectoryDepth()
    depth.observe([0] * directory.ENOUGH, light=directory.SHARD_FULL - directory.ENOUGH - 1)
    assert (depth.bits, depth.peers_in_shard) == (0, directory.SHARD_FULL - 1)
    depth.observe([0] * directory.ENOUGH, light=directory.SHARD_FULL - directory.ENOUGH)
    assert depth.bits == 1


def test_the_depth_of_a_light_client_does_not_grow_with_what_its_gateways_show() -> None:
    depth = directory.DirectoryDepth(most=0)
    for _ in range(20):
        depth.observe([3] * 200, light=100)
        assert (depth.bits, depth.peers_in_shard) == (0, 300)


class Hall:
    """Honest nodes that use the directory by its rules, and made-up names that are stored wherever that is possible."""

    def __init__(self, honest: int) -> None:
        self.now, self.random = 0.0, Random(1)
        self.entries: dict[str, dict[bytes, int]] = {}
        self.depths: dict[bytes, directory.DirectoryDepth] = {}
        for peer in PEERS[:honest]:
            self.come(peer)

    def come(self, peer: bytes) -> None:
        self.depths[peer] = directory.DirectoryDepth(clock=lambda: self.now)

    def make_up(self, names: int, claimed: int) -> None:
        for peer in PEERS[-names:]:
            for bits in range(directory.MAX_BITS + 1):
                key = directory.key_of(CHARTER.digest, bits, directory.shard_of(peer, bits))
                self.entries.setdefault(key, {})[peer] = claimed

    def look(self, times: int) -> float:
        """All nodes announce, until the next look, and read. Returns how many honest nodes each read shows."""
        listings, made_up = (
            [],
            {key: {p: d for p, d in each.items() if p not in self.depths} for key, each in self.entries.items()},
        )
        for _ in range(times):
            self.now, self.entries = self.now + 2.0, {key: dict(each) for key, each in made_up.items()}
            for peer, depth in self.depths.items():
                for key in directory.keys_to_publish(
                    CHARTER.digest, peer, depth.bits, depth.peers_in_shard, int(self.now // 600)
                ):
                    self.entries.setdefault(key, {})[peer] = depth.bits
            for depth in self.depths.values():
                result = self.entries.get(directory.key_to_read(CHARTER.digest, depth.bits, self.random), {})
                listings.append(len(result.keys() & self.depths.keys()))
                depth.observe(list(result.values()))
        return sum(listings) / len(listings)


@pytest.mark.parametrize("claimed", [4, directory.MAX_BITS])
def test_made_up_names_do_not_scatter_a_small_swarm(claimed: int) -> None:
    hall = Hall(honest=20)
    assert hall.look(10) == 20
    hall.make_up(25, claimed)
    assert hall.look(300) > 18


def test_a_newcomer_finds_a_large_swarm_past_a_crowd_of_made_up_names_at_the_top() -> None:
    hall = Hall(honest=300)
    hall.look(30)
    there = {depth.bits for depth in hall.depths.values()}
    assert there == {3}
    hall.make_up(60, directory.MAX_BITS)
    for peer in PEERS[300:310]:
        hall.come(peer)
    hall.look(20)
    assert {depth.bits for depth in hall.depths.values()} == there


def test_a_depth_where_nobody_was_is_believed_again_after_a_while_and_one_poor_read_is_chance() -> None:
    now = 0.0
    depth = directory.DirectoryDepth(clock=lambda: now)
    depth.observe([5] * 40)
    depth.observe([])
    assert depth.bits == 4
    depth.observe([5] * 40)
    assert depth.bits == 5, "a swarm is there"

    depth.observe([9] * 40)
    depth.observe([])
    depth.observe([])
    assert depth.bits == 5, "back to where it came from"
    depth.observe([9] * 30 + [12] * 10)
    assert depth.bits == 5
    depth.observe([9] * 25 + [7] * 15)
    assert depth.bits == 7, "a depth less deep may be true"
    depth.observe([7] * 16)
    now = directory.DISBELIEF_S
    depth.observe([9] * 40)
    assert depth.bits == 9


def test_the_fuller_the_shards_the_longer_between_two_announcements() -> None:
    depth = directory.DirectoryDepth()
    assert depth.pause(2.0) == 2.0
    depth.observe([0] * 48)
    assert depth.pause(2.0) == 3.0
    assert depth.pause(9.0) == 9.0


@pytest.mark.parametrize(
    ("epoch", "size", "useful"),
    [
        (EPOCH, MIN_BLOB, True), (EPOCH + 2, 500, True), (EPOCH - OLDEST - 1, 500, True), (EPOCH + 3, 500, False),
        (EPOCH + 1_000_000, 500, False), (EPOCH - OLDEST - 2, 500, False), (0, 500, False), (EPOCH, MIN_BLOB - 1, False),
        (EPOCH, 1, False),
    ],
)  # fmt: skip
def test_a_place_in_the_directory_is_for_records_that_somebody_could_use(epoch: int, size: int, useful: bool) -> None:
    announced = msgspec.structs.replace(announcement(1, epoch), size=size)
    assert directory.is_useful(announced, CHARTER, EPOCH * EPOCH_SECONDS + 5.0) is useful


def test_no_record_is_as_small_as_what_is_refused() -> None:
    completions = tuple(Completion(text="", ended=True) for _ in range(CHARTER.group_size_min))
    group = Group(origin=PEERS[1], id=QuestionId(CHARTER.specialties[0].dataset, 1, 0), completions=completions)
    record = RolloutRecord(origin=PEERS[1], round=0, epoch=1, model="", groups=(group,))
    smallest = min(len(rollout_record.encode(record, CHARTER)) for _ in range(3))
    assert smallest >= MIN_BLOB
    random_key = RolloutRecord(
        origin=os.urandom(38), round=0, epoch=1, model="", groups=(),
    )  # fmt: skip
    assert len(rollout_record.encode(random_key, CHARTER)) >= MIN_BLOB
