"""Home's comb of skills, what its cells mean, and who taught them."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from waggle.gui.charts.painted.skill_comb import NAMED, CellSize, SkillComb
from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.state.story.learning_story import has_curve, skills
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State

MOST = 3  # teachers that are named, those of most skills first
PAD, GAP = 20, 28  # pixels beside the comb, and between it and them
BESIDE = 150  # pixels that they need, before text scaling


class TeacherLine(QWidget):
    """A peer, and the skills in which it was right first."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._name, self._skills = ElidedLabel(theme, role="label", tone="peer"), text(theme, "", "small", "soft", wrap=True)
        self.setLayout(column(self._name, self._skills, gap=0))

    def show_teacher(self, name: str, titles: Sequence[str]) -> None:
        self._name.say(one_line(name))
        self._skills.setText(", ".join(tr(one_line(title)) for title in titles))


class SkillCard(QFrame):
    """Hidden until there is a curve, and the model has solved something; shown empty while the first test fills it.

    `progress_wanted`: see all first right answers.
    """

    progress_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.comb = SkillComb(theme)
        self._key = ElidedLabel(theme, role="small", tone="text_faint")
        self._theme = theme
        self._has_teachers = self._has_ahas = False
        self._names_all = True  # or there are more teachers than have a line
        self._whole_key, self._short_key = "", ""
        self._teachers = [TeacherLine(theme) for _ in range(MOST)]
        taught = text(theme, tr("Peers right first"), "small", "soft")
        self._taught = as_widget(column(4, taught, *self._teachers, None, gap=7))
        self.all_ahas = Button(theme, tr("See who was first"), "link")
        self.all_ahas.clicked.connect(self.progress_wanted)
        self._title = text(theme, tr("What it can do"), "heading")
        head = row(self._title, 4, (self._key, 1), self.all_ahas)
        self.setLayout(column(head, row(self.comb, (self._taught, 1), gap=GAP), gap=8, margins=(PAD, 12, PAD, 14)))

    def set_size(self, size: CellSize) -> None:
        self.comb.set_size(size)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Name the teachers where there is room beside the comb, and explain the figures where there is room above it."""
        room = self.width() - 2 * PAD - GAP - self.comb.sizeHint().width()
        names = self._has_teachers and room >= self._theme.px(BESIDE)
        self._taught.setVisible(names)
        self.all_ahas.setVisible(self._has_ahas and not (names and self._names_all))
        link = 0 if self.all_ahas.isHidden() else self.all_ahas.sizeHint().width()
        above = self.width() - 2 * PAD - self._title.sizeHint().width() - link - self._theme.px(36)
        fits = self._key.fontMetrics().horizontalAdvance(self._whole_key) <= above
        self._key.say(self._whole_key if fits else self._short_key)  # the colour of a ring is explained above, too

    def show_state(self, state: State) -> None:
        known = sorted(skills(state), key=lambda skill: -skill.share)
        awaits = state.takes_first_test and 0 < len(known) <= NAMED
        self.setVisible(awaits or (has_curve(state) and any(skill.right or skill.teacher is not None for skill in known)))
        self.comb.show_skills(tuple(known))
        by_teacher: dict[str, list[str]] = {}
        for skill in known:
            if skill.teacher:
                by_teacher.setdefault(skill.teacher, []).append(skill.title)
        self._has_ahas = bool(state.ahas)
        tested = any(skill.total for skill in known)
        untested = tr("filled in after this test") if awaits else tr("filled in after the next test")
        words = tr("right on new questions") if tested else untested
        self._short_key = words
        self._whole_key = f"{words}; {tr('thick blue ring: a peer was right first')}" if by_teacher else words
        self._show_teachers(by_teacher)

    def _show_teachers(self, by_teacher: dict[str, list[str]]) -> None:
        most = sorted(by_teacher.items(), key=lambda item: -len(item[1]))[:MOST]
        self._has_teachers, self._names_all = bool(most), len(by_teacher) <= MOST
        for place, line in enumerate(self._teachers):
            line.setVisible(place < len(most))
            if place < len(most):
                line.show_teacher(*most[place])
        self._fit()
