"""The page of a class, for a projector, and the pages by which others join: all HTML, without scripts and external files.

Names are chosen by members of a private swarm, questions and titles come from a charter: all of them are escaped. A name is never
alone: two may have chosen the same, so the fingerprint of the key stands below it.
"""

import ipaddress
from collections.abc import Sequence
from html import escape

from waggle.core.qr_code import modules
from waggle.network.messages.addresses import Ip, host_of
from waggle.network.web.class_statistics import ClassStatus, Find, PupilStatus, SpecialtyFinds
from waggle.network.web.page_frame import framed
from waggle.network.web.training_page import bar

CLASS, JOIN, INVITE = "/class", "/join", "/invite.waggle"
KINDS = {CLASS: "text/html", JOIN: "text/html", INVITE: "application/octet-stream"}  # octet-stream: browsers save it
REFRESH_S, SHEET = 5, "class.css"
QUIET = 4  # modules of white margin, as the QR standard requires
COLUMNS = ((6, 2), (15, 3), (32, 4), (60, 5))  # of the tiles, up to so many computers
MOST_PUPILS, MOST_SPECIALTIES, MOST_FINDS = 60, 6, 3
LONGEST_QUESTION, LONGEST_ANSWER = 200, 16  # characters; the page cuts a question to a line
ANYWHERE = ("0.0.0.0", "::")


def address(host: str, port: int, addresses: Sequence[str]) -> str:
    """Where others on the network find the page by which they join; empty if only this computer can open it."""
    own = [each for each in addresses if "/p2p-circuit/" not in each]
    hosts = [host_of(each) for each in own] if host in ANYWHERE else [_ip(host)]
    near = [each for each in hosts if each is not None and not each.is_loopback and not each.is_link_local]
    if host in ANYWHERE:
        near = [each for each in near if each.version == ipaddress.ip_address(host).version]
    near.sort(key=lambda each: each.is_global)
    if not near:
        return ""
    return f"http://{f'[{near[0]}]' if near[0].version == 6 else near[0]}:{port}{JOIN}"


def _ip(host: str) -> Ip | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:  # a name
        return None


def content(path: str, status: ClassStatus) -> bytes:
    """The page at a path of KINDS."""
    if path == INVITE:
        return f"{status.link}\n".encode()
    return (_class_page(status) if path == CLASS else _join_page(status)).encode()


def _class_page(status: ClassStatus) -> str:
    count = len(status.pupils)
    figures = "".join(
        f'<div><span class="figure">{number:,}</span> {words}</div>'.replace(",", " ")
        for number, words in (
            (count, "computer" if count == 1 else "computers"),
            (status.answers, "answers"),
            (status.right, "of them right"),
        )
    )
    return framed(
        status.swarm,
        f'<main class="class"><header><h1>{escape(status.swarm)}</h1><div class="figures">{figures}</div></header>'
        f'<section class="here"><h2>Who is here</h2>{_pupils(status.pupils)}</section>'
        f'<section class="found"><h2>What was found</h2>{_specialties(status)}<h2>Newest</h2>{_finds(status.latest)}</section>'
        f"{_how_to_join(status)}</main>",
        sheet=SHEET,
        refresh_s=REFRESH_S,
    )


def _pupils(pupils: Sequence[PupilStatus]) -> str:
    if not pupils:
        return '<p class="note">Nobody yet.</p>'
    columns = next((columns for most, columns in COLUMNS if len(pupils) <= most), COLUMNS[-1][1])
    tiles = "".join(map(_pupil, pupils[:MOST_PUPILS]))
    more = len(pupils) - MOST_PUPILS
    rest = f'<p class="note">and {more} more</p>' if more > 0 else ""
    return f'<ul class="pupils columns{columns}">{tiles}</ul>{rest}'


def _pupil(pupil: PupilStatus) -> str:
    right = "here" if pupil.right is None else f"✓ {pupil.right:,}".replace(",", "\u2009")
    key = f'<span class="key">{escape(pupil.fingerprint)}</span>'
    return f'<li><b>{escape(pupil.name)}</b>{key}<span class="right">{right}</span></li>'


def _who(pupil: PupilStatus) -> str:
    return f'<b>{escape(pupil.name)}</b> <span class="key">{escape(pupil.fingerprint)}</span>'


def _specialties(status: ClassStatus) -> str:
    rows = "".join(_specialty(each, len(status.pupils)) for each in status.specialties[:MOST_SPECIALTIES])
    return f'<ul class="specialties">{rows}</ul>'


def _specialty(finds: SpecialtyFinds, present: int) -> str:
    whole = max(present, finds.finders)
    count = f"{finds.finders} of {whole}" if whole else ""
    first = f"first {_who(finds.first)}" if finds.first else "nobody yet" if not finds.finders else "known before"
    return (
        f'<li><div><span class="title">{escape(finds.title)}</span><span class="count">{count}</span></div>'
        f'{bar(finds.finders / whole if whole else None)}<p class="note">{first}</p></li>'
    )


def _finds(finds: Sequence[Find]) -> str:
    if not finds:
        return '<p class="note">The first right answers appear here.</p>'
    return f'<ul class="finds">{"".join(map(_find, finds[:MOST_FINDS]))}</ul>'


def _find(find: Find) -> str:
    learned = f", learned from {_who(find.learned_from)}" if find.learned_from else ""
    question = " ".join(find.question[:LONGEST_QUESTION].split())
    answer = f" <em>{escape(find.answer)}</em>" if 0 < len(find.answer) <= LONGEST_ANSWER else ""
    says = f'<p class="note">{escape(question)}</p>' if question else ""
    return f'<li><p class="what">{_who(find.by)}: {escape(find.specialty)}{learned}{answer}</p>{says}</li>'


def _how_to_join(status: ClassStatus) -> str:
    words = status.page or status.link
    if not words:
        return '<footer><p class="note">The invite appears here once this computer has an address.</p></footer>'
    if not status.page:
        return f"<footer>{_code(words)}<div><h2>To join</h2><p>Scan this invite on a computer with Waggle.</p></div></footer>"
    return (
        f"<footer>{_code(words)}<div><h2>To join, open this page on your computer</h2>"
        f'<p class="page">{escape(status.page)}</p></div></footer>'
    )


def _join_page(status: ClassStatus) -> str:
    if not status.link:
        steps = "<p>There is no invite yet: this computer has no address at which others reach it. Load this page again soon.</p>"
    else:
        link = escape(status.link)
        steps = (
            f'<p><a class="button" href="{link}">Open the invite in Waggle</a></p>'
            "<p>Waggle shows what you would join, and what leaves your computer. Nothing is joined until you say so. "
            "There you can also choose the name that this class sees.</p>"
            f'<h2>If nothing opens</h2><p><a href="{INVITE}" download="invite.waggle">Save the invite as a file</a>, and drop it '
            "on the window of Waggle. In a terminal:</p><code>waggle join invite.waggle --as NAME</code>"
            f"<h2>The link</h2><code>{link}</code>{_code(status.link)}"
            '<p class="note">Whoever has this link can join, and it cannot be taken back. Do not publish it.</p>'
        )
    return framed(f"Join {status.swarm}", f'<main class="join"><h1>Join {escape(status.swarm)}</h1>{steps}</main>', sheet=SHEET)


def _code(words: str) -> str:
    """The words as a QR code, dark on white in every theme; nothing for words that are too long for one."""
    rows = modules(words)
    if not rows:
        return ""
    size = len(rows) + 2 * QUIET
    path = "".join(
        f"M{across + QUIET} {down + QUIET}h1v1h-1z" for down, row in enumerate(rows) for across, dark in enumerate(row) if dark
    )
    return (
        f'<svg class="code" viewBox="0 0 {size} {size}" role="img" aria-label="QR code" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{path}" fill="#000"/></svg>'
    )
