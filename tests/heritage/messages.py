"""What nodes say to each other, in bytes: from the same inputs, with the same keys, in every version.

A list of all there is: records and answer sheets (payloads, by their hash), announcements in the directory with the keys under
which they stand there, charters, greetings, certificates of a private swarm, and both sides of a gateway. Compressed messages are
compared unpacked, because another version of zstandard may pack them otherwise.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waggle.cli import update
from waggle.core.peer_id import PEER_ID_PREFIX, text_of
from waggle.network.identity import keys, membership
from waggle.network.identity.keys import Identity
from waggle.network.messages import announcement, answer_sheet, directory, gateway_frames, invite, rollout_record
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.gateway_frames import (
    AnnounceRequest,
    DirectoryEntry,
    DirectoryRequest,
    Hello,
    PullRequest,
    Response,
    UploadRequest,
    Welcome,
)
from waggle.network.messages.handshake import Handshake
from waggle.network.messages.invite import Invite
from waggle.network.messages.rollout_record import RolloutRecord
from waggle.network.transport.gateway import server
from waggle.rl.random_streams import generator, uniforms
from waggle.tasks import charter as charters
from waggle.tasks.charter import PROTOCOL, Charter, Specialty
from waggle.tasks.questions import Question, QuestionId, epoch_at, split_of
from waggle.tasks.rollout_group import Completion, Group
from waggle.tasks.sandbox.exam import Exam
from waggle.tasks.shipped_swarms import first_swarm

VERSION = "0.1.0"
NOW = 1_790_000_000.0  # unix seconds
EPOCH = epoch_at(NOW)
KEY = bytes(range(32))  # of the private swarm
NONCES = bytes(range(32, 64)), bytes(range(64, 96))
SEED = "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEgvd5bMHRHbb7DZDqQx8xF4CJN4gL5j1xHgCX3MZYwvk"
GATEWAY = "wss://swarm.example.org:8443/gateway#12D3KooWEgvd5bMHRHbb7DZDqQx8xF4CJN4gL5j1xHgCX3MZYwvk"
# The hashes of the same two charters under protocol 1. Certificates, invites and handshakes carry no more of a charter.
EARLIER_PUBLIC = bytes.fromhex("0af542036492f302e8360f987a68c9dc457e9815d43e05e7c7f300ba364f72fc")
EARLIER_PRIVATE = bytes.fromhex("dd16d5a3759ef3d066e250908d7d2e5fc9b570a172f24c95bb73da7bf85f9261")
PUBLIC = first_swarm()
PRIVATE = Charter(
    name="Behind a door",
    specialties=(
        Specialty(dataset="basic_arithmetic", title="Arithmetic", levels=("easy", "standard")),
        Specialty(dataset="bf", title="Tiny programs"),
    ),
    group_size_min=4,
    group_size_max=12,
    completion_characters=1200,
    age_window_s=7200,
    questions_per_epoch=4096,
    questions_digest="0f" * 32,
    admission=membership.public_key_of(KEY),
    model_hint="Qwen/Qwen2.5-0.5B-Instruct",
)
EXAM = Exam(epoch=EPOCH, questions=tuple(Question(dataset="bf", seed=number, text=f"What is {number}?") for number in range(3)))


def person(number: int) -> Identity:
    """Somebody whose key is known to these tests, and in no file."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return keys.identity_of(Path("nowhere"), keys.FILE_PREFIX + bytes([number]) * 32 + public)


ME, OTHER = person(7), person(8)
CERTIFICATE = membership.issue_certificate(KEY, EARLIER_PRIVATE, ME.peer_id, NOW + 3600)
GROUPS = (
    Group(
        origin=ME.peer_id,
        id=QuestionId("bf", EPOCH, 3),
        completions=(
            Completion(text="<answer>1 é 中</answer>", ended=True),
            Completion(text="Half of 36 is", ended=False),
            Completion(text="<answer>mine</answer>", ended=True, by="human"),
            Completion(text="", ended=True),
        ),
    ),
    Group(
        origin=ME.peer_id,
        id=QuestionId("basic_arithmetic", EPOCH, 65),
        completions=tuple(Completion(text=f"<answer>{number}</answer>", ended=True) for number in range(8)),
    ),
)
RECORD = RolloutRecord(origin=ME.peer_id, round=612, epoch=EPOCH, model="Starter 0.8M", groups=GROUPS)
SHEET = AnswerSheet(
    origin=ME.peer_id, epoch=EPOCH, exam=EXAM.digest, round=612, learned=40, model="Starter 0.8M", certificate=CERTIFICATE,
    answers=tuple(Completion(text=text, ended=bool(text)) for text in ("<answer>0</answer>", "", "<answer>é</answer>")),
)  # fmt: skip
ANNOUNCED = Announcement(
    charter=EARLIER_PUBLIC, sha256=hashlib.sha256(b"a payload").digest(), size=9, round=612, epoch=EPOCH, specialties=0b1010,
    model="Starter 0.8M", expires=int(NOW * 1000) + 90_000,
)  # fmt: skip
ANNOUNCED_IN_PRIVATE = Announcement(
    charter=EARLIER_PRIVATE, sha256=hashlib.sha256(b"another").digest(), size=7, round=2, epoch=EPOCH, specialties=1,
    model="Qwen2.5-0.5B 494.0M", expires=int(NOW * 1000) + 90_000, depth=3, via=(OTHER.peer_id,), certificate=CERTIFICATE,
    sheet=hashlib.sha256(b"a sheet").digest(),
)  # fmt: skip
GREETING = Handshake(PROTOCOL, VERSION, EARLIER_PUBLIC, announcement.signed(ANNOUNCED, ME))
WELCOME = Welcome(PROTOCOL, OTHER.peer_id, EARLIER_PRIVATE, NONCES[0], VERSION, CERTIFICATE)
HELLO = Hello(ME.peer_id, CERTIFICATE, ME.sign(gateway_frames.DOMAIN, OTHER.peer_id + NONCES[0] + NONCES[1]), NONCES[1])
ASKS = (
    DirectoryRequest(1), AnnounceRequest(2, announcement.signed(ANNOUNCED, ME)), UploadRequest(3, b"a payload"),
    PullRequest(4, ME.peer_id, hashlib.sha256(b"a payload").digest()),
)  # fmt: skip
ANSWERS = (
    Response(1, listed=(DirectoryEntry(ME.peer_id, announcement.signed(ANNOUNCED, ME)),)),
    Response(3, server.DONE),
    Response(4),
)
INVITES = (
    Invite(charter=EARLIER_PUBLIC, seeds=(SEED,)),
    Invite(charter=EARLIER_PRIVATE, seeds=(SEED, SEED.replace("4001", "4002")), gateways=(GATEWAY,), key=KEY),
)


def messages() -> dict[str, str]:
    """Messages as hex digits, texts as they are."""
    pack = msgspec.msgpack.encode
    binary = {
        "certificate": CERTIFICATE,
        "record, unpacked": rollout_record.decompress(rollout_record.encode(RECORD, PRIVATE), rollout_record.MAX_RAW),
        "sheet, unpacked": rollout_record.decompress(packed_sheet()[: -keys.SIGNATURE_BYTES], answer_sheet.MAX_RAW),
        "announcement": announcement.signed(ANNOUNCED, ME),
        "announcement in a private swarm": announcement.signed(ANNOUNCED_IN_PRIVATE, ME),
        "greeting": pack(GREETING),
        "gateway's welcome": pack(WELCOME),
        "client's hello": pack(HELLO),
        "gateway's proof": OTHER.sign(gateway_frames.PROOF, HELLO.signature),
        **{f"client's question {number}": pack(question) for number, question in enumerate(ASKS)},
        **{f"gateway's answer {number}": pack(answer) for number, answer in enumerate(ANSWERS)},
    }
    texts = {
        "charter of the swarm that ships with Waggle": charters.encode(PUBLIC).decode(),
        "charter of a private swarm": charters.encode(PRIVATE).decode(),
        "invite": invite.write(INVITES[0]),
        "invite to a private swarm": invite.write(INVITES[1]),
        "updates": signed_updates(),
    }
    return {name: message.hex() for name, message in binary.items()} | texts


def packed_record() -> bytes:
    return rollout_record.encode(RECORD, PRIVATE)


def packed_sheet() -> bytes:
    return answer_sheet.signed(SHEET, PRIVATE, ME)


def facts() -> dict[str, Any]:
    """What every node works out for itself, and all have to agree on."""
    return {
        "peer id": text_of(ME.peer_id),
        "name of a peer": keys.name_of(ME.peer_id),
        "hash of the charter that ships with Waggle": PUBLIC.digest.hex(),
        "hash of a private charter": PRIVATE.digest.hex(),
        "public half of an admission key": membership.public_key_of(KEY),
        "seeds of questions": [QuestionId("bf", EPOCH, number).key(EARLIER_PUBLIC, ME.peer_id).seed for number in range(4)],
        "splits of questions": [split_of("bf", f"What is {number}?") for number in range(64)],
        "exam": EXAM.digest.hex(),
        "shards": [directory.shard_of(ME.peer_id, bits) for bits in range(announcement.MAX_BITS + 1)],
        "keys to publish under": directory.keys_to_publish(EARLIER_PUBLIC, ME.peer_id, 2, 60, EPOCH),
        "places in the DHT": {place.hex(): bits for place, bits in directory.places_of(EARLIER_PUBLIC, ME.peer_id).items()},
        "noise": hashlib.sha256(uniforms(5, "sample", 12, 2, 3, 4).tobytes()).hexdigest(),
        "draws": generator(5, "draw", 12).integers(1 << 16, size=8).tolist(),
    }


def signed_updates() -> str:
    """A list of versions as a server gives it out, signed with the key of `update_key`."""
    feed = {
        "releases": [
            {"version": "9.8.7", "date": "2026-11-26", "notes": "New things.", "protocol": 2, "files": [
                {"system": "linux", "url": "https://example.org/waggle.AppImage", "sha256": "5e" * 32, "size": 4},
            ]},
        ],
    }  # fmt: skip
    content = json.dumps(feed).encode()
    signature = ME.key.sign(update.DOMAIN + content)
    return json.dumps({"feed": base64.b64encode(content).decode(), "signature": base64.b64encode(signature).decode()})


def update_key() -> str:
    return ME.peer_id[len(PEER_ID_PREFIX) :].hex()
