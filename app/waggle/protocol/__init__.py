"""The contract between window and engine: commands, events, and the State into which events are folded."""

PROTOCOL = 1  # the version of these messages, on which both ends must agree
