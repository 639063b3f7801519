"""A transport over iroh (QUIC), which runs in a child process with limits. Measured, not used yet: docs/decisions/0041."""
