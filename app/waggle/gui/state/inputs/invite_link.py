"""Invite links and files, as the window reads them."""

import re
from pathlib import Path

from waggle.core.text import pasted_link
from waggle.core.text.person_text import decoded

MOST_OF_A_FILE = 16_384  # bytes: a link has at most a quarter of that
LONGEST_TEXT = 8000  # characters that are sent to the engine
PICTURES = (".png", ".jpg", ".jpeg", ".jfif", ".webp", ".bmp", ".gif")  # in which a QR code is looked for
END = re.compile(r"\n[ \t\r]*\n")  # an empty line: mail wraps links, but not so


def is_picture(path: str | Path) -> bool:
    """Whether a file is a picture by its name, and so may show an invite."""
    return Path(path).suffix.casefold() in PICTURES


def is_invite_file(path: str) -> bool:
    """Whether a file is a saved invite or a picture by its name."""
    return path.casefold().endswith(".waggle") or is_picture(path)


def invite_in_file(path: Path) -> str:
    """As `invite_in`, in a file. Raises OSError."""
    with path.open("rb") as file:
        return invite_in(decoded(file.read(MOST_OF_A_FILE), "replace"))


def invite_in(words: str) -> str:
    """The part of a typed or pasted text, such as a whole e-mail, that may be an invite; empty if there is none.

    Only the engine knows whether it is valid.
    """
    if next(pasted_link.links_in(words), None) is None:
        return ""
    start = pasted_link.START.search(words)  # not there if it is escaped
    part = words[start.start() :] if start else words
    return END.split(part, maxsplit=1)[0][:LONGEST_TEXT].strip()
