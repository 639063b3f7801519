"""The page Progress: held-out score and reward on one axis, what the model is asked now, and how it compares with others.

The charts can also be read as a table.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QFileDialog, QFrame, QStackedWidget

from waggle.core.confidence_interval import interval_of
from waggle.core.text.round_number import round_number
from waggle.gui.charts.painted.question_shares import QuestionShareBars, share_text
from waggle.gui.charts.painted.specialty_curves import SpecialtyCurves
from waggle.gui.charts.plotted.measured_legend import MeasuredLegend
from waggle.gui.charts.plotted.run_curves import RunsLegend
from waggle.gui.charts.plotted.visible_part import VisiblePart
from waggle.gui.coroutines import Task, start
from waggle.gui.i18n.formatting import decimal, figure, percent, plural, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.progress.leaderboard import LeaderboardView
from waggle.gui.pages.progress.round_size_words import round_size_words
from waggle.gui.pages.progress.round_table import RoundTableModel, RoundTableView, rows
from waggle.gui.pages.progress.rounds_export import save_rounds
from waggle.gui.pages.progress.run_choice import RunChoice
from waggle.gui.state import chart_series
from waggle.gui.state.story.learning_story import test_words
from waggle.gui.state.story.namesakes import namesakes
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.aha_list import AhaList
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.file_dialogs import add_suffix, chosen_path, file_dialog, replace_suffix, unused_path
from waggle.gui.widgets.layout import UNLIMITED, as_widget, card, column, frame, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.part_bar import PartBar
from waggle.gui.widgets.picture_file import save_picture
from waggle.gui.widgets.table import WholeRows
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.commands import QueryHistory, QueryRuns, new_id
from waggle.protocol.events import Aha, HeldOutScore, RoundSummary
from waggle.protocol.state import State

if TYPE_CHECKING:
    from waggle.gui.charts.plotted.progress_charts import HeldOutChart, RewardChart

DEFAULT_FILE_NAME = "waggle-progress.csv"  # not every system's dialog adapts the ending to the chosen kind
ENDINGS = (".png", ".svg", ".csv")
FRAME_MS = 20
EMPTY_WIDE, BAR_WIDE = 560, 320  # pixels, before text scaling: of what is shown before the first round
LINES, TABLE, EMPTY, COMPARED = range(4)
CHARTS_TO_PINS = 3.3  # the least width of the page for the list beside the charts, in widths of the list
PINS = 284  # pixels of the list of first right answers, at a text size of 100%
SCORE_HEIGHT, REWARD_HEIGHT = 120, 100  # the least, in pixels: in a small window the head of the third card is still visible
SMALL_PAGE = 600  # pixels: of what a page is higher, the charts get these shares
SCORE_SHARE, REWARD_SHARE = 0.5, 0.35


def score_headline(state: State) -> str:
    """The page in one sentence: the present held-out score and the first one."""
    rounds, scores = chart_series.rounds(state), chart_series.scores(state)
    if not rounds and scores and scores[-1].total and not _has_rounds_coming(state):
        return _score_text(chart_series.by_question_set(scores))
    if not rounds:
        if _has_rounds_coming(state):
            return why_unavailable(state) or tr("The rounds so far are being asked for.")
        return tr("Charts appear after the first round")
    if not scores or not scores[-1].total:
        played = plural(round_number(rounds[-1].round), "%n round", "%n rounds")
        words = tr("After %1 your model earns a reward of %2; its first score on new questions is still to come")
        earned = chart_series.trend([r.reward for r in rounds], chart_series.trend_width(len(rounds)))[-1]
        return words.replace("%1", played).replace("%2", decimal(earned, 2))
    return _score_text(chart_series.by_question_set(scores))


def _score_text(exams: list[list[HeldOutScore]]) -> str:
    """The latest score and the first one on the same questions; `exams` has the scores of each set of questions, in order."""
    first, last = exams[-1][0], exams[-1][-1]
    if last.early:
        return _early_text(last)
    words = tr("After %1 your model gets %2 of 100 new questions right")
    if not last.round:
        words = tr("Before its first round your model gets %2 of 100 new questions right")
    elif first is not last and len(exams) > 1:
        words = tr("After %1 your model gets %2 of 100 new questions right; on these questions it began at %3")
    elif first is not last:
        words = tr("After %1 your model gets %2 of 100 new questions right; it began at %3")
    now, began = (decimal(100 * score.right / score.total, 0) for score in (last, first))
    return words.replace("%1", plural(last.round, "%n round", "%n rounds")).replace("%2", now).replace("%3", began)


def _early_text(score: HeldOutScore) -> str:
    """A score on few questions, and what it can mean."""
    words = tr("After %1 your model gets %2 of %3 new questions right, which suggests %4 to %5 of 100")
    if not score.round:
        words = tr("Before its first round your model gets %2 of %3 new questions right, which suggests %4 to %5 of 100")
    low, high = (decimal(100 * share, 0) for share in interval_of(score.right, score.total))
    words = words.replace("%1", plural(score.round, "%n round", "%n rounds")).replace("%2", figure(score.right))
    return words.replace("%3", figure(score.total)).replace("%4", low).replace("%5", high)


def _figure_text(score: HeldOutScore) -> str:
    """The large figure: a share of few questions would look more exact than it is."""
    if score.early:
        return tr("%1 of %2").replace("%1", figure(score.right)).replace("%2", figure(score.total))
    return percent(score.right / score.total, 1)


def _has_rounds_coming(state: State) -> bool:
    """Whether earlier rounds may still arrive."""
    return state.ready is None or state.ready.round > 0


class ProgressPage(Page):
    """Creates its charts when it is first shown, so that pyqtgraph is not imported before."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme = context.theme
        self._state = State()
        self._drawn_state: object = None
        self._due = context.history
        self._saving: Task | None = None  # of a table
        self._part = VisiblePart(self)
        self._redraw = QTimer(self)  # once for many steps of a wheel
        self._redraw.setSingleShot(True)
        self._redraw.timeout.connect(self._draw)
        self._part.part_changed.connect(self._redraw.start)
        self._score_chart: HeldOutChart | None = None
        self._reward: RewardChart | None = None
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._axis = SegmentedControl(theme, (tr("Round"), tr("Training time"), tr("Date")), tr("What the axis counts"))
        self._axis.chosen.connect(self._change_axis)
        self._as_table = Button(theme, tr("Show as table"), "view", "table")
        self._as_table.setCheckable(True)
        self._as_table.toggled.connect(self._show_as_table)
        self._runs = RunChoice(theme)
        self._runs.opened.connect(lambda: self.commanded.emit(QueryRuns(id=new_id())))
        self._runs.changed.connect(self._redraw.start)
        self._compared = Button(theme, tr("Own charts"), "view", "progress")
        self._compared.setCheckable(True)
        self._compared.toggled.connect(self._show_comparison)
        self._compared.hide()
        self._runs.models_wanted.connect(lambda: self._compared.setChecked(True))
        self._comparison = LeaderboardView(theme)
        self._comparison.commanded.connect(self.commanded)
        self._save = Button(theme, tr("Save"), icon="save")
        self._save.clicked.connect(lambda: start(self, self._ask_where_to_save()))
        self._make_cards(theme)
        self._table = RoundTableModel(theme)
        self._table_view = RoundTableView(theme, self._table)
        legend = text(theme, "", "caption", "faint", wrap=True)
        self._table_view.legend_changed.connect(legend.setText)
        below = row((legend, 1), margins=(12, 0, 12, 2))
        table = frame("card", column((WholeRows(self._table_view), 1), below, gap=6, margins=(8, 4, 8, 8)))
        self._framed = [column(part) for part in (table, self._empty_page(theme), self._comparison)]  # without a scroll area
        self._pages = QStackedWidget()
        self._by_specialty = column(self._shares_card, self._curves_card, None)
        self._lines = column((self._held_card, 6), (self._reward_card, 5))
        self._beside_pins = row((self._lines, 1), self._pins)
        self._chart_box = column((self._beside_pins, 3), (self._by_specialty, 0))
        self._charts = ScrollArea(self._chart_box)  # all of it may be higher than the window
        for part in (self._charts, *map(as_widget, self._framed)):
            self._pages.addWidget(part)
        self._head = page_header(
            theme, tr("Progress"), self._line, self._axis, self._as_table, self._runs.button, self._compared, self._save
        )
        self._pages.setMinimumHeight(1)  # so that the header's buttons keep their size
        self.setLayout(column(self._head, (self._pages, 1), gap=0))
        theme.changed.connect(self._draw)
        self.set_compact(False)

    def _make_cards(self, theme: Theme) -> None:
        self._about_held = ElidedLabel(theme, role="small", tone="text_soft")
        self._figure = text(theme, "", "figure")
        self._about_reward = ElidedLabel(theme, role="small", tone="text_soft")
        headed = column(ElidedLabel(theme, tr("Score on new questions"), "heading"), self._about_held, gap=2)
        score_head = row((headed, 1), self._figure, gap=14)
        reward = column(ElidedLabel(theme, tr("How right its answers are in training"), "heading"), self._about_reward, gap=2)
        self._held_room, self._reward_room = column(), column()
        self._waiting = text(
            theme, tr("No score yet: it is measured before the first round and then every few rounds."), "small", "faint"
        )
        self._measured, self._runs_legend = MeasuredLegend(theme), RunsLegend(theme)
        self._ahas = AhaList(theme)
        self._ahas.chosen.connect(self._show_aha)
        pins_heading = ElidedLabel(theme, tr("First right answers"), "heading")
        self._pins = frame(
            "card", column(row(pins_heading, margins=(10, 0, 10, 0)), (self._ahas, 1), gap=8, margins=(10, 16, 6, 10))
        )
        self._pins.hide()
        self._held_card = card(score_head, (self._held_room, 1), self._measured, self._runs_legend, self._waiting, gap=8)
        self._whole = Button(theme, tr("Show the whole run"), "link")
        self._whole.clicked.connect(self._part.show_whole)
        self._whole.hide()
        self._reward_card = card(row((reward, 1), self._whole), (self._reward_room, 1), gap=8)
        self._shares = QuestionShareBars(theme)
        self._about_shares = text(theme, "", "small", "soft", wrap=True)
        shares = column(text(theme, tr("What your model is asked now"), "heading"), self._about_shares, gap=2)
        self._size = text(theme, "", "small", "soft", wrap=True)
        self._shares_card = card(shares, self._shares, self._size, gap=10)
        self._shares_card.hide()
        self._curves = SpecialtyCurves(theme)
        self._about_curves = ElidedLabel(theme, role="small", tone="text_soft")
        heading = column(text(theme, tr("Reward by specialty"), "heading"), self._about_curves, gap=2)
        self._curves_card = card(heading, (self._curves, 1), gap=12)
        self._curves_card.hide()

    def _empty_page(self, theme: Theme) -> QFrame:
        self._empty = text(theme, "", "heading", wrap=True)
        self._test, self._bar = text(theme, "", "small", "soft"), PartBar(tr("Questions answered"))
        self._bar.setFixedWidth(theme.px(BAR_WIDE))
        for words in (self._empty, self._test):
            words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        sign = row(None, Icon(theme, "progress", "text_faint", 36), None)
        box = card(4, sign, self._empty, row(None, self._bar, None), self._test, 4, gap=10)
        box.setMinimumWidth(theme.px(EMPTY_WIDE))
        return frame("plain", column(None, row(None, box, None), None, None))

    def arrange(self, edge: int, gap: int) -> None:
        below = 20 if self.compact else 24
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._charts.set_edges(edge, below)
        for framed in self._framed:
            framed.setContentsMargins(edge, 0, edge, below)
        self._name_table()
        ways = QBoxLayout.Direction
        self._chart_box.setDirection(ways.LeftToRight if self.wide else ways.TopToBottom)
        self._chart_box.setStretch(1, 1 if self.wide else 0)
        for place, stretch in ((1, self.wide), (2, not self.wide)):  # down to the foot of the charts, and empty below the cards
            self._by_specialty.setStretch(place, int(stretch))
        self._curves.let_grow(self.wide)
        for box in (self._chart_box, self._beside_pins, self._lines, self._by_specialty):
            box.setSpacing(gap)
        self._comparison.set_gap(gap)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the list of first right answers beside the charts, or below them where they would be too narrow."""
        super().resizeEvent(event)
        pins, ways = self.theme.px(PINS), QBoxLayout.Direction
        beside = self.width() >= CHARTS_TO_PINS * pins
        self._beside_pins.setDirection(ways.LeftToRight if beside else ways.TopToBottom)
        self._pins.setMinimumWidth(pins if beside else 0)
        self._pins.setMaximumWidth(pins if beside else UNLIMITED)
        self._set_least_heights()

    def _set_least_heights(self) -> None:
        """Let the charts grow with the page, whose lower cards scroll."""
        more = max(self.height() - SMALL_PAGE, 0)
        for chart, least, share in (
            (self._score_chart, SCORE_HEIGHT, SCORE_SHARE), (self._reward, REWARD_HEIGHT, REWARD_SHARE)
        ):  # fmt: skip
            if chart is not None:
                chart.setMinimumHeight(self.theme.px(least) + round(share * more))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.prepare()

    def prepare(self) -> None:
        if self._score_chart is None:
            from waggle.gui.charts.plotted.progress_charts import HeldOutChart, RewardChart  # pyqtgraph: only now

            self._score_chart, self._reward = HeldOutChart(self.theme, self._part), RewardChart(self.theme, self._part)
            self._set_least_heights()
            self._held_room.addWidget(self._score_chart)
            self._reward_room.addWidget(self._reward)
            self._draw()

    def show_state(self, state: State, now: float) -> None:
        self._state = state
        if self._due.now(state):
            self.commanded.emit(QueryHistory(id=new_id()))
        if self._compared.isChecked():
            self._comparison.show_state(state)
        self._show_test(state)
        self._runs.show_runs(state.runs)
        self._shares.show_shares(state.shares)
        about = tr("More questions where its own answers are sometimes right, fewer where none or all of them are. Full bar: %1.")
        self._about_shares.setText(about.replace("%1", share_text(self._shares.full)))
        size = round_size_words(state)
        self._size.setText(size)
        self._size.setVisible(bool(size))
        self._shares_card.setVisible(sum(len(share.levels) for share in state.shares) > 1)
        if self._drawn_state != self._redraw_key():
            self._draw()

    def take_over(self, before: Page) -> None:
        """Take over the view and the axis."""
        assert isinstance(before, ProgressPage)
        self._axis.mark(before._axis.index)
        self._as_table.setChecked(before._as_table.isChecked())
        self._compared.setChecked(before._compared.isChecked())
        self._runs.take_over(before._runs)

    def _redraw_key(self) -> object:
        """What the charts depend on, so that they are redrawn once a round and not with each event."""
        state = self._state
        last = state.rounds[-1].round if state.rounds else None
        swarm = state.ready and state.ready.charter
        return last, len(state.rounds), len(state.held_out), len(state.ahas), id(state.history), state.phase, swarm

    def _empty_words(self) -> str:
        if _has_rounds_coming(self._state):
            return tr("The charts appear here once training runs.")
        if self._state.takes_first_test:
            return tr("First, a test to see where your model starts.")
        return tr("Your model is in its first round.")

    def _show_test(self, state: State) -> None:
        """Until there is anything to draw: how far the first test is."""
        test = state.test if state.takes_first_test else None
        self._bar.setVisible(test is not None)
        say_in(self._test, test_words(state) if test is not None else "", "soft")
        if test is not None:
            self._bar.show_part(test.done, test.total)

    def _draw(self) -> None:
        state = self._state
        self._drawn_state = self._redraw_key()
        self._line.say(score_headline(state))
        self._empty.setText(self._empty_words())
        nothing = not chart_series.rounds(state) and not chart_series.scores(state)
        compared = self._compared.isChecked()
        self._pages.setCurrentIndex(
            COMPARED if compared else EMPTY if nothing else TABLE if self._as_table.isChecked() else LINES
        )
        self._axis.setVisible(not (nothing or compared or self._as_table.isChecked()))
        self._save.setVisible(not nothing)
        self._as_table.setVisible(not nothing)
        if self._as_table.isChecked():
            self._table.show_rows(rows(state))
        elif self._score_chart is not None and self._reward is not None and not nothing:
            self._draw_charts(self._score_chart, self._reward)

    def _draw_charts(self, score_chart: "HeldOutChart", reward: "RewardChart") -> None:
        from waggle.gui.charts.plotted import progress_charts

        state, axis = self._state, chart_series.AXES[self._axis.index]
        self._part.set_whole(progress_charts.axis_range(state, axis))
        self._whole.setVisible(not self._part.is_whole)
        bands = progress_charts.pause_bands(state, axis)
        self._runs.allow(by_rounds=axis == "round")
        runs = self._runs.chosen if axis == "round" else []
        draw_scores = partial(score_chart.show_state, state, axis, bands, runs)
        draw_reward = partial(reward.show_state, state, axis, bands)
        for turn, (chart, draw) in enumerate(((score_chart, draw_scores), (reward, draw_reward)), 1):
            if chart.is_empty:
                draw()  # nothing unfinished is painted
            else:  # one at a time, so a key press waits for one
                QTimer.singleShot(turn * FRAME_MS, chart, draw)
        scores = chart_series.scores(state)
        self._runs_legend.show_runs(runs, scores)
        self._ahas.show_ahas(state.ahas, namesakes(state.peers.values(), state.ahas))
        self._pins.setVisible(bool(state.ahas))
        self._waiting.setVisible(not scores)
        self._measured.show_curves(progress_charts.shown_curves(state, axis) if scores else None)
        self._figure.setText(_figure_text(scores[-1]) if scores and scores[-1].total else "")
        about = tr("%1 unseen questions; band: margin of error")
        if scores and scores[-1].early:
            about = tr("A first %1 unseen questions; band: margin of error")
        self._about_held.say(
            about.replace("%1", figure(scores[-1].total)) if scores else tr("On questions your model never trains on")
        )
        rounds = chart_series.rounds(state)
        about = tr("Reward per answer, 0 to 1. Bold: trend. Faint: each round.")
        has_peers = any(summary.external_reward is not None for summary in rounds)
        self._draw_specialties(rounds)
        self._about_reward.say(about + (f" {tr('Dashed: the examples that peers offer.')}" if has_peers else ""))

    def _draw_specialties(self, rounds: list[RoundSummary]) -> None:
        curves = {title: curve for title, curve in chart_series.specialty_rewards(rounds).items() if len(curve) > 1}
        if self._state.ready is not None:  # only those of the present swarm, in its order
            curves = {each.title: curves[each.title] for each in self._state.ready.specialties if each.title in curves}
        self._curves_card.setVisible(len(curves) > 1)
        self._curves.show_curves(curves, len(rounds))
        about = tr("What your model's answers earn. All on one scale, up to %1")
        self._about_curves.say(about.replace("%1", decimal(self._curves.top, 2)))

    def _show_aha(self, aha: Aha) -> None:
        """Read the place of its pin, in the whole run if it is not within the part that is shown."""
        axis = chart_series.AXES[self._axis.index]
        (place,) = chart_series.event_positions([aha], chart_series.rounds(self._state), axis)
        first, last = self._part.ends
        if not first <= place <= last:
            self._part.show_whole()
        self._part.read(place)

    def _change_axis(self, _index: int) -> None:
        self._part.forget()
        self._draw()

    def forget_run(self) -> None:
        self._part.forget()

    def _show_comparison(self, compared: bool) -> None:
        if compared:
            self._as_table.setChecked(False)
            self._comparison.show_state(self._state)
        self._name_table()
        self._draw()

    def show_table(self, as_table: bool) -> None:
        self._as_table.setChecked(as_table)

    def _show_as_table(self, as_table: bool) -> None:
        if as_table:
            self._compared.setChecked(False)
        self._name_table()
        self._draw()

    def _name_table(self) -> None:
        charts = self._as_table.isChecked()
        words = (
            (tr("Charts") if charts else tr("Table")) if self.compact else tr("Show as charts") if charts else tr("Show as table")
        )
        self._as_table.say(words, "progress" if charts else "table")
        self._compared.setVisible(self._compared.isChecked())
        self._runs.button.setVisible(not self._compared.isChecked())

    async def _ask_where_to_save(self) -> None:
        """Ask for a file, then save there."""
        dialog = file_dialog(self, tr("Save progress"), saves=DEFAULT_FILE_NAME)
        dialog.setNameFilters([tr("Table (*.csv)"), tr("Picture (*.png)"), tr("Drawing (*.svg)")])
        dialog.filterSelected.connect(lambda kind: _end_as(dialog, kind))
        if path := await chosen_path(dialog):
            self.save(path, dialog.selectedNameFilter())

    def save(self, path: Path, kind: str = "") -> None:
        """Save a picture as .png or .svg, or a table as .csv. Another name, or the offered one, gets the ending of `kind`."""
        if self._saving is not None and not self._saving.done():
            self.notice_posted.emit(tr("Another table is still being saved."), "warn")
            return
        ending = _file_suffix(kind)
        offered = path.name == DEFAULT_FILE_NAME and ending != ".csv"
        path = unused_path(replace_suffix(path, ending, ENDINGS)) if offered else add_suffix(path, ending, ENDINGS)
        if path.suffix.lower() not in (".png", ".svg"):
            self._saving = start(self, self._save_table(path))
            return
        view = self._pages.currentWidget()
        whole = view.widget() if isinstance(view, ScrollArea) else view  # including what is scrolled out of sight
        assert whole is not None
        self._part.read(None)
        if save_picture(whole, path):
            self.notice_posted.emit(tr("Saved to %1").replace("%1", str(path)), "check")
        else:
            self._say_not_saved(tr("the picture could not be written"))

    async def _save_table(self, path: Path) -> None:
        try:
            whole = await save_rounds(path, self._state, self.context.client)
        except OSError as error:
            self._say_not_saved(str(error))
            return
        words = (
            tr("Saved to %1") if whole else tr("Saved to %1. Some older rounds are missing because the engine did not answer.")
        )
        self.notice_posted.emit(words.replace("%1", str(path)), "check" if whole else "warn")

    def _say_not_saved(self, why: str) -> None:
        """A full disk or a missing permission: the person decides, and nothing is lost."""
        self.notice_posted.emit(tr("Not saved: %1").replace("%1", why), "warn")


def _file_suffix(kind: str) -> str:
    """The file name's ending for a kind chosen in the dialog."""
    return next((ending for ending in ENDINGS if f"*{ending}" in kind), ".csv")


def _end_as(dialog: QFileDialog, kind: str) -> None:
    """Adapt the ending in the dialog, so that it asks before overwriting the file that is written."""
    for named in map(Path, dialog.selectedFiles()):
        if not named.is_dir():
            dialog.selectFile(replace_suffix(named, _file_suffix(kind), ENDINGS).name)
