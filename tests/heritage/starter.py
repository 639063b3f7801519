"""What checkpoints of a version say of the starter that it ships with: `starter.json` in the folder of that version."""

import msgspec

from waggle.core import paths
from waggle.models.storage import checkpoint, identity
from waggle.models.storage.identity import ModelIdentity


class RecordedStarter(msgspec.Struct, frozen=True, kw_only=True):
    """`base` is all that checkpoints of 0.1.0 say; see `CheckpointState`."""

    base: str
    identity: ModelIdentity


def recorded() -> bytes:
    """The starter of this commit."""
    folder = paths.starter()
    return msgspec.json.format(
        msgspec.json.encode(RecordedStarter(base=checkpoint.base_of(folder), identity=identity.read(folder)))
    )
