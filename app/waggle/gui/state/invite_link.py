"""Invite links and files, as the window reads them."""

import re
from pathlib import Path

MOST_OF_A_FILE = 8192  # bytes: a link has at most half of that
LINK = re.compile(r"""waggle:[^\s<>"']+""")
INVITE_LINK = re.compile(r"waggle://join/?\?.")


def first_link_in_file(path: Path) -> str:
    """The first possible invite link in a file; empty without one. Raises OSError."""
    with path.open("rb") as file:
        return first_link(file.read(MOST_OF_A_FILE).decode("utf-8-sig", "replace"))


def first_link(words: str) -> str:
    """The first possible invite link in typed or pasted text, such as a whole e-mail; empty without one."""
    match = LINK.search(words)
    return match[0].rstrip(".,;)") if match else ""


def is_invite(words: str) -> bool:
    """Whether the text has a link with the form of an invite; only the engine knows whether it is valid."""
    return bool(INVITE_LINK.match(first_link(words)))
