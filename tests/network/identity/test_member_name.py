"""A chosen name reaches the members of a private swarm, and nobody else can read, forge or move it."""

import os

import msgspec
import pytest

from waggle.core.errors import SwarmError
from waggle.network.identity import member_name
from waggle.network.identity.membership import Membership, new_key, public_key_of
from waggle.tasks.charter import Charter

KEY, CHARTER, ME, OTHER = bytes(range(32)), b"c" * 32, b"m" * 38, b"o" * 38


@pytest.mark.parametrize("name", ["Ada", "Léa 7b", "\u5c0f\u660e", "x" * member_name.LONGEST])
def test_members_read_the_name_that_was_sealed(name: str) -> None:
    sealed = member_name.seal(name, KEY, CHARTER, ME)
    assert len(sealed) <= member_name.SEALED_BYTES
    assert name.encode() not in sealed
    assert member_name.opened(sealed, KEY, CHARTER, ME) == name


@pytest.mark.parametrize(
    ("key", "charter", "peer_id"), [(bytes(32), CHARTER, ME), (b"", CHARTER, ME), (KEY, b"d" * 32, ME), (KEY, CHARTER, OTHER)]
)
def test_nobody_else_reads_it_and_no_other_member_has_it(key: bytes, charter: bytes, peer_id: bytes) -> None:
    assert member_name.opened(member_name.seal("Ada", KEY, CHARTER, ME), key, charter, peer_id) == ""


@pytest.mark.parametrize("size", [0, 1, 28, 29, 76, 77, 5000])
def test_bytes_that_are_no_name_are_none(size: int) -> None:
    assert member_name.opened(os.urandom(size), KEY, CHARTER, ME) == ""


@pytest.mark.parametrize("name", ["A\u202eda", "A\nda\x00", "Ada\u3164", "x" * 25, "\U0001f41d" * 13, "a\u0301\u0301\u0301x" * 2])
def test_a_name_that_could_mislead_is_refused_here_and_not_shown_elsewhere(name: str) -> None:
    with pytest.raises(SwarmError, match="This name"):
        member_name.checked(name)
    nonce = os.urandom(member_name.NONCE_BYTES)
    sealed = nonce + member_name._cipher(KEY).encrypt(nonce, name.encode(), CHARTER + ME)  # as a hostile member would
    assert member_name.opened(sealed, KEY, CHARTER, ME) == ""


def test_in_a_public_swarm_there_are_no_chosen_names(charter: Charter) -> None:
    here = Membership(charter, ME, KEY)
    assert here.sealed_name("Ada") == b""
    assert here.member_name(ME, member_name.seal("Ada", KEY, charter.digest, ME)) == ""


def test_a_holder_of_the_key_reads_names_and_a_seed_without_it_does_not(charter: Charter) -> None:
    key = new_key()
    private = msgspec.structs.replace(charter, admission=public_key_of(key))
    sealed = Membership(private, ME, key).sealed_name("Ada")
    assert Membership(private, OTHER, key).member_name(ME, sealed) == "Ada"
    assert Membership(private, OTHER).member_name(ME, sealed) == ""
