"""Invite links and files, as the window reads and writes them."""

import re
from pathlib import Path

MOST_OF_A_FILE = 8192  # bytes: a link has half of that


LINK = re.compile(r"""waggle:[^\s<>"']+""")


INVITE_LINK = re.compile(r"waggle://join/?\?.")


def first_link_in_file(path: Path) -> str:
    """The first in a file that could be an invite; empty where there is none. Raises OSError."""
    with path.open("rb") as file:
        return first_link(file.read(MOST_OF_A_FILE).decode("utf-8-sig", "replace"))


def first_link(words: str) -> str:
    """The first that could be an invite in what somebody wrote or pasted, a whole letter perhaps; empty where there is none."""
    match = LINK.search(words)
    return match[0].rstrip(".,;)") if match else ""


def is_invite(words: str) -> bool:
    """Whether there is a link in it that begins as an invite does; whether it is one that leads somewhere, the engine knows."""
    return bool(INVITE_LINK.match(first_link(words)))
