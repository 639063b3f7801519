"""The parts of startup, in the order in which a window shows them."""

PARTS = (
    "Looking for the model", "Starting the answer checker", "Loading the model", "Restoring the last checkpoint",
    "Joining the swarm",
)  # fmt: skip
