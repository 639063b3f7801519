"""A report for a person who can help: what runs here and what went wrong, without names, addresses and folders. Pure."""

import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from waggle import __version__
from waggle.protocol.sentence import sentence
from waggle.protocol.state import State

PEER = re.compile(r"\b(?:12D3KooW|Qm)[1-9A-HJ-NP-Za-km-z]{8,}")
ADDRESS = re.compile(r"/(ip4|ip6|dns4|dns6|dns)/[^/\s]+")
IPV4 = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
IPV6 = re.compile(r"\b(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{0,4}\b")
LINK = re.compile(r"waggle://\S+")
MAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b")
TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{8,}\b")
FOLDER = re.compile(r"(/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s\"']+")
LINES = 200  # of the log
CUTS = (
    (LINK, "waggle://…"), (TOKEN, "hf_…"), (MAIL, "someone@…"), (PEER, "peer…"), (ADDRESS, r"/\1/…"), (IPV6, "…:…"), (IPV4, "…"),
    (FOLDER, r"\1…"),
)  # fmt: skip


def redacted(text: str, home: Path | None = None, person: Path | None = None) -> str:
    """The text without links, tokens, mail addresses, peers, network addresses, and whose folders these are."""
    for folder, name in ((home, "<home of Waggle>"), (person or Path.home(), "~")):
        if folder is not None and len(folder.parts) > 1:
            text = text.replace(str(folder), name)
    for pattern, cut in CUTS:
        text = pattern.sub(cut, text)
    return text


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
