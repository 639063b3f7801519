"""The decoders of `tasks`: charters, and replies of the verifier process."""

import contextlib
import io
from pathlib import Path

from waggle.core.errors import CharterError
from waggle.tasks import charter as charters
from waggle.tasks.rollout_group import Verdict
from waggle.tasks.sandbox import messages
from waggle_lab.security.decoders import Decoder

KINDS = (messages.Texts, messages.Verdicts, messages.Prepared, messages.Tripped, messages.Failed)


def charter(scratch: Path) -> Decoder:
    """Charters, from seeds and from files."""
    first = charters.first_swarm()

    def check(data: bytes) -> None:
        with contextlib.suppress(CharterError):
            charters.decode(data, expected=first.digest)
        try:
            decoded = charters.decode(data)
        except CharterError:  # refused, as documented
            return
        assert len(data) <= charters.MAX_BYTES
        assert decoded.protocol == charters.PROTOCOL
        assert 2 <= decoded.group_size_min <= decoded.group_size_max <= 16
        assert 1 <= len({specialty.dataset for specialty in decoded.specialties}) == len(decoded.specialties) <= 64
        assert charters.decode(charters.encode(decoded), expected=decoded.digest) == decoded

    small = first.__class__(name="n", specialties=first.specialties[:1])
    return Decoder((charters.encode(first), charters.encode(small)), check)


def reply(scratch: Path) -> Decoder:
    """Frames from the verifier process, which reads hostile text."""
    verdict = Verdict(reward=0.5, reason="close", start=1, length=2, exact=True)
    replies = (
        messages.Texts(["a", "é"]),
        messages.Verdicts([verdict]),
        messages.Prepared("limited"),
        messages.Tripped("exec"),
        messages.Failed("no"),
    )

    def check(data: bytes) -> None:
        for pipe in (data, len(data).to_bytes(4, "big") + data):
            frame = messages.receive(io.BytesIO(pipe))
            if frame is not None:
                with contextlib.suppress(EOFError):
                    assert isinstance(messages.reply(frame), KINDS)

    return Decoder(tuple(_framed(reply) for reply in replies), check)


def _framed(message: messages.Reply) -> bytes:
    pipe = io.BytesIO()
    messages.send(pipe, message)
    return pipe.getvalue()[4:]
