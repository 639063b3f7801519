"""The page Help: short answers, a glossary, the self-test, the search for an update, the log, a report, and the keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QListView,
    QPlainTextEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.core.message import Message, unpacked_message
from waggle.core.text.redaction import redact
from waggle.gui.engine_client.line_process import LineProcess
from waggle.gui.i18n.formatting import later, tr, visible
from waggle.gui.pages import PAGES
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.page import Page
from waggle.gui.state import shortcuts
from waggle.gui.state.event_log import EventLog, EventLogModel
from waggle.gui.state.problem_report import replacement_names
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.responsive_row import EvenRow
from waggle.gui.widgets.containers.scroll_anchor import ScrollAnchor, is_being_read
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.containers.two_columns import TwoColumns
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.copy_button import CopyButton
from waggle.gui.widgets.controls.inputs import TextField
from waggle.gui.widgets.controls.usage_profile import cores_in_use
from waggle.gui.widgets.layout import as_widget, card, column, row, rule
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.state import State
from waggle.protocol.text.privacy_text import SHARED

FOLDED = 94  # pixels of the log, at a text size of 100%: three lines
KEYS = (
    ((shortcuts.PAUSE,), later("Pause, or resume")), ((shortcuts.FIND,), later("Find, in settings, models, peers and log")),
    ((shortcuts.MUTE, shortcuts.BLOCK), later("Mute or block the chosen peer")), ((shortcuts.CLOSE,), later("Close the window")),
    ((shortcuts.QUIT,), later("Quit")),
)  # fmt: skip


ANSWERS = (
    (
        later("What does Waggle do?"),
        later(
            "It trains a small language model on this computer: the model answers puzzles, and a program checks the answers."
            " Peers do the same, and all learn from each other."
        ),
    ),
    (later("What leaves my computer?"), SHARED),
    (
        later("How do I invite someone?"),
        later("Choose Invite someone on Peers or Swarms, then send the link or let them scan the code."),
    ),
    (
        later("Can it use more of my computer, or less?"),
        later("It uses only part of the processor. Choose Quiet, Balanced or Full on Home."),
    ),
)
WORDS = (
    (later("Round"), later("Your model answers some questions, then learns from the answers.")),
    (later("Example"), later("A question with a model's answers. Peers share these.")),
    (later("Peer"), later("Another computer that trains in your swarm.")),
    (later("Swarm"), later("Computers that train on the same questions and share their answers.")),
    (later("Reward"), later("How right an answer is, from 0 to 1.")),
    (later("Specialty"), later("One kind of question, such as fractions.")),
    (later("New questions"), later("Questions that your model never trains on: the honest test of what it learned.")),
    (
        later("Answers not verified"),
        later("Checked by one program only: there is no second way to check these answers."),
    ),
    (later("Answer tag"), later("<answer>…</answer>: Waggle looks for the answer only in here.")),
)


@dataclass(frozen=True, kw_only=True)
class HelpQuestion:
    """The texts around a question that a command of `waggle` answers, line by line, in messages as JSON."""

    command: tuple[str, ...]
    title: str
    about: str
    act: str
    icon: str
    busy: str
    answered: str
    failed: str


SELF_TEST = HelpQuestion(
    command=("selftest", "--stdio"),
    title=later("Does everything work here?"),
    about=later("Trains for three rounds on this computer. Nothing is shared or saved."),
    act=later("Run the self-test"),
    icon="play",
    busy=later("Testing. This takes about half a minute."),
    answered=later("Everything works."),
    failed=later("The test failed. Details are below."),
)
UPDATE = HelpQuestion(
    command=("update", "--stdio"),
    title=later("Is there a newer Waggle?"),
    about=later("Waggle looks only when you ask, and installs nothing by itself."),
    act=later("Check for updates"),
    icon="again",
    busy=later("Checking."),
    answered=later("Result:"),
    failed=later("The check failed:"),
)


def _in_words(line: bytes) -> str:
    """A line of a command in the window's language, if it is a message."""
    try:
        return tr(msgspec.json.decode(line, type=Message, dec_hook=unpacked_message))
    except UNREADABLE:
        return line.decode("utf-8", "replace").rstrip()


class HelpQuestionPanel(QWidget):
    """A question, and the output of the command that answers it, run in a process of its own."""

    done = Signal()

    def __init__(self, theme: Theme, asking: HelpQuestion) -> None:
        super().__init__()
        self._asking = asking
        self._says = text(theme, tr(asking.about), "small", "soft", wrap=True)
        self._run = Button(theme, tr(asking.act), icon=asking.icon)
        self._run.clicked.connect(self.ask)
        self._output = _read_only_text(theme, tr(asking.title), 110)
        self._output.hide()
        self._follow_program(LineProcess(self))
        title = text(theme, tr(asking.title), "heading", wrap=True)
        head = row((column(title, self._says, gap=3), 1), self._run)
        self.setLayout(column(head, self._output, gap=10))

    @property
    def output(self) -> str:
        return self._output.toPlainText()

    @property
    def busy(self) -> bool:
        return self._program.is_running

    def _follow_program(self, program: LineProcess) -> None:
        self._program = program
        program.line.connect(lambda line: self._add(_in_words(line)))
        program.ended.connect(self._show_end)

    def take_over(self, before: "HelpQuestionPanel") -> None:
        """Take over a running command and its output."""
        if before.busy:
            before._program.live_with(self)
            self._follow_program(before._program)
            self._show_busy(before.output)

    def _show_busy(self, output: str) -> None:
        self._output.show()
        self._output.setPlainText(output)
        if self._run is self.window().focusWidget():  # else Qt focuses the next widget
            self._output.setFocus()
        self._run.setEnabled(False)
        self._says.setText(tr(self._asking.busy))

    def ask(self) -> None:
        """Run the command; `done` follows."""
        self._show_busy("")
        self._program.start([*paths.module_command("waggle"), *self._asking.command])

    def _add(self, line: str) -> None:
        self._output.appendPlainText(visible(line))

    def _show_end(self, code: int, complaints: list[str]) -> None:
        for complaint in complaints:
            self._add(tr(complaint))
        self._run.setEnabled(True)
        if self._output is self.window().focusWidget():
            self._run.setFocus()
        self._says.setText(tr(self._asking.failed if code else self._asking.answered))
        self.done.emit()


class _ViewWidthDelegate(QStyledItemDelegate):
    """Gives every line the view's width. With uniform sizes, all lines have the first one's width, and longer text is cut
    without an ellipsis."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(0, super().sizeHint(option, index).height())


class LogCard(QFrame):
    """The events since the window was opened, newest first."""

    def __init__(self, theme: Theme, journal: EventLog) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.model = EventLogModel(journal, self)
        self._journal, self._stale = journal, False
        self.names: Mapping[str, str] = {}  # names to leave out of a copy, and their replacements
        search = TextField(theme, tr("Find in the log"), tr("Find in the log"))
        search.setClearButtonEnabled(True)
        search.setMinimumWidth(theme.px(180))  # its row has a title and a button, too
        search.textChanged.connect(self.model.find)
        self.search = search
        self._view = QListView()
        self._view.setModel(self.model)
        self._view.setItemDelegate(_ViewWidthDelegate(self._view))
        self._view.setUniformItemSizes(True)
        self._view.setFont(theme.font("mono"))
        self._view.setAccessibleName(tr("Log"))
        self._folded = theme.px(FOLDED)
        self._view.setFixedHeight(self._folded)
        self._all = Button(theme, tr("Show all"), "link")
        self._all.setCheckable(True)
        self._all.toggled.connect(self._unfold)
        search.textChanged.connect(lambda words: self._all.setChecked(bool(words) or self._all.isChecked()))
        self._view.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self._copy = Button(theme, tr("Copy"), icon="copy")
        self._copy.clicked.connect(self._take)
        self._none = text(theme, "", "small", "faint")
        self._view.setLayout(column(self._none, None, margins=(8, 6, 8, 6)))
        self.model.modelReset.connect(self._say_what_is_there)
        self.model.rowsInserted.connect(self._say_what_is_there)
        ScrollAnchor(self._view)
        self._say_what_is_there()
        journal.added.connect(self._mark_stale)
        head = row((text(theme, tr("Log"), "heading"), 1), search, self._copy)
        self.setLayout(column(head, self._view, row(self._all, None), gap=10, margins=(20, 16, 20, 18)))

    def _unfold(self, whole: bool) -> None:
        """Show many lines, or the newest few."""
        self._view.setFixedHeight(self._folded * 3 if whole else self._folded)
        self._all.say(tr("Show less") if whole else tr("Show all"))

    def catch_up(self) -> None:
        """Show new entries; called when the page is redrawn, so only while it is visible."""
        if self._stale:
            self._stale = False
            self.model.catch_up()

    def _say_what_is_there(self) -> None:
        nothing = not self.model.rowCount()
        self._none.setText(tr("No line has these words.") if self._journal.entries else tr("Nothing has happened yet."))
        self._none.setVisible(nothing)
        self._copy.setEnabled(not nothing)
        self._copy.say(tr("Copy"), "copy")

    def _mark_stale(self) -> None:
        self._stale = True

    def _take(self) -> None:
        QGuiApplication.clipboard().setText(redact(self.model.text(), names=self.names))
        self._copy.say(tr("Copied"), "check")


class ReportCard(QFrame):
    """The report, shown before it is copied; nothing is sent from here."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._state = State()
        self._text = _read_only_text(theme, tr("The report"), 150)
        self._copy = CopyButton(theme, tr("Copy report"))
        about = text(theme, tr("For someone who can help. Names, addresses, peers and folders are left out; read it first."),
                     "small", "soft", wrap=True)  # fmt: skip
        head = row((column(text(theme, tr("Report"), "heading"), about, gap=3), 1), self._copy)
        self.setLayout(column(head, self._text, gap=10, margins=(20, 16, 20, 18)))

    @property
    def is_read(self) -> bool:
        return is_being_read(self._text)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._text.moveCursor(QTextCursor.MoveOperation.Start)

    def show_report(self, words: str) -> None:
        if words != self._text.toPlainText():
            self._text.setPlainText(words)
        self._copy.offer(self._text.toPlainText())


class HelpPage(Page):
    """Help: explanations, the self-test, the log and the problem report."""

    wide_from = 1400

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, self._journal = context.theme, context.event_log
        self._line = ElidedLabel(theme, tr("Answers, checks and the log"), "small", "text_faint")
        self.self_test, self.update_asked = HelpQuestionPanel(theme, SELF_TEST), HelpQuestionPanel(theme, UPDATE)
        self._log, self._report = LogCard(theme, self._journal), ReportCard(theme)
        self._head = page_header(theme, tr("Help"), self._line)
        answers, self._slow = _answers_card(theme)
        words = _terms_card(theme, tr("What the words mean"), [(tr(word), tr(meaning)) for word, meaning in WORDS], "label")
        checks = card(self.self_test, rule(), self.update_asked, rule(), self._race(), gap=14)
        self._columns = TwoColumns()
        self._area = ScrollArea(column(self._columns, None))
        self.setLayout(column(self._head, (self._area, 1), gap=0))
        last = (self._log, self._report, _keys_card(theme), self._goodbye_card())
        self._columns.fill((answers, checks, words), last)
        self._ended: object = None  # phase and problem: the report changes with them even while it is being read
        self._key: object = None  # what the report depends on otherwise: it does not change then while it is being read
        self.set_compact(False)

    def _race(self) -> QWidget:
        about = text(self.theme, tr("Two small swarms train here, one sharing and one not. It takes about two minutes."),
                     "small", "soft", wrap=True)  # fmt: skip
        see = Button(self.theme, tr("Watch the race"), icon="play")
        see.clicked.connect(lambda: self.context.requests.page.emit("playground", "race"))
        return as_widget(row((column(text(self.theme, tr("Does sharing help?"), "heading"), about, gap=3), 1), see))

    def _goodbye_card(self) -> QFrame:
        about = text(self.theme, tr("See what Waggle keeps on this computer, and choose what to remove."), "small", "soft",
                     wrap=True)  # fmt: skip
        see = Button(self.theme, tr("Say goodbye"))
        see.clicked.connect(lambda: self.context.requests.page.emit("you", "goodbye"))
        leaving_card = card(row((column(text(self.theme, tr("Leaving?"), "heading"), about, gap=3), 1), see))
        if self.context.engine.home is None:
            leaving_card.hide()
        return leaving_card

    def take_over(self, before: Page) -> None:
        assert isinstance(before, HelpPage)
        self.self_test.take_over(before.self_test)
        self.update_asked.take_over(before.update_asked)
        self._log.search.setText(before._log.search.text())

    def go_to_search(self) -> None:
        self._area.ensureWidgetVisible(self._log.search)
        self._log.search.setFocus()

    def arrange(self, edge: int, gap: int) -> None:
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._area.set_edges(edge, edge)
        self._columns.arrange(gap, wide=self.wide)

    def show_state(self, state: State, now: float) -> None:
        self._log.catch_up()
        self._log.names = replacement_names(state, self.context.engine.name)
        if cores := cores_in_use(state):
            words = tr("It uses %1 now. Choose Quiet, Balanced or Full on Home.")
            self._slow.setText(words.replace("%1", cores))
        newest = self._journal.entries[-1] if self._journal.entries else None
        ended, key = (state.phase, state.problem), (state.round, state.ready, newest)
        if ended != self._ended or (key != self._key and not self._report.is_read):
            self._ended, self._key = ended, key
            self._report.show_report(self.context.report(state))


def _keys_card(theme: Theme) -> QFrame:
    pages = (
        f"{shortcuts.native_text(shortcuts.page(1))} … {shortcuts.native_text(shortcuts.page(min(len(PAGES), shortcuts.PAGES)))}"
    )
    arrows = "← →, " + shortcuts.native_text("Shift+Left", "Shift+Right")
    lines = [(pages, tr("Go to a page"))]
    usual = shortcuts.USUAL
    lines += [
        (shortcuts.native_text(usual["settings"]), tr("Go to Settings")),
        (shortcuts.native_text(usual["help"]), tr("Go to Help")),
    ]
    lines += [(shortcuts.native_text(*pressed), tr(words)) for pressed, words in KEYS]
    lines += [
        (arrows, tr("Charts: go to the next point; with Shift, move the view")),
        ("+, −, 0", tr("Charts: zoom in or out, or show the whole run")),
    ]
    return _terms_card(theme, tr("Keys"), lines, "mono")


def _answers_card(theme: Theme) -> tuple[QFrame, QLabel]:
    """The questions that people ask first, each with its answer; and the last answer, which depends on the computer."""
    answers = [text(theme, tr(answer), "small", "soft", wrap=True) for _, answer in ANSWERS]
    titled = [
        as_widget(column(text(theme, tr(question), "heading", wrap=True), answer, None, gap=3))
        for (question, _), answer in zip(ANSWERS, answers, strict=True)
    ]
    rows = [EvenRow(*titled[place : place + 2]) for place in (0, 2)]
    for each in rows:
        each.set_gap(28)
    return card(*rows, gap=16), answers[-1]


def _terms_card(theme: Theme, title: str, lines: Sequence[tuple[str, str]], role: str) -> QFrame:
    """A card with terms on the left and their explanations on the right."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(24)
    grid.setVerticalSpacing(6)
    grid.setColumnStretch(1, 1)
    for place, (what, words) in enumerate(lines):
        grid.addWidget(text(theme, what, role, "soft"), place, 0)
        grid.addWidget(text(theme, words, "small", wrap=True), place, 1)
    return card(text(theme, title, "heading"), grid, gap=10)


def _read_only_text(theme: Theme, name: str, height: int) -> QPlainTextEdit:
    reader = QPlainTextEdit()
    reader.setReadOnly(True)
    reader.setFont(theme.font("mono"))
    reader.setAccessibleName(name)
    reader.setTabChangesFocus(True)
    reader.setFixedHeight(theme.px(height))
    reader.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
    return reader
