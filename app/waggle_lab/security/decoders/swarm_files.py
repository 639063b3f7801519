"""The decoders of the files of `network`: the identity key, its backup, the joined swarms, and what is known of peers."""

import contextlib
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waggle.core.errors import IdentityError, SwarmError
from waggle.core.message import english
from waggle.core.peer_id import peer_id_of, text_of
from waggle.network import joined_swarms
from waggle.network.identity import backup as backups
from waggle.network.identity import keys
from waggle.network.identity.keys import Identity
from waggle.network.leaderboard import scores_file
from waggle.network.leaderboard.scores import Scoreboard, SheetScore
from waggle.network.limits import reputation_file
from waggle.network.limits.reputation import ReputationTable
from waggle.network.messages import addresses
from waggle.network.transport import peer_cache
from waggle.tasks.questions import epoch_at
from waggle_lab.security.decoders import Decoder

NOW = 1_800_000_000.0
PASSPHRASE = "four words of ours"


def identity(scratch: Path) -> Decoder:
    """The key file, plain and with the matching public key, which random bytes would not have."""
    own, path = owner(scratch), scratch / "identity.key"

    def check(data: bytes) -> None:
        for content in (data, with_matching_public_key(data)):
            path.write_bytes(content)
            try:
                decoded = keys.load_or_create(path)
            except IdentityError as refused:
                assert refused.advice
                continue
            assert keys.verify(decoded.peer_id, b"fuzz\0", b"message", decoded.sign(b"fuzz\0", b"message"))
            assert peer_id_of(text_of(decoded.peer_id)) == decoded.peer_id

    return Decoder((own.path.read_bytes(),), check)


def backup(scratch: Path) -> Decoder:
    """Backups of a key, plain and with the bytes as the key in a valid backup. Key derivation is made cheap here."""
    own, inside = owner(scratch), scratch / "inside.key"

    def check(data: bytes) -> None:
        inside.write_bytes(data)
        with patch.dict(backups.COST, n=2):
            for blob in (data, backups.seal(replace(own, path=inside), PASSPHRASE)):
                try:
                    decoded = backups.unseal(blob, PASSPHRASE)
                except IdentityError as refused:
                    assert refused.advice
                    continue
                assert keys.identity_of(inside, decoded.content).peer_id == decoded.peer_id

    with patch.dict(backups.COST, n=2):
        return Decoder((backups.seal(own, PASSPHRASE), own.path.read_bytes()), check)


def swarm_book(scratch: Path) -> Decoder:
    """The file of joined swarms; a damaged one must stay as it is, so that it can be rebuilt."""
    path, digest = scratch / "swarms.json", "0f" * 32
    seed = f"/ip4/192.0.2.1/tcp/4001/p2p/{text_of(owner(scratch).peer_id)}"
    entry = joined_swarms.JoinedSwarm(
        charter=digest, seeds=(seed,), gateways=("wss://a.example.org/gateway",), created=True, port=4001
    )

    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            decoded = joined_swarms.read(path)
        except SwarmError as refused:
            assert refused.title
            assert path.read_bytes() == data
            return
        for book_entry in decoded.entries:
            assert all(map(addresses.is_address, book_entry.seeds))
            assert all(map(addresses.is_gateway, book_entry.gateways))
        with contextlib.suppress(SwarmError):  # the file is full
            assert decoded.with_entry(entry).entry(digest) == entry
        joined_swarms.write(path, decoded)
        assert joined_swarms.read(path) == decoded

    return Decoder(
        (b"{}", msgspec.json.encode(joined_swarms.JoinedSwarms(active=digest, before=digest, entries=(entry,)))), check
    )


def known_peers(scratch: Path) -> Decoder:
    """The file of recent addresses; it must never be an error."""
    path = scratch / "known_peers.json"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        decoded = peer_cache.read(path)
        assert len(decoded) <= peer_cache.MAX_KEPT
        updated = peer_cache.update(path, decoded, ["/ip4/192.0.2.1/tcp/1"])
        assert peer_cache.read(path) == updated or len(data) > peer_cache.MAX_BYTES // 2

    return Decoder((b"[]", b'["/ip4/192.0.2.1/tcp/4001/p2p/12D3", "/a\\u00e9\\n"]'), check)


def standings(scratch: Path) -> Decoder:
    """The file of reputations; it must never be an error, and a damaged one must be set aside unchanged."""
    path, trust = scratch / "standings.json", ReputationTable(clock=lambda: NOW)
    own = owner(scratch)
    trust.record_rejection(own.peer_id, "too long")
    trust.set_choice(own.peer_id, "muted")

    def check(data: bytes) -> None:
        for earlier in scratch.glob("standings.damaged*"):
            earlier.unlink()
        path.write_bytes(data)
        decoded = reputation_file.read(path)
        if decoded is None:
            assert path.with_suffix(".damaged").read_bytes() == data
            return
        updated = ReputationTable(clock=lambda: NOW, known=decoded)
        updated.record_rejection(own.peer_id, "malformed")
        reputation_file.write(path, list(updated))
        assert reputation_file.read(path) == list(updated)

    return Decoder((b"[]", msgspec.json.encode(list(trust), enc_hook=english)), check)


def marks(scratch: Path) -> Decoder:
    """The file of leaderboard scores; it must never be an error, and what is read must be drawable."""
    path = scratch / "marks.msgpack"
    mark = SheetScore(origin=owner(scratch).peer_id, epoch=epoch_at(NOW), round=7, learned=3, model="starter", right=4, total=16)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        decoded = Scoreboard(ranked=True, clock=lambda: NOW, known=scores_file.read(path, NOW))
        assert all(point.right <= point.total for curve in decoded.comparison().curves for point in curve.points)
        scores_file.write(path, decoded.all())
        assert scores_file.read(path, NOW) == decoded.all()

    return Decoder((b"\x90", msgspec.msgpack.encode([mark])), check)


def owner(scratch: Path) -> Identity:
    """An identity, always with the same key, so that a corpus stays valid."""
    path = scratch / "signer.key"
    if not path.exists():
        path.write_bytes(with_matching_public_key(keys.FILE_PREFIX + bytes(64)))
    return keys.load_or_create(path)


def with_matching_public_key(content: bytes) -> bytes:
    """A key file with the public key of its private key."""
    seed = content[4:36].ljust(32, b"\0")
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return content[:4] + seed + public + content[68:]
