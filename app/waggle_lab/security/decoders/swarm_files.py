"""The decoders of the swarm room's files: the key, its backup, the swarms, and what is remembered of other peers."""

import contextlib
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waggle.core.errors import IdentityError, SwarmError
from waggle.core.peer_id import peer_id_of, text_of
from waggle.network import joined_swarms as books
from waggle.network.identity import backup as backups
from waggle.network.identity import keys as identities
from waggle.network.identity.keys import Identity
from waggle.network.leaderboard import scores_file
from waggle.network.leaderboard.scores import Scoreboard, SheetScore
from waggle.network.limits import reputation_file as kept_standings
from waggle.network.limits.reputation import ReputationTable
from waggle.network.messages import addresses
from waggle.network.transport.hivemind import peer_cache as met
from waggle.tasks.questions import epoch_at
from waggle_lab.security.decoders import Decoder

NOW = 1_800_000_000.0
PASSPHRASE = "four words of ours"


def identity(scratch: Path) -> Decoder:
    """The key file; also with the public half mended, which nobody would find by chance."""
    own, path = owner(scratch), scratch / "identity.key"

    def check(data: bytes) -> None:
        for content in (data, mended(data)):
            path.write_bytes(content)
            try:
                found = identities.load_or_create(path)
            except IdentityError as refused:
                assert refused.advice
                continue
            assert identities.verify(found.peer_id, b"fuzz\0", b"message", found.sign(b"fuzz\0", b"message"))
            assert peer_id_of(text_of(found.peer_id)) == found.peer_id

    return Decoder((own.path.read_bytes(),), check)


def backup(scratch: Path) -> Decoder:
    """Backups of a key: as they come, and with the bytes as the key that a true one holds. A guess costs next to nothing here."""
    own, inside = owner(scratch), scratch / "inside.key"

    def check(data: bytes) -> None:
        inside.write_bytes(data)
        with patch.dict(backups.COST, n=2):
            for blob in (data, backups.seal(replace(own, path=inside), PASSPHRASE)):
                try:
                    found = backups.unseal(blob, PASSPHRASE)
                except IdentityError as refused:
                    assert refused.advice
                    continue
                assert identities.identity_of(inside, found.content).peer_id == found.peer_id

    with patch.dict(backups.COST, n=2):
        return Decoder((backups.seal(own, PASSPHRASE), own.path.read_bytes()), check)


def swarm_book(scratch: Path) -> Decoder:
    """The file of the swarms that a person joined: a damaged one is set aside whole."""
    path, digest = scratch / "swarms.json", "0f" * 32
    seed = f"/ip4/192.0.2.1/tcp/4001/p2p/{text_of(owner(scratch).peer_id)}"
    entry = books.JoinedSwarm(charter=digest, seeds=(seed,), gateways=("wss://a.example.org/gateway",), created=True, port=4001)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            found = books.read(path)
        except SwarmError as refused:
            assert refused.advice
            assert path.with_suffix(".damaged").read_bytes() == data
            return
        for each in found.entries:
            assert all(map(addresses.is_address, each.seeds))
            assert all(map(addresses.is_gateway, each.gateways))
        with contextlib.suppress(SwarmError):  # there are as many as are remembered
            assert found.with_entry(entry).entry(digest) == entry
        books.write(path, found)
        assert books.read(path) == found

    return Decoder((b"{}", msgspec.json.encode(books.JoinedSwarms(active=digest, before=digest, entries=(entry,)))), check)


def known_peers(scratch: Path) -> Decoder:
    """The file of addresses met lately: never an error."""
    path = scratch / "known_peers.json"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        known = met.read(path)
        assert len(known) <= met.MAX_KEPT
        kept = met.update(path, known, ["/ip4/192.0.2.1/tcp/1"])
        assert met.read(path) == kept or len(data) > met.MAX_BYTES // 2

    return Decoder((b"[]", b'["/ip4/192.0.2.1/tcp/4001/p2p/12D3", "/a\\u00e9\\n"]'), check)


def standings(scratch: Path) -> Decoder:
    """The file of standings: never an error, and nothing in it is lost."""
    path, trust = scratch / "standings.json", ReputationTable(clock=lambda: NOW)
    own = owner(scratch)
    trust.record_rejection(own.peer_id, "too long")
    trust.set_choice(own.peer_id, "muted")

    def check(data: bytes) -> None:
        path.write_bytes(data)
        known = kept_standings.read(path)
        if known is None:
            assert path.with_suffix(".damaged").read_bytes() == data
            return
        after = ReputationTable(clock=lambda: NOW, known=known)
        after.record_rejection(own.peer_id, "malformed")
        kept_standings.write(path, list(after))
        assert kept_standings.read(path) == list(after)

    return Decoder((b"[]", msgspec.json.encode(list(trust))), check)


def marks(scratch: Path) -> Decoder:
    """The file of marks: never an error, and whatever is believed of it can be drawn."""
    path = scratch / "marks.msgpack"
    mark = SheetScore(origin=owner(scratch).peer_id, epoch=epoch_at(NOW), round=7, learned=3, model="starter", right=4, total=16)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        known = Scoreboard(ranked=True, clock=lambda: NOW, known=scores_file.read(path, NOW))
        assert all(point.right <= point.total for curve in known.comparison().curves for point in curve.points)
        scores_file.write(path, known.all())
        assert scores_file.read(path, NOW) == known.all()

    return Decoder((b"\x90", msgspec.msgpack.encode([mark])), check)


def owner(scratch: Path) -> Identity:
    """Always the same key, so that a corpus keeps its meaning."""
    path = scratch / "signer.key"
    if not path.exists():
        path.write_bytes(mended(identities.FILE_PREFIX + bytes(64)))
    return identities.load_or_create(path)


def mended(content: bytes) -> bytes:
    """A key file with the public half that its private half has."""
    seed = content[4:36].ljust(32, b"\0")
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return content[:4] + seed + public + content[68:]
