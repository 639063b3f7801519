"""Home's comb of skills, and what its cells mean."""

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy

from waggle.gui.charts.skill_comb import CellSize, SkillComb
from waggle.gui.i18n.formatting import one_line, tr
from waggle.gui.state.learning_story import has_curve, skills
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State

MOST = 5  # teachers that are named
PAD, GAP = 20, 28  # pixels beside the comb, and between it and them
BESIDE = 170  # pixels that they need, before text scaling


class SkillCard(QFrame):
    """Hidden until there is a curve, and the model has solved something."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.comb = SkillComb(theme)
        self._key = ElidedLabel(theme, role="small", tone="text_faint")
        self._theme = theme
        self._lines = [ElidedLabel(theme, role="small", tone="peer") for _ in range(MOST)]
        self._taught = as_widget(column(4, text(theme, tr("Taught by peers"), "label", "soft"), *self._lines, None, gap=3))
        head = row(text(theme, tr("What it can do"), "heading"), 4, (self._key, 1))
        below = row(self.comb, (self._taught, 1), gap=GAP)
        self.setLayout(column(head, below, gap=10, margins=(PAD, 14, PAD, 14)))

    def set_size(self, size: CellSize) -> None:
        self.comb.set_size(size)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Name the teachers where there is room beside the comb."""
        room = self.width() - 2 * PAD - GAP - self.comb.sizeHint().width()
        self._taught.setVisible(bool(self._lines[0].words()) and room >= self._theme.px(BESIDE))

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
            line.say(words.replace("%2", one_line(skill.teacher or "")) if skill else "")
        self._fit()
        words = tr("right answers to new questions") if tested else tr("filled in after the next test")
        self._key.say(f"{words}; {tr('thick ring: a peer taught it')}" if taught else words)
