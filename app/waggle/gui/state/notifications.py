"""Warnings, and the notifications shown while the window is closed, which settings can switch off. Pure functions."""

from typing import Literal

import msgspec
from msgspec.structs import replace

from waggle.gui.i18n.formatting import one_line, peer_name, tr
from waggle.protocol.events import Aha, Warned
from waggle.protocol.state import State
from waggle.protocol.text.status_text import sentence

RECENT = 900.0  # seconds for which a warning is shown
Kind = Literal["problems", "discoveries"]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind
    title: str
    words: str


def new_notices(before: State, after: State) -> list[Notice]:
    """The notifications for what changed between two States."""
    news = []
    fails = after.problem is not None and after.problem != before.problem
    asks = after.waits_for_choice and not before.waits_for_choice
    if fails or asks:
        status = sentence(after)
        news.append(Notice(kind="problems", title=tr(status.says), words=tr(status.detail)))
    began = after.ready.at if after.ready is not None else float("inf")
    known = {aha.specialty for aha in before.ahas}
    for aha in after.ahas:
        if aha.specialty not in known and aha.at > began:  # history that is loaded later is no news
            news.append(Notice(kind="discoveries", title=_solved_text(aha.specialty), words=_teacher_text(aha)))
    return news


def recent_warnings(state: State, now: float) -> list[Warned]:
    """The recent warnings, newest first, then what holds something back for as long as it does.

    An engine older than the window sends old warnings, too.
    """
    recent = [warned for warned in state.warnings if now - warned.at < RECENT]
    return recent + [Warned(title=guard.says, advice=guard.ends, at=guard.since) for guard in state.guards]


def new_warnings(before: State, after: State, now: float) -> list[Warned]:
    """The recent warnings that came between two States, newest first; a guard comes once, whatever its figures do meanwhile."""
    acting = {guard.name for guard in before.guards}
    known = set(before.warnings)
    begun = replace(after, guards=tuple(guard for guard in after.guards if guard.name not in acting))
    return [warned for warned in recent_warnings(begun, now) if warned not in known]


def warning_words(warned: Warned) -> str:
    return f"{tr(warned.title)} {tr(warned.advice)}".strip()


def _solved_text(specialty: str) -> str:
    return tr("Your model solved its first question: %1").replace("%1", tr(one_line(specialty)))


def _teacher_text(aha: Aha) -> str:
    if not aha.name:
        return tr("It found the way alone.")
    return tr("It had learned there from %1.").replace("%1", peer_name(aha.name, aha.origin))
