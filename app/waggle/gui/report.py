"""A report for a person who can help: what runs here and what went wrong, without names, addresses and folders. Pure."""

import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from waggle import __version__
from waggle.protocol.sentence import sentence
from waggle.protocol.state import State
from waggle.redacting import redacted

LINES = 200  # of the log


def report(state: State, log: Iterable[str] = (), home: Path | None = None) -> str:
    """What to send: versions, the sentence, where the run stands, the failure, and the newest lines of the log."""
    said = sentence(state)
    parts = [
        f"Waggle {__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()}"
        f"{', frozen' if getattr(sys, 'frozen', False) else ''}",
        said.word,
        said.says,
        said.detail,
    ]
    if state.ready is not None:
        ready = state.ready
        parts.append(f"{ready.model}, {ready.backend} on {ready.device}, {ready.threads} of {ready.cores} cores")
    parts.append(f"round {state.round}, saved round {state.saved_round}, event {state.seq}, {len(state.members)} members")
    if state.problem is not None and state.problem.detail:
        parts.append(state.problem.detail)
    lines = list(log)[:LINES]
    if lines:
        parts += ["", "Log, newest first:", *lines]
    return redacted("\n".join(parts) + "\n", home)
