"""What is known of a swarm, as the card of a swarm and its preview show it."""

from collections.abc import Collection, Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLayout, QWidget

from waggle.gui.i18n.formatting import breakable, later, one_line, plural, shortened, tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import EvenRow, StretchRow
from waggle.gui.widgets.layout import as_widget, column, frame, row
from waggle.gui.widgets.painted_widgets import Chip
from waggle.gui.widgets.text import text
from waggle.protocol.events_swarms import SpecialtyDetails, SwarmDetails

MOST_TITLES = 9
WIDEST = 760  # pixels of a value, at a text size of 100%: longer lines are hard to read
MOST_SAMPLES = 3
LEAST_SAMPLE = 220  # pixels of a sample beside others, at a text size of 100%
FITTING, LONGEST_SAMPLE = 110, 220  # characters of a sample that fits well, and at most
DIFFICULTIES = {"easy": later("easy"), "standard": later("standard"), "hard": later("hard")}
OF_ALL = {"easy": later("Easy questions: %1"), "standard": later("Standard questions: %1"), "hard": later("Hard questions: %1")}
NOT_VERIFIED = later("answers not verified")


def trains_on(swarm: SwarmDetails) -> str:
    """The specialties in one line, with the answers that nobody verified, and with the difficulty if all have the same."""
    unchecked = [unchecked_mark(specialty.levels, specialty.unchecked) for specialty in swarm.specialties]
    all_unchecked = set(unchecked) == {tr(NOT_VERIFIED)}
    marks = [
        tr("own questions") if specialty.questions else mark for specialty, mark in zip(swarm.specialties, unchecked, strict=True)
    ]
    titles = [
        tr(one_line(specialty.title)) + (f" ({mark})" if mark and not all_unchecked else "")
        for specialty, mark in zip(swarm.specialties, marks, strict=True)
    ]
    listed_titles = ", ".join(titles[:MOST_TITLES])
    if len(titles) > MOST_TITLES:
        listed_titles += plural(len(titles) - MOST_TITLES, " and %n more", " and %n more")
        if any(unchecked[MOST_TITLES:]) and not all_unchecked:
            listed_titles += tr(" (answers of some not verified)")
    levels = {level for specialty in swarm.specialties for level in specialty.levels}
    level = levels.pop() if len(levels) == 1 else ""
    if len(titles) > 1:  # in parentheses it would seem to be of the last one
        listed_titles = tr(OF_ALL[level]).replace("%1", listed_titles) if level in OF_ALL else listed_titles
        return tr("%1; answers of all not verified").replace("%1", listed_titles) if all_unchecked else listed_titles
    about = [tr(DIFFICULTIES[level])] if level in DIFFICULTIES else []
    about += [tr(NOT_VERIFIED)] if all_unchecked else []
    return f"{listed_titles} ({', '.join(about)})" if about else listed_titles


def unchecked_mark(levels: Iterable[str], unchecked: Collection[str], mark: str = NOT_VERIFIED) -> str:
    """That nobody verified the answers of these levels, with the levels if they are some only; empty if all were checked.

    `mark`: the words for it.
    """
    levels = tuple(levels)
    unchecked_levels = [level for level in levels if level in unchecked]
    if not unchecked_levels:
        return ""
    if len(unchecked_levels) == len(levels):
        return tr(mark)
    names = [tr(DIFFICULTIES[level]) if level in DIFFICULTIES else one_line(level) for level in unchecked_levels]
    return f"{', '.join(names)}: {tr(mark)}"


def has_unchecked(swarm: SwarmDetails) -> bool:
    """Whether nobody could check the answer keys of some level."""
    return any(unchecked_mark(specialty.levels, specialty.unchecked) for specialty in swarm.specialties)


def members_words(swarm: SwarmDetails, members: int | None) -> str:
    """How many members the swarm has, as far as that is known."""
    if members is not None:
        return plural(members, "only you so far", "%n members, you included")
    if swarm.members and not swarm.active:
        return plural(swarm.members, "%n member when last asked", "%n members when last asked")
    return tr("no members seen yet") if swarm.shipped and not swarm.active else ""


def head_line(theme: Theme, words: QLayout, swarm: SwarmDetails) -> QWidget:
    """Words about a swarm and its chips; below each other where the width does not suffice."""
    return StretchRow((as_widget(words), 1), (as_widget(row(*_chips(theme, swarm), None)), 0))


def _chips(theme: Theme, swarm: SwarmDetails) -> list[Chip]:
    """The chips of a swarm: active, private, shipped, created here."""
    chip_widgets = []
    if swarm.active:
        chip_widgets.append(Chip(theme, tr("You are here"), "accent", "on"))
    if swarm.private:
        chip_widgets.append(Chip(theme, tr("Private"), "plain", "shield"))
    if swarm.shipped:
        chip_widgets.append(Chip(theme, tr("Comes with Waggle"), "plain"))
    elif swarm.created:
        chip_widgets.append(Chip(theme, tr("Created here"), "plain"))
    return chip_widgets


class Fact(QWidget):
    """One line of a card: a title and a value."""

    def __init__(self, theme: Theme, title: str, words: str) -> None:
        super().__init__()
        self._title, name = title, text(theme, title, "small", "soft", wrap=True)
        self._value = text(theme, "", "small", wrap=True)
        self._value.setMaximumWidth(theme.px(WIDEST))
        name.setFixedWidth(theme.px(112))
        name.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setLayout(row(name, (self._value, 1), (QWidget(), 0), gap=8))
        self.say(words)

    def say(self, words: str) -> None:
        self._value.setText(words)
        self._value.setAccessibleName(f"{self._title}: {words}")


def sample_questions(theme: Theme, swarm: SwarmDetails, title: str) -> QWidget | None:
    """Sample questions of specialties that come with Waggle, those that fit and say most in words; None without any."""
    samples = [specialty for specialty in swarm.specialties if specialty.sample and not specialty.questions]
    if not samples:
        return None
    suitable = sorted(samples, key=_suitable)[:MOST_SAMPLES]
    wells = EvenRow(*(_sample(theme, specialty) for specialty in sorted(suitable, key=lambda specialty: len(specialty.sample))))
    wells.set_gap(12)
    return as_widget(column(text(theme, title, "small", "soft"), wells, gap=4))


def _suitable(specialty: SpecialtyDetails) -> tuple[bool, int]:
    """The order in which samples are chosen: those that fit in three lines first, by their letters, then the shortest."""
    longer = len(specialty.sample) > FITTING
    return longer, len(specialty.sample) if longer else -sum(map(str.isalpha, specialty.sample))


def _sample(theme: Theme, specialty: SpecialtyDetails) -> QWidget:
    title = text(theme, tr(one_line(specialty.title)), "tag", "soft")
    well = frame("well", column(title, sample_label(theme, specialty.sample), None, gap=1, margins=(12, 9, 12, 10)))
    well.setMinimumWidth(theme.px(LEAST_SAMPLE))
    return well


def sample_label(theme: Theme, sample: str) -> QLabel:
    """A sample question on one paragraph, cut to LONGEST_SAMPLE."""
    words = " ".join(sample.split())
    cut = shortened(words, LONGEST_SAMPLE)
    return text(theme, breakable(visible(cut)), "small", wrap=True)
