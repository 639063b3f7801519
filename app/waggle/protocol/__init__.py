"""The contract between the window and the engine: events in the past tense, commands, and the State they fold into."""

PROTOCOL = 1  # of these messages; both ends ship together and must agree
