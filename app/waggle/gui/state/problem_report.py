"""A problem report to send to somebody who can help: versions, state and failure, without names, addresses or paths. Pure."""

import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from waggle import __version__
from waggle.core.message import plain
from waggle.core.text.redaction import THIS_NODE, redact
from waggle.core.text.round_number import round_number
from waggle.gui.i18n.formatting import visible
from waggle.protocol.state import State
from waggle.protocol.text.status_text import sentence

LINES = 200  # of the log


def replacement_names(state: State, host: str = "") -> dict[str, str]:
    """Private names in the status sentence and the log, each with its replacement in a report.

    People type the names of swarms; `host`, the ssh destination of the engine, may contain a user name.
    """
    known = [*(state.swarms.swarms if state.swarms else ()), *((state.looked.swarm,) if state.looked else ())]
    replacements = {swarm.name: "a swarm" for swarm in known if not swarm.shipped}
    if state.ready is not None:
        own_names = filter(None, (state.ready.name, state.ready.member_name))
        replacements |= {state.ready.swarm: "the swarm"} | dict.fromkeys(own_names, THIS_NODE)
    for far in filter(None, (host, state.gone.host if state.gone else "")):
        person, _, computer = far.rpartition("@")
        replacements |= {person: "someone", computer: "HOST", far: "HOST"}
    forms = (visible, plain)  # as written in the log and in messages
    return replacements | {form(name): words for form in forms for name, words in replacements.items()}


def report(state: State, log: Iterable[str] = (), home: Path | None = None, host: str = "") -> str:
    """The report: versions, status sentence, progress, failure, and the newest lines of the log (newest first)."""
    status = sentence(state)
    parts = [
        f"Waggle {__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()}"
        f"{', frozen' if getattr(sys, 'frozen', False) else ''}",
        status.word,
        status.says,
        status.detail,
    ]
    if state.ready is not None:
        ready = state.ready
        parts.append(f"{ready.model}, {ready.backend} on {ready.device}, {ready.threads} of {ready.cores} cores")
    saved = "" if state.saved_round is None else f", saved after round {state.saved_round}"
    parts.append(f"round {round_number(state.round)}{saved}, event {state.seq}, {len(state.members)} peers")
    if state.problem is not None and state.problem.detail:
        parts.append(state.problem.detail)
    lines = list(log)[:LINES]
    if lines:
        parts += ["", "Log, newest first:", *lines]
    return redact("\n".join(parts) + "\n", home, names=replacement_names(state, host))
