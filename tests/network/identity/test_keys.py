"""The key file, peer ids as text, names, and signatures that are valid in one domain only."""

import os
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from full_disk import full_beyond
from waggle.core.errors import IdentityError
from waggle.core.peer_id import BASE58, FINGERPRINT, PEER_ID_PREFIX, peer_id_of, text_of, with_fingerprint
from waggle.network.identity import friendly_names
from waggle.network.identity.friendly_names import ADJECTIVES, CREATURES
from waggle.network.identity.keys import Identity, load_or_create, name_of, verify

# A test vector of the libp2p peer id specification: an Ed25519 key, and its peer id as text.
KNOWN_ID = bytes.fromhex("0024080112201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e")
KNOWN_TEXT = "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq"


def test_the_key_file_is_made_once_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "identity.key"
    identity = load_or_create(path)

    assert load_or_create(path).peer_id == identity.peer_id
    if sys.platform != "win32":  # which has access lists: tests/core/system/test_access_list.py
        assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert load_or_create(tmp_path / "another.key").peer_id != identity.peer_id


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: b"", id="emptied"),
        pytest.param(lambda content: content[:-1], id="cut"),
        pytest.param(lambda content: b"\x08\x00" + content[2:], id="another kind of key"),
        pytest.param(lambda content: content[:4] + bytes(32) + content[36:], id="another secret half"),
        pytest.param(lambda content: content[:36] + bytes(32), id="another public half"),
    ],
)
def test_a_damaged_key_file_is_refused_and_left_as_it_is(tmp_path: Path, damage) -> None:
    path = tmp_path / "identity.key"
    load_or_create(path)
    damaged = damage(path.read_bytes())
    path.chmod(0o600)
    path.write_bytes(damaged)

    with pytest.raises(IdentityError) as refused:
        load_or_create(path)

    assert str(path) in refused.value.title
    assert "new identity" in refused.value.advice
    assert path.read_bytes() == damaged


def test_a_key_file_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match="cannot be opened"):
        load_or_create(tmp_path)


def test_a_key_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IdentityError):
        load_or_create(tmp_path / "file" / "identity.key")


def test_a_first_start_on_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    with full_beyond(30), pytest.raises(IdentityError, match="cannot be written"):
        load_or_create(tmp_path / "identity.key")
    assert list(tmp_path.iterdir()) == []
    load_or_create(tmp_path / "identity.key")


def test_starts_at_once_go_on_with_one_key(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def start(_: int) -> bytes:
        together.wait()
        return load_or_create(tmp_path / "identity.key").peer_id

    with ThreadPoolExecutor(8) as threads:
        (mine,) = set(threads.map(start, range(8)))
    assert load_or_create(tmp_path / "identity.key").peer_id == mine
    assert [path.name for path in tmp_path.iterdir()] == ["identity.key"]


def test_a_disk_without_second_names_keeps_a_key_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(_source: Path, _place: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    mine = load_or_create(tmp_path / "identity.key").peer_id
    assert load_or_create(tmp_path / "identity.key").peer_id == mine
    assert [path.name for path in tmp_path.iterdir()] == ["identity.key"]


def test_a_peer_id_is_written_as_everybody_in_libp2p_writes_it() -> None:
    assert text_of(KNOWN_ID) == KNOWN_TEXT
    assert peer_id_of(KNOWN_TEXT) == KNOWN_ID


@pytest.mark.parametrize("text", ["", "12D3Koo", "0OIl", KNOWN_TEXT[:-1], KNOWN_TEXT + "1", "1" * 60, "é" * 52, "Z" * 5000])
def test_other_text_is_no_peer_id(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the class is all a caller sees
        peer_id_of(text)


def test_names_have_two_words_and_depend_on_the_key_alone(identity: Identity) -> None:
    adjective, creature = name_of(identity.peer_id).split()

    assert adjective in friendly_names.ADJECTIVES
    assert creature in friendly_names.CREATURES
    assert name_of(identity.peer_id) == name_of(bytes(identity.peer_id))
    assert len({name_of(bytes([i])) for i in range(200)}) > 150


def test_the_lists_of_names_are_long_and_without_repeats() -> None:
    for words in (friendly_names.ADJECTIVES, friendly_names.CREATURES):
        assert len(words) == len(set(words)) >= 64


def test_a_signature_holds_for_its_domain_message_and_signer_only(identity: Identity, tmp_path: Path) -> None:
    signature = identity.sign(b"one\0", b"message")
    other = load_or_create(tmp_path / "other.key")

    assert verify(identity.peer_id, b"one\0", b"message", signature)
    assert not verify(identity.peer_id, b"two\0", b"message", signature)
    assert not verify(identity.peer_id, b"one\0", b"massage", signature)
    assert not verify(other.peer_id, b"one\0", b"message", signature)


@given(st.binary(max_size=60), st.binary(max_size=80))
def test_verifying_nonsense_is_simply_false(peer_id: bytes, signature: bytes) -> None:
    assert not verify(peer_id, b"one\0", b"message", signature)
    assert not verify(KNOWN_ID, b"one\0", b"message", signature)


def test_two_keys_with_the_same_words_are_told_apart_by_their_fingerprints() -> None:
    keys, by_name = [Ed25519PrivateKey.generate() for _ in range(1000)], dict[str, list[bytes]]()
    for key in keys:
        peer_id = PEER_ID_PREFIX + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        by_name.setdefault(name_of(peer_id), []).append(peer_id)
    namesakes = [same for same in by_name.values() if len(same) > 1]
    assert namesakes  # two words are no identity: of 1,000 keys some always share them
    for first, second, *_ in namesakes:
        names = {with_fingerprint(name_of(peer_id), text_of(peer_id)) for peer_id in (first, second)}
        assert len(names) == 2
        assert all(name.startswith(f"{name_of(first)} · ") for name in names)


def test_the_bits_of_a_name_as_it_is_shown_take_a_computer_longer_than_any_siege() -> None:
    tries_a_second = 1e9  # hundreds of times what two cores manage (tests/measured/network_memory.py)
    names = len(ADJECTIVES) * len(CREATURES) * len(BASE58) ** FINGERPRINT
    assert names / tries_a_second > 3600 * 1000
