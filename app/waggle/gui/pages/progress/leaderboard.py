"""How models of the swarm compare, trained with peers or alone, and the leaderboard."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QSizePolicy

from waggle.core.confidence_interval import interval_of
from waggle.gui.i18n.formatting import figure, one_line, peer_name, percent, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, card, column, empty, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.commands import ChangeSettings, new_id
from waggle.protocol.events_leaderboard import Entrant, ModelsCompared, ScoreCurve
from waggle.protocol.state import State

if TYPE_CHECKING:
    from waggle.gui.charts.plotted.leaderboard_chart import LeaderboardChart

MODELS = 4  # with a chart each, this node's model first
ENTRANTS = 20  # listed
KEY = "swarm.leaderboard"
HEIGHT = 230  # pixels of a chart
PAD = 20  # pixels of a card
NAME, MODEL = 1, 2  # columns with names that others chose, of any length
RIGHT_COLUMNS = (0, 4, 5, 6)  # aligned to the right
DROPPED = (4, 3, 0)  # columns hidden in this order where the width is too small
LEAST, MOST_LEAST = 90, 130  # pixels of a name that are always visible, at a text size of 100%, and at most


class LeaderboardView(ScrollArea):
    """Creates its charts when there is something to compare, so that pyqtgraph is not imported before."""

    commanded = Signal(object)

    def __init__(self, theme: Theme) -> None:
        self._box = column()
        super().__init__(self._box)
        self.theme = theme
        self._drawn: object = None
        self._state: State | None = None
        theme.changed.connect(self._redraw)
        self._on = False
        self._says = text(theme, "", "small", "soft", wrap=True)
        self._switch = Button(theme, tr("Take part"))
        self._switch.clicked.connect(lambda: self.commanded.emit(ChangeSettings(id=new_id(), values={KEY: not self._on})))
        head = row((text(theme, tr("How models compare"), "heading"), 1), self._switch)
        self._empty = text(theme, "", "body", "text", wrap=True)
        self._box.addWidget(card(head, self._says, self._empty, gap=8))
        self._cards = [_ModelCard(theme) for _ in range(MODELS)]
        grid = QGridLayout()
        for place, model_card in enumerate(self._cards):
            grid.addWidget(model_card, place // 2, place % 2)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(0, 1)
        self._grid = grid
        self._box.addWidget(as_widget(grid))
        self._table = QGridLayout()
        self._table.setContentsMargins(0, 0, 0, 0)
        self._leaders_say = text(theme, "", "small", "soft", wrap=True)
        self._leaders = card(text(theme, tr("Leaderboard"), "heading"), self._leaders_say, as_widget(self._table))
        self._box.addWidget(self._leaders)
        self._box.addStretch(1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._drop_columns()

    def set_gap(self, gap: int) -> None:
        self._box.setSpacing(gap)
        self._grid.setSpacing(gap)

    def show_state(self, state: State) -> None:
        """Redraw if scores, settings, model or theme changed."""
        self._state = state
        drawn = (state.compared, state.settings and state.settings.swarm, state.ready, self.theme.mode)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._on = state.settings is not None and state.settings.swarm.leaderboard
        solo = state.settings is not None and state.settings.swarm.solo
        self._switch.say(tr("Stop taking part") if self._on else tr("Take part"))
        self._switch.setVisible(state.settings is not None and not solo)
        self._says.setText(_about_text())
        comparison = state.compared
        self._empty.setText("" if comparison and comparison.curves else _empty_text(on=self._on, solo=solo))
        self._empty.setVisible(bool(self._empty.text()))
        self._show_models(comparison, state.ready.model if state.ready else "")
        self._show_leaders(comparison)

    def _redraw(self) -> None:
        if self._state is not None:
            self.show_state(self._state)

    def _show_models(self, comparison: ModelsCompared | None, mine: str) -> None:
        curves = comparison.curves if comparison else ()
        models = sorted(dict.fromkeys(curve.model for curve in curves), key=lambda model: model != mine)[:MODELS]
        self._grid.setColumnStretch(1, len(models) > 1)
        for model_card, model in zip(self._cards, [*models, *[""] * MODELS], strict=False):
            model_card.show_curves(model, [curve for curve in curves if curve.model == model], mine=model == mine)

    def _show_leaders(self, comparison: ModelsCompared | None) -> None:
        self._leaders.setVisible(bool(comparison and comparison.curves))
        empty(self._table)
        if comparison is None:
            return
        if not comparison.ranked:
            words = tr("This swarm is open to everybody: nothing proves who wrote an answer, so nobody is ranked.")
            self._leaders_say.setText(words)
            return
        self._leaders_say.setText(tr("By each computer's last hour of answers; self-reported."))
        heads = (tr("Place"), tr("Name"), tr("Model"), tr("Trained"), tr("Rounds"), tr("Right"), tr("95% interval"))
        self._add_row(0, heads, "caption", "faint")
        places = list(enumerate(comparison.entrants, 1))
        mine = [(place, entrant) for place, entrant in places[ENTRANTS:] if entrant.mine]
        for line, (place, entrant) in enumerate([*places[:ENTRANTS], *mine], 1):
            self._add_row(line, _words(place, entrant), "strong" if entrant.mine else "body", "text" if entrant.mine else "soft")
        self._drop_columns()

    def _add_row(self, line: int, words: tuple[str, ...], role: str, tone: str) -> None:
        for place, each in enumerate(words):
            if place in (NAME, MODEL):
                self._table.addWidget(self._name_label(each, role, tone, gives_way=place == MODEL), line, place)
                continue
            side = Qt.AlignmentFlag.AlignRight if place in RIGHT_COLUMNS else Qt.AlignmentFlag.AlignLeft
            self._table.addWidget(text(self.theme, each, role, tone), line, place, side)
        self._table.setColumnStretch(MODEL, 1)
        self._table.setHorizontalSpacing(20)
        self._table.setVerticalSpacing(8)

    def _name_label(self, name: str, role: str, tone: str, *, gives_way: bool) -> ElidedLabel:
        name_line = ElidedLabel(self.theme, name, role, tone if tone == "text" else f"text_{tone}")
        name_line.setMinimumWidth(min(self.theme.px(LEAST), MOST_LEAST, name_line.sizeHint().width()))
        if gives_way:  # it gets the width that other columns leave
            name_line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        return name_line

    def _drop_columns(self) -> None:
        """Hide columns until the table fits: the page does not scroll sideways."""
        for place in range(self._table.columnCount()):  # a hidden column needs no width, so show all before measuring
            self._show_column(place, visible=True)
        for place in DROPPED:
            if self._table.minimumSize().width() > self.viewport().width() - 2 * PAD:
                self._show_column(place, visible=False)

    def _show_column(self, place: int, *, visible: bool) -> None:
        for line in range(self._table.rowCount()):
            item = self._table.itemAtPosition(line, place)
            if item is not None and (cell := item.widget()) is not None:
                cell.setVisible(visible)


class _ModelCard(QFrame):
    """One model: its name, a sentence on its chart, and the chart."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.setProperty("kind", "card")
        self._name = ElidedLabel(theme, role="heading")
        self._says = text(theme, "", "small", "soft", wrap=True)
        self._room = column()
        self._chart: LeaderboardChart | None = None
        self.setLayout(column(self._name, self._says, (self._room, 1), gap=6, margins=(PAD, 16, PAD, 16)))
        self.setVisible(False)

    def show_curves(self, model: str, curves: list[ScoreCurve], *, mine: bool) -> None:
        self.setVisible(bool(curves))
        if not curves:
            return
        if self._chart is None:
            from waggle.gui.charts.plotted.leaderboard_chart import LeaderboardChart  # pyqtgraph: only now

            self._chart = LeaderboardChart(self.theme)
            self._chart.setFixedHeight(self.theme.px(HEIGHT))
            self._room.addWidget(self._chart)
        name = one_line(model) or tr("unnamed")
        self._name.say(tr("%1, as you train it").replace("%1", name) if mine else name)
        self._says.setText(_about_curves(curves))
        self._chart.show_curves(curves)


def _about_text() -> str:
    return tr(
        "At most every ten minutes each model answers the same 16 questions, which nobody trains on. "
        "Every answer is marked again on this computer. Which model wrote it is what each computer says of itself."
    )


def _empty_text(*, on: bool, solo: bool) -> str:
    if solo:
        return tr("This swarm is this computer only: there is nobody to compare with.")
    if on:
        return tr("You take part. Your model's first answers are marked after its next round, those of others as they come.")
    return tr(
        "Nothing is compared yet: take part, and your model's answers are published and compared with those of others who do."
    )


def _about_curves(curves: list[ScoreCurve]) -> str:
    answers = figure(sum(point.total for curve in curves for point in curve.points))
    kinds = {curve.together for curve in curves}
    if kinds == {True}:
        return tr("Nobody who trains it alone publishes answers: there is nothing yet to compare this with. %1 answers.").replace(
            "%1", answers
        )
    if kinds == {False}:
        return tr("Nobody who trains it with peers publishes answers yet: this is alone. %1 answers.").replace("%1", answers)
    return tr("Right answers by rounds of each computer's own, with the 95% interval. %1 answers.").replace("%1", answers)


def _words(place: int, entrant: Entrant) -> tuple[str, ...]:
    low, high = interval_of(entrant.right, entrant.total)
    name = peer_name(entrant.name, entrant.id)
    return (
        str(place),
        tr("%1 (you)").replace("%1", name) if entrant.mine else name,
        one_line(entrant.model),
        tr("with peers") if entrant.together else tr("alone"),
        figure(entrant.round),
        tr("%1 of %2").replace("%1", figure(entrant.right)).replace("%2", figure(entrant.total)),
        f"{percent(low)} – {percent(high)}",
    )
