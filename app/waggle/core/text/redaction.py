"""Redaction: removes from reports and logs what says who and where a person is. One list of patterns for all of them. Pure."""

import contextlib
import ipaddress
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from waggle.core import log

PEER = re.compile(r"\b(12D3KooW|Qm)[1-9A-HJ-NP-Za-km-z]{8,}")
ADDRESS = re.compile(r"/(ip4|ip6|dns4|dns6|dnsaddr|dns|ip6zone)/[^/\s]+")
URL = re.compile(r"\b(wss?|https?)://(?!huggingface\.co\b)[^\s\"'<>]+")
IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")
IPV6 = re.compile(r"(?:(?<![\w:.])|(?<=\w:))(?=[0-9a-fA-F:]*:[0-9a-fA-F:]*:)[0-9a-fA-F:]+(?:\.\d+){0,3}(?:%\w+)?(?![\w:…])")
GROUPS = 8  # of a full IPv6 address; nothing else has as many
LINK = re.compile(r"\bwaggle:\S+")
MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+\b")
# Only before an error of ssh: in other places, a name without a dot after @ may be a revision of a model.
LOGIN = re.compile(r"(?<![\w.+-])[\w.+-]+@[^\s:@]+(?=: Permission denied)")
SSH = re.compile(r"\b(connect to host|resolve hostname|Connection to) [^\s:]+")  # in messages of ssh
FOLDER = re.compile(r"(/home/|/Users/|/media/)[^/\\\s\"']+")
WINDOWS_FOLDER = re.compile(  # names may have spaces and apostrophes if a separator or quote ends them
    r"""([A-Za-z]:[\\/]+Users[\\/]+)(?:[^/\\"<>|:*?\r\n]{1,64}(?=[\\/])|[^/\\"'<>|:*?\r\n]{1,64}(?=["'])|[^/\\\s"']+)"""
)
THIS_NODE = "this node"
CUTS = (
    (LINK, "waggle:…"), (URL, r"\1://…"), (MAIL, "someone@…"), (LOGIN, "someone@…"), (PEER, r"\1…"),
    (ADDRESS, r"/\1/…"), (IPV4, "…"), (FOLDER, r"\1…"), (WINDOWS_FOLDER, r"\1…"),
)  # fmt: skip


def redact(
    text: str, home: Path | None = None, person: Path | None = None, *, names: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The text without tokens, keys, links, mail addresses, peers, network addresses, and names of users and computers.

    `home` becomes HOME and `person`, the user's folder, becomes ~. `names` maps further names to what stands for them.
    """
    text = log.without_secrets(text)
    for folder, name in ((home, "HOME"), (person or Path(os.path.expanduser("~")), "~")):  # not Path.home: there may be none
        if folder is not None and len(folder.parts) > 1:
            escaped = str(folder).replace("\\", "\\\\")  # as repr() and error messages write it
            for spelling in (str(folder), escaped):
                text = re.sub(rf"{re.escape(spelling)}(?![\w.-])", name, text)
    text = without_names(text, names)  # after folders, which may contain names, and before patterns cut into names
    for pattern, cut in CUTS:
        text = pattern.sub(cut, text)
    text = SSH.sub(r"\1 …", IPV6.sub(_without_address, text))
    computer = platform.node()
    return re.sub(rf"\b{re.escape(computer)}\b", "COMPUTER", text) if len(computer) > 1 else text


def without_names(text: str, names: Mapping[str, str]) -> str:
    """The text with each name replaced where it stands as a whole word. For names that no pattern can recognise."""
    longest_first = sorted(filter(None, names), key=len, reverse=True)  # because a name may contain another
    if not longest_first:
        return text
    alternatives = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<!\w)(?:{alternatives})(?!\w)", lambda match: names[match[0]], text)


def _without_address(match: re.Match[str]) -> str:
    """Redact what is an IPv6 address, and not a time of day. A last colon may belong to the sentence."""
    match_text = match[0]
    for text in (match_text, match_text.removesuffix(":")):
        with contextlib.suppress(ValueError):
            address = ipaddress.IPv6Address(text)
            return match_text if address.is_unspecified or address.is_loopback else match_text.replace(text, "…:…")
    return "…:…" if match_text.count(":") >= GROUPS else match_text
