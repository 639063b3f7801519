"""How far the choice of another model is: the download's progress, or why it failed."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.models.licence_steps import LicenceSteps
from waggle.gui.pages.models.model_words import Offers, choice_progress, choice_title, lacks_access, unchanged_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.part_bar import PartBar
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.events_models import ModelChoice
from waggle.protocol.state import State


class ChoiceCard(QFrame):
    """Hidden while no choice is under way. `cancelled`: stop the download; `repeated` carries the choice that is tried again."""

    cancelled = Signal()
    repeated = Signal(object)

    def __init__(self, theme: Theme, *, here: bool) -> None:
        """`here`: the engine runs on this computer."""
        super().__init__()
        self.setProperty("kind", "card")
        self._choice: ModelChoice | None = None
        self._dismissed: ModelChoice | None = None
        self._sign, self._title = Icon(theme, "gather", "accent_text", 18), ElidedLabel(theme, "", "heading")
        self._progress = text(theme, "", "small", "soft", wrap=True)
        self._unchanged = text(theme, "", "small", "soft", wrap=True)
        self._bar = PartBar(tr("Download of the model"))
        self._cancel = Button(theme, tr("Cancel"), small=True)
        self._cancel.clicked.connect(self.cancelled)
        self._retry = Button(theme, tr("Try again"), small=True)
        self._retry.clicked.connect(lambda: self.repeated.emit(self._choice))
        self._close = Button(theme, tr("Dismiss"), "link")
        self._close.clicked.connect(self._dismiss)
        last = as_widget(row((self._unchanged, 1), self._retry))
        self._here = here
        self._licence = LicenceSteps(theme, here=here)
        self._licence.retried.connect(lambda: self.repeated.emit(self._choice))
        self.setLayout(
            column(
                row(self._sign, (self._title, 1), self._close, self._cancel),
                self._progress,
                self._bar,
                self._licence,
                last,
                gap=8,
                margins=(20, 14, 20, 14),
            )
        )
        self.hide()

    def show_state(self, state: State, offers: Offers, why_not: str) -> None:
        choice = _choice_of(state)
        self._choice = choice
        self.setVisible(choice is not None and choice != self._dismissed)
        if choice is None:
            return
        failed, starts = choice.stage == "failed", choice is not state.choice
        licence = lacks_access(choice)
        self._sign.show_icon(*(("lock", "accent_text") if licence else ("warn", "bad") if failed else ("gather", "accent_text")))
        self._title.say(choice_title(choice, offers))
        say_in(self._progress, "" if licence else choice_progress(choice), "text" if failed else "soft")
        self._licence.setVisible(licence)
        self._licence.show_model(choice.name, why_not)
        say_in(self._unchanged, _what_stays(state, failed=failed, starts=starts), "soft")
        self._bar.setVisible(not failed)
        self._bar.show_part(choice.done, choice.total if choice.stage in ("downloading", "converting") else 0)
        self._cancel.setVisible(not failed and not starts)
        self._close.setVisible(failed)
        self._retry.setVisible(failed and not (licence and self._here))  # the steps here have a button of their own
        self._retry.setEnabled(not why_not)
        self._retry.setToolTip(why_not)

    def _dismiss(self) -> None:
        self._dismissed = self._choice
        self.hide()


def _choice_of(state: State) -> ModelChoice | None:
    """The choice under way or failed; or the download that the engine's start waits for."""
    coming = state.downloading if state.phase in ("preparing", "paused") else None
    if state.choice is None and coming is not None:
        return ModelChoice(
            name=coming.model, stage="downloading", done=coming.done, total=coming.total, seconds_left=coming.seconds_left
        )
    return state.choice


def _what_stays(state: State, *, failed: bool, starts: bool) -> str:
    if starts:
        return tr("The download continues where it stopped if it is interrupted.")
    model = state.ready.model if state.ready else ""
    if failed:
        return tr("You are still training %1.").replace("%1", model) if model else ""
    return unchanged_words(model)
