"""Numbers, times and plurals for people, and the functions that translate the words of the window."""

import datetime
import html
import re
import time
from collections.abc import Sequence

from waggle.core.message import Message
from waggle.core.peer_id import with_fingerprint
from waggle.gui.i18n import translator, zone
from waggle.gui.i18n.marker import later as later
from waggle.protocol import events
from waggle.protocol.json_lines import LONGEST_SHOWN


def tr(words: str) -> str:
    """Translate words of the window, or a `Message` from below it; unchanged without a translation."""
    return translator.translate(words)


def plural(count: int, singular: str, many: str) -> str:
    """The words for a count in the window's language, with %n replaced by the count; `singular` is the English for 1."""
    return translator.translate_counted(count, singular, many)


def listed(names: Sequence[str], most: int) -> str:
    """ "A", "A and B", "A, B and C", or with more than `most` names "A, B, C and 2 more"."""
    named, more = names[:most], len(names) - most
    if more > 0:
        return ", ".join(named) + plural(more, " and %n more", " and %n more")
    if len(named) < 2:
        return "".join(named)
    return tr("%1 and %2").replace("%1", ", ".join(named[:-1])).replace("%2", named[-1])


def figure(number: int) -> str:
    """1248 as "1,248"."""
    return translator.figure_text(number, 0)


def decimal(number: float, digits: int) -> str:
    """0.256 to two digits: "0.26", or "0,26" in German; negative ones have a minus sign, which a hyphen is not."""
    return f"{number:.{digits}f}".translate({ord("."): translator.number_format().point, ord("-"): translator.MINUS})


def percent(share: float, digits: int = 0) -> str:
    """0.256 as "26%", or "26 %" in German."""
    return decimal(100 * share, digits) + translator.number_format().percent


MONTHS = [
    later("Jan"), later("Feb"), later("Mar"), later("Apr"), later("May"), later("Jun"), later("Jul"), later("Aug"), later("Sep"),
    later("Oct"), later("Nov"), later("Dec"),
]  # fmt: skip


def local(at: float) -> time.struct_time:
    """A time in seconds since the epoch, in the zone of the engine if that runs on another computer."""
    return zone.local(at)


def date_of(at: float) -> datetime.date:
    """The date of such a time."""
    then = local(at)
    return datetime.date(then.tm_year, then.tm_mon, then.tm_mday)


def month(date: datetime.date) -> str:
    return tr(MONTHS[date.month - 1])


def day(date: datetime.date) -> str:
    """ "20 Nov"."""
    return f"{date.day}{translator.number_format().ordinal} {month(date)}"


def whole_day(date: datetime.date) -> str:
    """ "20 Nov 2026"."""
    return f"{day(date)} {date.year}"


def clock(at: float) -> str:
    return time.strftime("%H:%M", local(at))


def ago(at: float, now: float) -> str:
    """Time since, coarse on purpose: after 90 minutes the time of day, after 12 hours with the date."""
    gone = max(0.0, now - at)
    if gone < 5:
        return tr("now")
    if gone < 90:
        return tr("%1 s ago").replace("%1", f"{gone:.0f}")
    if gone < 5400:
        return tr("%1 min ago").replace("%1", f"{gone / 60:.0f}")
    return clock(at) if gone < 43200 else f"{day(date_of(at))}, {clock(at)}"


def short_ago(at: float, now: float) -> str:
    """The same for a narrow column."""
    words, since = ago(at, now), tr(" ago")  # after the time in English, before it in German
    return words.removesuffix(since).removeprefix(since)


def duration(seconds: float) -> str:
    """For axes and pauses: "40 s", "12 min", "1 h 20 min", "3 d 4 h"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def size(number: float) -> str:
    """Bytes in decimal units: "800 bytes", "38 kB", "1.2 MB", "3.4 GB"."""
    if number < 1000:
        return plural(round(number), "%n byte", "%n bytes")
    if number < 1e6:
        return f"{decimal(number / 1e3, 1 if number < 1e4 else 0)} kB"
    if number < 1e9:
        return f"{decimal(number / 1e6, 1 if number < 1e8 else 0)} MB"
    return f"{decimal(number / 1e9, 1)} GB"


def reward(completion: events.ShownCompletion) -> str:
    """ "right", "no answer tag", "0.25  close": a number only where a word does not say it all."""
    if completion.reason == events.UNTAGGED:
        return tr("right, wrong format")
    if completion.reason and completion.reward in (0.0, 1.0):
        return tr(visible(completion.reason))
    digits = 1 if round(completion.reward, 1) == round(completion.reward, 2) else 2
    return f"{decimal(completion.reward, digits)}  {tr(visible(completion.reason))}".strip()


NEWLINE, TAB, HIDDEN = "\u21b5", "\u21e5", "\ufffd"
INVISIBLE = (
    *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), *range(0xFFF9, 0xFFFC), *range(0xFE00, 0xFE10),
    *range(0xD800, 0xE000), *range(0xE0000, 0xE0200), 0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164,
    0xFEFF, 0xFFA0,
)  # fmt: skip
VISIBLE_SIGNS = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), ord(HIDDEN))
VISIBLE_SIGNS |= dict.fromkeys(INVISIBLE, ord(HIDDEN)) | {0x0A: ord(NEWLINE), 0x09: ord(TAB)}


def visible(text: str) -> str:
    """Untrusted text with every control, bidirectional and invisible character replaced by one visible sign; capped in length.

    A message stays one: what it quotes is plain already.
    """
    return text if isinstance(text, Message) else text[:LONGEST_SHOWN].translate(VISIBLE_SIGNS)


def one_line(text: str) -> str:
    """`visible` for a heading: line ends become spaces."""
    return text if isinstance(text, Message) else visible(" ".join(text[:LONGEST_SHOWN].split()))


def shortened(words: str, most: int) -> str:
    """At most so many characters of these words, with an ellipsis where there are more."""
    return words if len(words) <= most else f"{words[:most].rstrip()}…"


def peer_name(name: str, peer_id: str) -> str:
    """A peer's friendly name with the fingerprint of its key, as it stands wherever two peers could be confused."""
    return one_line(with_fingerprint(name, peer_id))


def visible_lines(text: str) -> str:
    """`visible` for each line; line ends stay."""
    return "\n".join(map(visible, text.splitlines()))


LONG_WORD = re.compile(r"\S{30}(?=\S)")


def breakable(words: str) -> str:
    """Add places where a very long word may break at the end of a line: else it would widen a label that wraps."""
    return LONG_WORD.sub(lambda part: f"{part[0]}\u200b", words)


LONGEST_LINE = 100


def tooltip_text(words: str) -> str:
    """Words for a tooltip: Qt parses anything that looks like markup, and wraps lines only in markup."""
    marked = "<" in words or len(words) > LONGEST_LINE
    return f'<span style="white-space: pre-wrap">{html.escape(words)}</span>' if marked else words
