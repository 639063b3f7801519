"""Invite links in texts as mail, chats and phones pass them on.

On the way, programs escape a link, wrap it, put quotes, brackets or marks around it, and add parameters of their own. What is
undone here can only make a link that somebody damaged whole again: whether it is an invite, `network/messages/invite.py` decides.
"""

import html
import quopri
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

MOST_CHARACTERS = 16_000  # of a text that is searched: a link has at most 4,096
MOST_LINES = 64  # into which a link may be broken
MOST_STARTS = 4  # of links in one text
MOST_MARKS = 16  # behind a link
START = re.compile(r"waggle(?::|%3a)(?:/|%2f){0,2}join(?:/|%2f)?(?:\?|%3f)", re.IGNORECASE)
SCHEME = re.compile(r"waggle(?::|%3a)", re.IGNORECASE)
PIECE = re.compile(r"""[^\s<>"'`|*{}\\^\u0080-\U0010ffff]+""")  # characters that a link may have
SPACE = re.compile(r"\s+")
QUOTE_MARK = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")  # before each line of an answered mail
SOFT_BREAK = re.compile(r"=\r?\n")  # of mail that is quoted-printable
KEY = re.compile(r"(?:#|%23)key=([0-9A-Za-z_-]{43})")  # nothing of a link stands behind it
TRACKED = re.compile(
    r"(?:utm_|mc_|hsa_|_hs|pk_|mtm_)\w*|(?:fb|g|d|y|tw|tt)clid|msclkid|igshid?|si|ref|ref_src|source"
)  # parameters that mail and social networks add


def has_link(text: str) -> bool:
    """Whether a text may hold an invite link, perhaps a damaged one."""
    return any(map(SCHEME.search, _readings(text)))


def links_in(text: str) -> Iterator[str]:
    """What may be the invite link in a text, the most likely first; nothing if it holds none.

    Of a link in several lines, that is as many of them as there are, then fewer and fewer.
    """
    for reading in _readings(text):
        for start in islice(START.finditer(reading), MOST_STARTS):
            yield from _links_from(reading[start.end() :])


def _readings(text: str) -> Iterator[str]:
    """The text as it is meant, with less and less faith in what it says: escapes of HTML, of mail, of an address in another."""
    visible = "".join(character for character in text[:MOST_CHARACTERS] if unicodedata.category(character) != "Cf")
    plain = QUOTE_MARK.sub("", html.unescape(html.unescape(visible)))
    yield plain
    if SOFT_BREAK.search(plain) or "=3D" in plain:
        yield quopri.decodestring(plain.encode(errors="ignore")).decode(errors="ignore")
    yield unquote(plain)


def _links_from(rest: str) -> Iterator[str]:
    """Links whose parameters begin here."""
    first = PIECE.match(rest)
    if first is None:
        return
    if "%3d" in first[0].lower():  # it is a parameter of another address, whose own parameters follow
        yield _written(unquote(first[0].partition("&")[0]))
    pieces, end = [first[0]], first.end()
    while len(pieces) < MOST_LINES and (space := SPACE.match(rest, end)) and (more := PIECE.match(rest, space.end())):
        pieces.append(more[0])
        end = more.end()
    for count in range(len(pieces), 0, -1):
        yield from dict.fromkeys(map(_written, _without_end("".join(pieces[:count]))))


def _without_end(parameters: str) -> Iterator[str]:
    """The parameters, up to the key if there is one, then without the marks of a sentence or of a chat behind them."""
    if key := KEY.search(parameters):
        yield parameters[: key.start()] + f"#key={key[1]}"
        return
    yield parameters
    for _ in range(MOST_MARKS):
        if not parameters or parameters[-1].isalnum():
            return
        parameters = parameters[:-1]
        yield parameters


def _written(parameters: str) -> str:
    """The link with these parameters, as Waggle writes it, without those of trackers."""
    query, mark, fragment = parameters.partition("#")
    known = [part for part in query.split("&") if part and not TRACKED.fullmatch(part.partition("=")[0])]
    known = [part.lower() if part.lower().startswith("charter=") else part for part in known]
    return f"waggle://join?{'&'.join(known)}{mark}{fragment}"
