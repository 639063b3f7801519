"""The stage of Live: one question, typeset, its tries, what was learned and from whom, and a strip of the rounds before."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from waggle.gui.charts.painted.round_strip import RoundStrip
from waggle.gui.i18n.formatting import plural, tr
from waggle.gui.pages.live.scene_card import SceneCard
from waggle.gui.state.story.stage import Stage
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State


class SceneArea(ScrollArea):
    """Tells the scene how much of it is visible."""

    def __init__(self, scene: SceneCard) -> None:
        super().__init__(column((scene, 1), gap=0))
        self._scene = scene

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._scene.set_room(self.viewport().width(), self.viewport().height())


class StageView(QWidget):
    """`choice_changed`: the person chose another round or question, or opened the whole one. For the other, see SceneCard."""

    choice_changed, all_wanted = Signal(), Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.stage = Stage()
        self._scene = SceneCard(theme)
        self._scene.opened.connect(self.choice_changed)
        self._scene.chosen.connect(self._choose)
        self._scene.all_wanted.connect(self.all_wanted)
        self._area = SceneArea(self._scene)
        self._strip = RoundStrip(theme)
        self._strip.chosen.connect(self._go_to)
        self._now_button = Button(theme, tr("Now"), icon="live", small=True)
        self._now_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # not by a click: the focus would hold the stage
        self._now_button.clicked.connect(self._go_to_newest)
        policy = self._now_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # so that the strip keeps its cells in place
        self._now_button.setSizePolicy(policy)
        key = ElidedLabel(theme, tr("stronger colour: more right; blue edge: learned from peers"), "caption", "text_faint")
        self._foot = row(text(theme, tr("Rounds"), "label", "soft"), (self._strip, 1000), key, None, self._now_button, gap=12)
        self._rounds = as_widget(self._foot)
        self.setLayout(column((self._area, 1), self._rounds, gap=0))

    def arrange(self, edge: int, gap: int) -> None:
        self._area.set_edges(edge, gap)
        self._foot.setContentsMargins(edge, 0, edge, gap)

    def remember(self, state: State) -> None:
        """Take the rounds of a State, also while the stage is hidden."""
        self.stage.take(state)

    @property
    def is_empty(self) -> bool:
        """Whether there is no question to show."""
        return self.stage.scene is None

    def show_state(self, state: State, now: float) -> None:
        self.stage.take(state)
        self.stage.turn(self._hold_reason())
        if self.stage.scene is not None:
            self._scene.show_scene(self.stage.scene, state, now, newest=self.stage.round == self.stage.newest)
        self._rounds.setVisible(len(self.stage.scenes) > 1)
        if not self._strip.underMouse():  # its cells would move under the pointer
            self._strip.show_scenes(tuple(self.stage.scenes.values()), self.stage.round)
        self._now_button.setVisible(not self.stage.follows or self.stage.is_held)

    @property
    def has_more(self) -> bool:
        """Whether a newer question comes by itself in a moment."""
        return self.stage.follows and bool(self.stage.waiting)

    def hold_words(self) -> str:
        """Why the newest question is not on the stage; empty if it is, or comes in a moment."""
        newer = plural(self.stage.waiting, "%n newer round is waiting", "%n newer rounds are waiting")
        if not self.stage.follows:
            return tr("You went back to an earlier round. ") + newer
        return self.stage.why + newer if self.stage.is_held else ""

    def _hold_reason(self) -> str:
        """What the person does here that another question would disturb; empty if nothing."""
        if self._scene.is_open:
            return tr("Stage held while the whole question is open. ")
        if self._area.verticalScrollBar().value() > 0:
            return tr("Stage held while it is scrolled down. ")
        if self.underMouse():
            return tr("Stage held while the pointer is on it. ")
        focused = QApplication.focusWidget()
        return tr("Stage held while you are in it. ") if focused is not None and self.isAncestorOf(focused) else ""

    def _go_to(self, number: int) -> None:
        self.stage.go_to(number)
        self.choice_changed.emit()

    def _choose(self, key: str) -> None:
        self.stage.choose(key)
        self.choice_changed.emit()

    def _go_to_newest(self) -> None:
        if self._now_button.hasFocus():  # it is hidden now
            self._strip.setFocus(Qt.FocusReason.OtherFocusReason)
        self.stage.go_to_newest()
        self.choice_changed.emit()

    def take_over(self, before: "StageView") -> None:
        self.stage = before.stage

    def forget(self) -> None:
        self.stage.forget()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.stage.leave()
