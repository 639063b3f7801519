"""Home's comb of skills, and what its cells mean."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy

from waggle.gui.charts.skill_comb import CellSize, SkillComb
from waggle.gui.i18n.formatting import one_line, peer_name, plural, tr
from waggle.gui.state.learning_story import has_curve, skills
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State

MOST = 5  # teachers that are named
PAD, GAP = 20, 28  # pixels beside the comb, and between it and them
BESIDE = 170  # pixels that they need, before text scaling


class SkillCard(QFrame):
    """Hidden until there is a curve, and the model has solved something. `progress_wanted`: see all first right answers."""

    progress_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.comb = SkillComb(theme)
        self._key = ElidedLabel(theme, role="small", tone="text_faint")
        self._theme, self._is_low, self._has_ahas = theme, False, False
        self._lines = [ElidedLabel(theme, role="small", tone="peer") for _ in range(MOST)]
        self._taught = as_widget(column(4, text(theme, tr("After a peer's answer"), "label", "soft"), *self._lines, None, gap=3))
        head = row(text(theme, tr("What it can do"), "heading"), 4, (self._key, 1))
        below = row(self.comb, (self._taught, 1), gap=GAP)
        self._sign, self.newest = Icon(theme, "on", "accent_line", 16), ElidedLabel(theme, role="small", tone="text_soft")
        self.all_ahas = Button(theme, "", "link")
        self.all_ahas.clicked.connect(self.progress_wanted)
        keeps = self.newest.sizePolicy()
        keeps.setRetainSizeWhenHidden(True)  # so that the link beside it stays at the right
        self.newest.setSizePolicy(keeps)
        self._aha = as_widget(row(self._sign, (self.newest, 1), self.all_ahas))
        self._aha.hide()
        self.setLayout(column(head, below, self._aha, gap=8, margins=(PAD, 14, PAD, 10)))

    def set_size(self, size: CellSize) -> None:
        self.comb.set_size(size)
        self._is_low = size == "low"
        self._aha.setVisible(self._has_ahas and not self._is_low)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Name the teachers where there is room beside the comb."""
        room = self.width() - 2 * PAD - GAP - self.comb.sizeHint().width()
        is_named = bool(self._lines[0].words()) and room >= self._theme.px(BESIDE)
        self._taught.setVisible(is_named)
        for part in (self._sign, self.newest):  # its first line says it
            part.setVisible(not is_named)

    def show_state(self, state: State) -> None:
        known = skills(state)
        self.setVisible(has_curve(state) and any(skill.right or skill.teacher is not None for skill in known))
        self.comb.show_skills(known)
        tested = any(skill.total for skill in known)
        taught = [skill for skill in known if skill.teacher]
        newest = sorted(taught, key=lambda skill: -skill.solved_in)[:MOST]
        for place, line in enumerate(self._lines):
            skill = newest[place] if place < len(newest) else None
            line.setVisible(skill is not None)
            words = tr("%1, from %2").replace("%1", tr(one_line(skill.title))) if skill else ""
            line.say(words.replace("%2", skill.teacher or "") if skill else "")
        self._fit()
        self._show_newest(state)
        words = tr("right answers to new questions") if tested else tr("filled in after the next test")
        ring = tr("thick ring: after a peer's answer")
        self._key.say(f"{words}; {ring}" if taught else words)

    def _show_newest(self, state: State) -> None:
        """The newest first right answer, and how many there are; in a low window the chart above has to do."""
        self._has_ahas = bool(state.ahas)
        self._aha.setVisible(self._has_ahas and not self._is_low)
        if not state.ahas:
            return
        newest = state.ahas[-1]
        self._sign.show_icon("peers" if newest.origin else "on", "peer" if newest.origin else "accent_line")
        words = tr("Newest first right answer: %1, %2")
        whose = tr("from %1").replace("%1", peer_name(newest.name, newest.origin)) if newest.origin else tr("found by itself")
        self.newest.say(words.replace("%1", tr(one_line(newest.specialty))).replace("%2", whose))
        self.all_ahas.say(plural(len(state.ahas), "See it on Progress", "See all %n on Progress"))
