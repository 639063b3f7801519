"""The form that creates a swarm: name, what it asks, the model it is meant for, and whether joining needs a key."""

import asyncio
from collections.abc import Sequence

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QFrame, QLineEdit, QSizePolicy

from waggle.core.errors import EngineError
from waggle.gui.coroutines import Task, start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import later, plural, tr
from waggle.gui.pages.swarms.own_questions import OwnQuestions
from waggle.gui.pages.swarms.specialty_choice import SpecialtyChoice
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import EvenRow, ResponsiveRow
from waggle.gui.widgets.containers.scroll_anchor import show_in_view
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.layout import as_widget, column, edges, row
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.commands import CreateSwarm, new_id
from waggle.protocol.events_swarms import SwarmCreated
from waggle.protocol.state import SPECIALTIES, State
from waggle.protocol.text.swarm_text import CLASS_NAMES, CLASS_PAGE

NAME, HINT = 60, 80  # characters, as in a charter
LOW = 560  # pixels at a text size of 100%: a lower form scrolls as a whole
FROM_WAGGLE, OWN = range(2)  # tabs
CLASS_ASKS = later(
    "It asks easy questions that a class can check: arithmetic, calendar, decimals, fractions, logic. Rounds are short, and the "
    "recommended model is the starter that comes with Waggle."
)


class CreateSwarmForm(QFrame):
    """Creates a swarm; it is disabled until the engine answers. `created` carries its SwarmDetails.

    `declined`: the person gave up. `host` as in OwnQuestions.
    """

    created = Signal(object)
    declined = Signal()

    def __init__(self, theme: Theme, client: EngineClient, host: str = "") -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._theme, self._client = theme, client
        self._answer: asyncio.Future[SwarmCreated] | None = None  # that is awaited
        self._creating: Task | None = None
        self._name = self._field(tr("Name of the swarm"), tr("Others see it before they join"), NAME)
        self._hint = self._field(tr("Which model it is meant for"), tr("Any; small ones do best with easy questions"), HINT)
        self._private = QCheckBox(tr("Private: only with your invite"))
        self._private.setFont(theme.font("body"))
        self._private.setAccessibleName(self._private.text())
        self._for_class = QCheckBox(tr("For a class"))
        self._for_class.setFont(theme.font("body"))
        self._for_class.setAccessibleName(self._for_class.text())
        self._for_class.toggled.connect(self._prepare_class)
        in_short = tr("Private, with easy questions, short rounds and a page for the projector.")
        self._class_in_short = text(theme, in_short, "caption", "faint", wrap=True)
        about = [text(theme, tr(words), "caption", "faint", wrap=True) for words in (CLASS_ASKS, CLASS_PAGE, CLASS_NAMES)]
        self._class_words = as_widget(column(*about, gap=6))
        self._asks = text(theme, "", "label")
        self._specialties, self._own = SpecialtyChoice(theme), OwnQuestions(theme, client, host)
        self._specialties.changed.connect(self._update_form)
        self._own.changed.connect(self._update_form)
        self._tabs = SegmentedControl(theme, (tr("Waggle's questions"), tr("Your own")), tr("What it asks"))
        self._tabs.chosen.connect(self._show_tab)
        self._problem = text(theme, "", "small", "bad", wrap=True)
        self._create = Button(theme, tr("Create"), "primary")
        self._create.clicked.connect(self._ask)
        no = Button(theme, tr("Cancel"))
        no.clicked.connect(self.declined)
        self._count = ElidedLabel(theme, role="small", tone="text_soft")
        self.setLayout(self._new_layout(no))
        self._own.opened.connect(lambda card: show_in_view(self._area, card))
        self._name.textChanged.connect(self._update_form)
        self._show_tab(FROM_WAGGLE)
        self._update_form()

    def _new_layout(self, no: Button) -> QBoxLayout:
        """What it is called above, in two columns; below, what it asks, in the whole width."""
        theme = self._theme
        model = text(theme, tr("Recommended model (optional)"), "label")
        once = text(theme, tr("People join only through your link, and a link cannot be taken back."), "caption", "faint",
                    wrap=True)  # fmt: skip
        about = EvenRow(
            as_widget(column(text(theme, tr("Name"), "label"), self._name, 6, self._private, once, None, gap=4)),
            as_widget(
                column(model, self._hint, 6, self._for_class, self._class_in_short, self._class_words, None, gap=4),
            ),
        )
        about.set_gap(28)
        head = ResponsiveRow(self._asks, self._tabs)
        head.set_gap(12)
        self._asking = column(about, 6, head, (self._specialties, 1), (self._own, 1), gap=8, margins=edges(0, 0, 6, 0))
        foot = row((self._count, 1), no, self._create, gap=8, margins=edges(0, 0, 6, 0))
        title = text(theme, tr("Create a swarm"), "title")
        self._area = ScrollArea(self._asking, "surface")  # so that Create stays in sight
        self._area.setMinimumHeight(theme.px(220))
        return column(title, 4, (self._area, 1), self._problem, foot, gap=8, margins=edges(24, 18, 18, 18))

    def _field(self, name: str, hint: str, longest: int) -> QLineEdit:
        edit = QLineEdit()
        edit.setFont(self._theme.font("body"))
        edit.setAccessibleName(name)
        edit.setPlaceholderText(hint)
        edit.setMaxLength(longest)
        edit.setFixedHeight(self._theme.size["control"])
        return edit

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little height, the whole form scrolls, and not the list in it, too."""
        super().resizeEvent(event)
        self._specialties.set_whole(self.height() < self._theme.px(LOW))
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """No higher than what it asks needs."""
        hint = super().sizeHint()
        height = self._asking.sizeHint().height() - self._area.sizeHint().height()
        if not self._specialties.isHidden():
            height += self._specialties.height_in_view() - self._specialties.sizeHint().height()
        return QSize(hint.width(), hint.height() + height)

    def show_state(self, state: State) -> None:
        if state.swarms is not None:
            self._specialties.show_offers(state.swarms.offers)

    def add_files(self, paths: Sequence[str], words: str = "") -> None:
        """Show a person's own questions, with these files; see `OwnQuestions.add_files`."""
        self._show_tab(OWN)
        self._own.add_files(paths, words)

    def take_over(self, before: "CreateSwarmForm") -> None:
        """Take over what was filled in, and whether an answer is awaited."""
        for field, other in ((self._name, before._name), (self._hint, before._hint)):
            field.setText(other.text())
        self._private.setChecked(before._private.isChecked())
        self._for_class.setChecked(before._for_class.isChecked())
        self._specialties.take_over(before._specialties)
        self._own.take_over(before._own)
        self._show_tab(before._tabs.index)
        self._problem.setText(before._problem.text())
        if before._answer is not None:
            self._await(before._answer)
        self._update_form()

    def stop_waiting(self) -> None:
        """Wait for no answer any more: it would bring another view in front."""
        self._answer = None
        if self._creating is not None:
            self._creating.cancel()

    def begin(self) -> None:
        """Enable the form as it is filled in, waiting for no answer."""
        self.stop_waiting()
        self._problem.setText("")
        self._update_form()
        self._name.setFocus()

    def reset(self) -> None:
        """Empty the form."""
        self.stop_waiting()
        self._problem.setText("")
        self._name.clear()
        self._hint.clear()
        self._for_class.setChecked(False)
        self._private.setChecked(False)
        self._specialties.reset()
        self._own.reset()
        self._show_tab(FROM_WAGGLE)

    def _prepare_class(self, chosen: bool) -> None:
        """A class is private, and has its own questions; more can be added."""
        self._private.setChecked(chosen or self._private.isChecked())
        self._private.setEnabled(not chosen)
        self._update_form()

    def _show_tab(self, tab: int) -> None:
        self._tabs.mark(tab)
        self._specialties.setVisible(tab == FROM_WAGGLE)
        self._own.setVisible(tab == OWN)
        self.updateGeometry()

    def _update_form(self) -> None:
        kinds, files = len(self._specialties.chosen()), len(self._own.new_files())
        lacks = self._missing_text(kinds, files)
        self._problem.setVisible(bool(self._problem.text()))
        for_class = self._for_class.isChecked()
        self._class_words.setVisible(for_class)
        self._class_in_short.setVisible(not for_class)
        self._asks.setText(tr("What else it asks") if for_class else tr("What it asks"))
        if self._answer is not None:
            self._count.say(tr("Making its questions; a few seconds."))
        else:
            chosen = [plural(files, "%n file of your own", "%n files of your own")] if files else []
            chosen += [plural(kinds, "%n specialty chosen", "%n specialties chosen")] if kinds else []
            self._count.say(". ".join(words for words in (", ".join(chosen), lacks) if words))
        self._create.setEnabled(not lacks and self._answer is None)
        self.updateGeometry()

    def _missing_text(self, kinds: int, files: int) -> str:
        """What the form still lacks with this many specialties and files; empty: nothing."""
        if not kinds and not files and not self._for_class.isChecked():
            if self._name.text().strip():
                return tr("Choose at least one specialty, or add questions of your own.")
            return tr("Give it a name, and choose at least one specialty or add questions of your own.")
        if kinds + files > SPECIALTIES:
            return tr("At most %1 specialties.").replace("%1", str(SPECIALTIES))
        if missing := self._own.missing_text():
            return missing
        return "" if self._name.text().strip() else tr("Give it a name.")

    def _ask(self) -> None:
        self._problem.setText("")
        command = CreateSwarm(
            id=new_id(), name=self._name.text().strip(), specialties=self._specialties.pairs(), files=self._own.new_files(),
            model_hint=self._hint.text().strip(), private=self._private.isChecked(),
            preset="classroom" if self._for_class.isChecked() else "",
        )  # fmt: skip
        self._await(self._client.ask(command, SwarmCreated))
        self._update_form()

    def _await(self, answer: asyncio.Future[SwarmCreated]) -> None:
        self._answer, self._creating = answer, start(self, self._finish(answer))

    async def _finish(self, answer: asyncio.Future[SwarmCreated]) -> None:
        try:
            created = await asyncio.shield(answer)
        except EngineError as error:
            self._answer = None
            self._problem.setText(refusal_words(error))
            self._update_form()
            announce_refusal(error, self._problem, self._client)
        else:
            self.reset()
            self.created.emit(created.swarm)
