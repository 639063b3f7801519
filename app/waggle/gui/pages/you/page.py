"""The page You: what this computer has contributed day by day, first right answers, and the identity."""

import datetime
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QImageWriter, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHeaderView, QSizePolicy, QStackedWidget, QTableView, QWidget

from waggle.core.stored_data import kept_by_default
from waggle.gui.charts.painted.heat_map import HeatMap, is_recent
from waggle.gui.coroutines import start
from waggle.gui.i18n.formatting import duration, figure, one_line, peer_name, percent, plural, tr, whole_day
from waggle.gui.i18n.placeholders import engine_placeholder, why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.pages.you.data_removal import DataRemovalView, files_stored_in
from waggle.gui.pages.you.identity_backup import IdentityAction, IdentityBackupView
from waggle.gui.pages.you.share_card import share_card
from waggle.gui.state.day_query import QuerySchedule, groups_taken_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.aha_list import aha_cells
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.responsive_row import EvenRow, ResponsiveRow
from waggle.gui.widgets.containers.scroll_anchor import ScrollAnchor
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.energy_footprint import EnergyCard
from waggle.gui.widgets.figure_card import FigureCard
from waggle.gui.widgets.file_dialogs import add_suffix, chosen_path, file_dialog
from waggle.gui.widgets.layout import FLUSH, UNLIMITED, as_widget, card, column, empty, frame, row
from waggle.gui.widgets.painted_widgets import Avatar, Icon
from waggle.gui.widgets.table import RowsModel, style_table
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.commands import QueryDays, QueryHistory, new_id
from waggle.protocol.events import Aha
from waggle.protocol.events_identity import Day
from waggle.protocol.figures.daily_totals import engine_date, totals
from waggle.protocol.peer_names import own_name
from waggle.protocol.state import State

MOST_AHAS = 12
SPECIALTY = 160  # pixels at a text size of 100%: a specialty this wide is not cut
COLUMNS = ("Day", "Answers", "Right", "Rounds", "From peers", "Time")
CALENDAR_EDGE = 20  # pixels beside the calendar in its card
MEASURED_ROWS = 50  # of the table, for the widths of its columns
OVERVIEW, IDENTITY, GOODBYE = range(3)


def cells(day: Day) -> tuple[str, ...]:
    """One row of the table, in the order of COLUMNS."""
    date = whole_day(datetime.date.fromisoformat(day.date))
    return (date, figure(day.answers), figure(day.right), figure(day.rounds), figure(day.learned), duration(day.seconds))


class YouPage(Page):
    """Queries the days when it is first visible, and again after a while. Only data on this computer can be removed."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, home = context.theme, context.engine.home
        self._state, self._home, self._leaving = State(), home, False
        self._act: IdentityAction = "backup"  # the last action on the identity
        self._due, self._days = QuerySchedule(), totals(self._state)
        self._today, self._edge = engine_date(self._state, 0.0), 0
        self._ahas: tuple[Aha, ...] | None = None
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._share = Button(theme, tr("Save a picture to share"), icon="share")
        self._share.clicked.connect(lambda: start(self, self._ask_where_to_save()))
        self._figures = [
            FigureCard(theme, "answer", tr("Answers")), FigureCard(theme, "check", tr("Right")),
            FigureCard(theme, "gather", tr("Learned from others")), FigureCard(theme, "peers", tr("Learned from you")),
        ]  # fmt: skip
        self._identity = IdentityBackupView(theme, context.client, here=home is not None)
        self._identity.done.connect(self._close_identity_form)
        self._goodbye = DataRemovalView(theme)
        self._goodbye.confirmed.connect(context.requests.data_removal)
        self._goodbye.done.connect(self.show_overview)
        self._goodbye.backup_wanted.connect(self._back_up_first)
        self._pairs = EvenRow(*self._figures[:2]), EvenRow(*self._figures[2:])
        self._top = EvenRow(*self._pairs)
        self._ahas_box = column(gap=8)
        self._low = EvenRow(self._aha_card(), self._me_card())
        self._energy = EnergyCard(theme)
        self._calendar_card = self._make_calendar_card()
        self._days_box = row((self._calendar_card, 1), (self._energy, 1))
        self._body = column(self._top, self._days_box, self._low, self._leave_card(), None)
        self._views = QStackedWidget()
        self._area, self._alone = ScrollArea(self._body), column(self._identity, None)
        self._last = ScrollArea(column(self._goodbye, None))
        for view in (self._area, as_widget(self._alone), self._last):
            self._views.addWidget(view)
        self._head = page_header(theme, tr("You"), self._line, self._share)
        self.setLayout(column(self._head, (self._views, 1), gap=0))
        self.set_compact(False)

    def arrange(self, edge: int, gap: int) -> None:
        below = 20 if self.compact else 24
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._area.set_edges(edge, below)
        self._last.set_edges(edge, below)
        self._alone.setContentsMargins(edge, 0, edge, below)
        self._edge = edge
        self._body.setSpacing(gap)
        self._days_box.setSpacing(gap)
        for folding in (*self._pairs, self._top, self._low):
            folding.set_gap(gap)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_period()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._views.currentIndex() != OVERVIEW:
            self.show_overview()
        else:
            super().keyPressEvent(event)

    def show_state(self, state: State, now: float) -> None:
        self._state = state
        if self._due.now(state):
            for command in (QueryDays(id=new_id()), QueryHistory(id=new_id())):
                self.commanded.emit(command)
        self._days = totals(state)
        ready, why_not = state.ready, why_unavailable(state)
        self._face.show_identity(ready.node if ready else "", mine=True)
        self._face.setVisible(ready is not None)
        self._key.setVisible(ready is not None)
        self._name.say(peer_name(own_name(ready), ready.node) if ready else tr("You"))
        self._key.say(one_line(ready.node) if ready else "")
        self._as_seen.say(engine_placeholder(state) or tr("You, as the swarm sees you"))
        for button in (*self._acts, self._share):
            button.setEnabled(ready is not None and not why_not)
            button.setToolTip(why_not)
        if state.days is None:  # a card of the rounds that this window has seen would say less than this page does in a moment
            self._share.setEnabled(False)
        self._show_figures()
        self._today = engine_date(state, now)
        self._map.show_days(self._days.days, self._today)
        self._energy.show_state(state, self._today.isoformat())
        self._rows.show_rows(self._days.days[::-1])
        self._show_period()
        self._show_ahas(state.ahas)

    def show_overview(self) -> None:
        self._leaving = False
        self._identity.forget()
        self._views.setCurrentIndex(OVERVIEW)

    def show_part(self, part: str) -> None:
        if part == "goodbye":
            self.show_goodbye()

    def show_goodbye(self) -> None:
        """Show the stored data to choose what to remove."""
        if self._home is None:
            return
        self._leaving = True
        why_not = why_unavailable(self._state) or engine_placeholder(self._state)
        self._goodbye.show_stored(files_stored_in(self._home), no_backup=why_not, unticked=kept_by_default(self._home))
        self._views.setCurrentIndex(GOODBYE)

    def _back_up_first(self) -> None:
        self._open("backup")

    def _close_identity_form(self) -> None:
        """Return to the view that opened the form."""
        self._identity.forget()
        if self._leaving:
            self.show_goodbye()
        else:
            self.show_overview()

    def _show_figures(self) -> None:
        days_told = self._days
        if self._state.days is None:
            for part in self._figures:
                part.say("", "", tr("Not read yet"))
            self._line.say(tr("What your computer contributes is counted here from its first round on."))
            return
        total = days_told.all
        since = (
            tr("since %1").replace("%1", whole_day(datetime.date.fromisoformat(total.date)))
            if total.rounds
            else tr("nothing yet")
        )
        answers, right, learned, used = self._figures
        answers.say(total.answers, "", plural(total.rounds, "in %n round", "in %n rounds"))
        right.say(total.right, "", tr("%1 of all").replace("%1", percent(total.right / max(1, total.answers), 1)))
        learned.say(total.learned, plural(total.learned, "example", "examples"), since)
        used_by = days_told.used_by
        used.say(used_by, plural(used_by, "peer", "peers"), groups_taken_text(days_told, self._state))
        if not total.rounds:
            self._line.say(tr("What your computer contributes is counted here from its first round on."))
            return
        days = len(days_told.days)
        words = plural(days, "You trained on %n day", "You trained on %n days")
        took = plural(used_by, " and shared with %n peer", " and shared with %n peers")
        self._line.say(words + (took if used_by else ""))

    def _me_card(self) -> QWidget:
        theme = self.theme
        self._face, self._name = Avatar(theme, 56), ElidedLabel(theme, role="heading")
        self._key, self._as_seen = (
            ElidedLabel(theme, role="mono", tone="text_faint"),
            ElidedLabel(theme, "", "small", "text_soft"),
        )
        words = column(None, self._name, self._as_seen, None, gap=1)
        acts: tuple[tuple[str, IdentityAction], ...] = (
            (tr("Back up"), "backup"), (tr("Check a backup"), "check"), (tr("Restore a backup"), "restore"),
            (tr("New identity"), "renew"),
        )  # fmt: skip
        self._acts = [Button(theme, word, "plain" if act == "backup" else "link", small=True) for word, act in acts]
        for button, (_, act) in zip(self._acts, acts, strict=True):
            button.clicked.connect(lambda _checked=False, act=act: self._open(act))
        about = text(theme, tr("Your name and picture are made from a private key. Back it up to keep them on another computer."),
                     "small", "soft", wrap=True)  # fmt: skip
        return card(
            row(self._face, (words, 1), gap=14), self._key, about, 4,
            self._acts[0], row(FLUSH, (ResponsiveRow(*self._acts[1:]), 1), gap=0), None, gap=8,
        )  # fmt: skip

    def _make_calendar_card(self) -> QWidget:
        theme = self.theme
        self._map, self._period = HeatMap(theme), text(theme, "", "heading")
        self._day = ElidedLabel(theme, tr("Point at a day, or use the arrow keys."), "small", "text_soft")
        self._map.read.connect(self._day.say)
        self._as_table = Button(theme, tr("Show as table"), "view", "table", small=True)
        self._as_table.setCheckable(True)
        self._rows = RowsModel(theme, [tr(name) for name in COLUMNS], lambda day: day.date, cells, text_columns=1)
        self._table = _table(theme, self._rows)
        self._table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)  # it has the height of the calendar
        self._calendar = as_widget(column(self._map, self._day, None, gap=6))
        self._as_table.toggled.connect(lambda _on: self._show_period())
        head = row((self._period, 1), self._as_table)
        return frame("card", column(head, self._calendar, self._table, gap=6, margins=(CALENDAR_EDGE, 12, CALENDAR_EDGE, 12)))

    def _show_period(self) -> None:
        """Show a quarter beside the energy, and above it a year, which needs the whole width; or the days as a table."""
        recent, as_table = is_recent(self._days.days, self._today), self._as_table.isChecked()
        self._period.setText(tr("Recent weeks") if recent else tr("The last year"))
        self._as_table.say(tr("Show as calendar") if as_table else tr("Show as table"), "table")
        ways, narrow = QBoxLayout.Direction, self._map.maximumWidth() + 2 * CALENDAR_EDGE
        room = self.width() - 2 * self._edge - self._days_box.spacing() - self._energy.minimumSizeHint().width()
        beside = recent and not as_table and narrow <= room
        self._days_box.setDirection(ways.LeftToRight if beside else ways.TopToBottom)
        self._calendar_card.setMaximumWidth(narrow if beside else UNLIMITED)
        self._calendar.setMaximumWidth(self._map.maximumWidth())  # else its card is as high as a wider calendar would be
        self._table.setMinimumHeight(self._calendar.sizeHint().height())
        self._calendar.setVisible(not as_table)
        self._table.setVisible(as_table)

    def _aha_card(self) -> QWidget:
        head = row(Icon(self.theme, "on", "accent_line", 18), (text(self.theme, tr("First right answers"), "heading"), 1))
        return card(head, self._ahas_box, None, gap=10)

    def _leave_card(self) -> QWidget:
        theme = self.theme
        about = text(theme, tr("See what Waggle keeps on this computer, and choose what to remove."), "small", "soft",
                     wrap=True)  # fmt: skip
        see = Button(theme, tr("Say goodbye"), small=True)
        see.clicked.connect(self.show_goodbye)
        leaving_card = card(row((column(text(theme, tr("Leaving?"), "heading"), about, gap=3), 1), see))
        if self._home is None:
            leaving_card.hide()
        return leaving_card

    def _show_ahas(self, ahas: tuple[Aha, ...]) -> None:
        if ahas == self._ahas:
            return
        self._ahas = ahas
        empty(self._ahas_box)
        for aha in list(reversed(ahas))[:MOST_AHAS]:
            description, whose = aha_cells(aha)
            sign = Icon(self.theme, "peers" if aha.origin else "on", "peer" if aha.origin else "accent_line", 16)
            line = ElidedLabel(self.theme, whose, "small", "text_soft", right=True)
            specialty = ElidedLabel(self.theme, description, "body")
            specialty.setMinimumWidth(min(specialty.sizeHint().width(), self.theme.px(SPECIALTY)))  # else `line` takes its room
            self._ahas_box.addWidget(as_widget(row(sign, (specialty, 1), line, gap=10)))
        if not ahas:
            words = tr("The first right answer in each specialty appears here, with the peer it was learned from.")
            self._ahas_box.addWidget(text(self.theme, words, "body", "soft", wrap=True))

    def take_over(self, before: Page) -> None:
        """Take over the view, the text and the choices, but no passphrase."""
        assert isinstance(before, YouPage)
        self._state = before._state
        self._as_table.setChecked(before._as_table.isChecked())
        view = before._views.currentIndex()
        if view == IDENTITY:
            self._open(before._act)
            self._identity.take_over(before._identity)
        elif view == GOODBYE:
            self.show_goodbye()
            self._goodbye.take_over(before._goodbye)
        self._leaving = before._leaving

    def _open(self, act: IdentityAction) -> None:
        self._act = act
        self._views.setCurrentIndex(IDENTITY)
        self._identity.show_act(act, one_line(self._state.ready.name) if self._state.ready else "")

    async def _ask_where_to_save(self) -> None:
        if path := await chosen_path(file_dialog(self, tr("Save the share card"), saves="waggle.png")):
            self.save_card(path)

    def save_card(self, path: Path) -> None:
        """Save the share card as a picture and post a notice."""
        path = add_suffix(path, ".png", [f".{bytes(kind.data()).decode()}" for kind in QImageWriter.supportedImageFormats()])
        done = share_card(self.theme, self._state).save(str(path))
        words = tr("Saved to %1") if done else tr("Not saved: %1 cannot be written")
        self.notice_posted.emit(words.replace("%1", str(path)), "check" if done else "warn")

    def sizeHint(self) -> QSize:
        return QSize(900, 600)


def _table(theme: Theme, model: RowsModel[Day]) -> QTableView:
    view = QTableView()
    view.setModel(model)
    view.setAccessibleName(tr("Your days as a table, newest first"))
    head = style_table(view, theme, theme.px(28))
    head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    head.setResizeContentsPrecision(MEASURED_ROWS)
    head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    ScrollAnchor(view)
    return view
