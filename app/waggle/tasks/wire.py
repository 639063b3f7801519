"""The messages between the verifier and its child: length-prefixed msgpack over the child's stdin and stdout."""

from typing import IO, Annotated

import msgspec

from waggle.tasks.armour import Sandbox
from waggle.tasks.charter import Specialty
from waggle.tasks.group import Verdict

MAX_FRAME = 64 * 1024 * 1024

Key = tuple[str, int]  # (dataset, seed)


class Warm(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The first message, and only that: import all that the specialties need, then arm."""

    specialties: tuple[Specialty, ...]


class MakeQuestions(msgspec.Struct, frozen=True, tag=True, array_like=True):
    keys: list[Key]


class MakeAnswers(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """For laboratories and for showing the truth afterwards; no answer ever travels between nodes."""

    keys: list[Key]


class Judge(msgspec.Struct, frozen=True, tag=True, array_like=True):
    items: list[tuple[str, int, str, bool]]  # dataset, seed, completion, ended by itself


class Texts(msgspec.Struct, frozen=True, tag=True, array_like=True):
    texts: list[str]


class Verdicts(msgspec.Struct, frozen=True, tag=True, array_like=True):
    verdicts: list[Verdict]


class Warmed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    sandbox: Sandbox


class Tripped(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The child's last words: a scorer tried this audit event on a stranger's text."""

    event: Annotated[str, msgspec.Meta(max_length=64)]


class Failed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The child is alive but could not do this: an unknown dataset or a setting that reasoning-gym refuses."""

    reason: str


Request = MakeQuestions | MakeAnswers | Judge
Reply = Texts | Verdicts | Warmed | Tripped | Failed


def send(pipe: IO[bytes], message: msgspec.Struct) -> None:
    """Write one frame; raises OSError when the other side is gone."""
    frame = msgspec.msgpack.encode(message)
    pipe.write(len(frame).to_bytes(4, "big") + frame)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read one frame; None when the other side is gone or talks nonsense."""
    head = pipe.read(4)
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_FRAME:
        return None
    frame = pipe.read(size)
    return frame if len(frame) == size else None
