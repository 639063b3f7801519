"""The parts of startup, in the order in which a window shows them."""

from waggle.core.message import Message

PARTS = (
    Message("Looking for the model"), Message("Starting the answer checker"), Message("Loading the model"),
    Message("Preparing the model"), Message("Joining the swarm"),
)  # fmt: skip
