"""The consent of a holder: a gateway signs that it gives out the payloads of a light client, and until when.

Without it an announcement may name nobody: made-up names would make every reader call a bystander.
"""

import struct
from typing import NamedTuple

from waggle.network.identity.keys import SIGNATURE_BYTES, Identity, verify

DOMAIN = b"waggle/consent/1\0"
LIFETIME_S = 3600.0
_UNTIL = struct.Struct(">Q")  # unix seconds
CONSENT_BYTES = _UNTIL.size + SIGNATURE_BYTES


class Holder(NamedTuple):
    """A gateway that gives out our payloads, and its consent to be named."""

    peer_id: bytes
    consent: bytes


def give(holder: Identity, charter: bytes, origin: bytes, now: float) -> bytes:
    """The holder's consent to be named by `origin` in the swarm with this charter, from `now` (unix seconds) on."""
    until = _UNTIL.pack(int(now + LIFETIME_S))
    return until + holder.sign(DOMAIN, charter + origin + until)


def is_valid(consent: bytes, holder: bytes, charter: bytes, origin: bytes, until: float) -> bool:
    """Whether `holder` agrees to be named by `origin` until then (unix seconds). Never raises."""
    if len(consent) != CONSENT_BYTES or _UNTIL.unpack(consent[: _UNTIL.size])[0] < until:
        return False
    return verify(holder, DOMAIN, charter + origin + consent[: _UNTIL.size], consent[_UNTIL.size :])
