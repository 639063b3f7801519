"""The list of swarms is written atomically, read strictly, and never keeps an engine from starting."""

import itertools
import os

import pytest

from network.loopback import fresh_identity
from waggle.core.errors import SwarmError
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.network import joined_swarms
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms, SwarmListDamaged
from waggle.network.messages import invite
from waggle.network.messages.invite import Invite

FIRST, OTHER = "ab" * 32, "cd" * 32


def test_what_is_written_is_read_again(tmp_path):
    seed = f"/ip4/192.0.2.1/tcp/4001/p2p/{text_of(fresh_identity(tmp_path, 'seed').peer_id)}"
    known = (
        JoinedSwarms(active=FIRST)
        .with_entry(JoinedSwarm(charter=FIRST, seeds=(seed,), created=True, port=4001))
        .with_entry(JoinedSwarm(charter=OTHER))
    )
    joined_swarms.write(tmp_path / "swarms.json", known)
    assert joined_swarms.read(tmp_path / "swarms.json") == known


def test_nothing_is_known_where_there_is_no_file(tmp_path):
    assert joined_swarms.read(tmp_path / "swarms.json") == JoinedSwarms()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"active": "First light"}', b"\xff\xfe", b'{"entries": [{"charter": 7}]}'])
def test_a_damaged_list_is_no_empty_one_and_stays_where_it_is(tmp_path, content):
    path = tmp_path / "swarms.json"
    path.write_bytes(content)
    for _ in range(2):  # who reads it next must not take it for a new one
        with pytest.raises(SwarmListDamaged, match="is damaged"):
            joined_swarms.read(path)
    assert path.read_bytes() == content


def test_a_book_that_the_disk_does_not_give_out_stays_where_it_is(tmp_path):
    path = tmp_path / "swarms.json"
    path.mkdir()
    with pytest.raises(SwarmError, match="cannot be read"):
        joined_swarms.read(path)
    assert path.is_dir()


def test_a_swarm_whose_seeds_are_no_addresses_is_left_out(tmp_path):
    joined_swarms.write(
        tmp_path / "swarms.json",
        JoinedSwarms(entries=(JoinedSwarm(charter=FIRST, seeds=("nowhere",)), JoinedSwarm(charter=OTHER))),
    )
    assert [entry.charter for entry in joined_swarms.read(tmp_path / "swarms.json").entries] == [OTHER]


def test_a_swarm_stands_in_the_book_once_and_can_be_forgotten():
    known = JoinedSwarms().with_entry(JoinedSwarm(charter=FIRST)).with_entry(JoinedSwarm(charter=FIRST, members=3))
    assert [entry.members for entry in known.entries] == [3]
    assert known.without(FIRST).entries == ()


def test_one_swarm_too_many_is_refused_in_words():
    full = JoinedSwarms(entries=tuple(JoinedSwarm(charter=f"{i:064x}") for i in range(joined_swarms.MAX_SWARMS)))
    with pytest.raises(SwarmError, match="remembered already"):
        full.with_entry(JoinedSwarm(charter=FIRST))


def test_as_many_swarms_as_are_remembered_are_read_again_however_long_their_invites_are(tmp_path):
    known = JoinedSwarms()
    for number in range(joined_swarms.MAX_SWARMS):
        known = known.with_entry(JoinedSwarm(charter=f"{number:064x}", seeds=longest()))
    joined_swarms.write(tmp_path / "swarms.json", known)
    assert joined_swarms.read(tmp_path / "swarms.json") == known


def longest() -> tuple[str, ...]:
    """As many seeds with long names as an invite holds."""
    host = ".".join(["a" * 60] * 3)
    seeds = [f"/dns4/{host}{i}/tcp/4001/p2p/{text_of(PEER_ID_PREFIX + os.urandom(32))}" for i in range(invite.MAX_SEEDS)]
    return max(filter(_is_written, itertools.accumulate([(each,) for each in seeds])), key=len)


def _is_written(seeds: tuple[str, ...]) -> bool:
    try:
        return bool(invite.write(Invite(charter=bytes(32), seeds=seeds)))
    except SwarmError:
        return False
