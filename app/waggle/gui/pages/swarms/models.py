"""The models to train (the starter, models of the hub, folders): choosing, downloading, removing and exporting one."""

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QLineEdit, QProgressBar, QWidget

from waggle.gui.i18n.formatting import one_line, plural, size, tr, tr_sentence, visible
from waggle.gui.i18n.placeholders import NO_MODEL, why_unavailable
from waggle.gui.pages.swarms.prompt_form_words import prompt_form_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import ConfirmLink
from waggle.gui.widgets.file_dialogs import file_dialog
from waggle.gui.widgets.layout import as_widget, card, column, empty, row
from waggle.gui.widgets.painted_widgets import Chip, Icon
from waggle.gui.widgets.scroll_anchor import is_in_view
from waggle.gui.widgets.text import ElidedLabel, say_in, set_tip, text
from waggle.protocol.commands import ChooseModel, ExportModel, ListModels, RemoveModel, new_id
from waggle.protocol.events_models import ModelDetails, ModelExported
from waggle.protocol.state import State


def model_name(model: ModelDetails) -> str:
    """The name of a model, for people."""
    if model.kind == "starter":
        return tr("The starter")
    return one_line(model.name) if model.kind == "hub" else one_line(Path(model.folder).name)


def model_summary(model: ModelDetails) -> str:
    """Source, size and training of a model, in one line."""
    where = {"starter": tr("Comes with Waggle"), "hub": tr("From the hub"), "folder": one_line(model.folder)}[model.kind]
    if not model.finished:
        came = tr("%1 have come; the download goes on when you choose it").replace("%1", size(model.bytes))
        return f"{where}; {came}"
    trained = (
        plural(model.rounds, "%n round trained here", "%n rounds trained here") if model.rounds else tr("not trained here yet")
    )
    return f"{where}, {size(model.bytes)}; {trained}"


def storage(models: tuple[ModelDetails, ...], free: int) -> str:
    """The disk space that downloaded models take, and what is free."""
    used = sum(model.bytes for model in models if model.kind == "hub")
    return tr("Models of the hub take %1; %2 are free").replace("%1", size(used)).replace("%2", size(free))


def card_shape(model: ModelDetails) -> object:
    """What decides which widgets a card has; the rest of a model only changes its texts."""
    return model.kind, model.name, model.folder, model.active, bool(model.fit)


class ModelCard(QFrame):
    """One model. `chosen` and `removed` carry it; the model in training offers an export instead."""

    chosen = Signal(object)
    removed = Signal(object)
    export_wanted = Signal()

    def __init__(self, theme: Theme, model: ModelDetails) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        title = model_name(model)
        head = row((ElidedLabel(theme, title, "heading"), 1))
        if model.active:
            head.addWidget(Chip(theme, tr("Trained now"), "accent", "on"))
        self._about, self._fit = ElidedLabel(theme, "", "small", "text_soft"), text(theme, "", "small", "soft", wrap=True)
        self._fit.setVisible(bool(model.fit))
        self._form = text(theme, "", "small", "soft", wrap=True)
        if model.active:
            self._act = Button(theme, tr("Export what was learned"), small=True, icon="share")
            self._act.clicked.connect(self.export_wanted)
        else:
            self._act = Button(theme, tr("Train this one"), small=True)
            self._act.setAccessibleName(tr("Train %1").replace("%1", title))
            self._act.clicked.connect(lambda: self.chosen.emit(model))
        acts = [self._act, *([self._remover(theme, model)] if model.kind == "hub" and not model.active else [])]
        lines = (head, self._about, self._fit, self._form, row(*acts, None, margins=(0, 4, 0, 0)))
        self.setLayout(column(*lines, gap=5, margins=(20, 12, 20, 12)))

    def _remover(self, theme: Theme, model: ModelDetails) -> ConfirmLink:
        name = tr("Remove %1 from this computer").replace("%1", model_name(model))
        sure = tr("Remove %1").replace("%1", size(model.bytes))
        button = ConfirmLink(theme, tr("Remove"), name, question=sure, question_name=f"{name}: {size(model.bytes)}")
        button.confirmed.connect(lambda: self.removed.emit(model))
        return button

    def show_model(self, model: ModelDetails, form: str, why_not: str) -> None:
        """Show the model's present state; `form`: how it is asked, in words; `why_not`: why no button can be pressed."""
        say_in(self._form, form, "soft")
        self._about.say(model_summary(model))
        first, more, how = model.fit.partition(". ")
        self._fit.setText(tr_sentence(f"{first}." if more else first))
        set_tip(self._fit, tr_sentence(how))
        for act in self.findChildren(Button):
            act.setEnabled(not why_not and (model.rounds > 0 or not model.active))
            act.setToolTip(why_not)


class ModelsView(QWidget):
    """All models, a field for another one, and a download's progress. `here`: the engine runs on this computer."""

    commanded = Signal(object)

    def __init__(self, theme: Theme, *, here: bool) -> None:
        super().__init__()
        self._theme, self._here, self._state = theme, here, State()
        self._recorded = False
        self._shapes: list[object] = []  # `card_shape` of each card
        self._model_cards: list[ModelCard] = []
        self._asked_of: object = None
        self._asked_by, self._writing = "", False  # the id of the person's last command; whether an export is running
        self._storage, self._message = ElidedLabel(theme, role="small", tone="text_soft"), text(theme, "", "small", wrap=True)
        self._bar, self._came = QProgressBar(), ElidedLabel(theme, role="small", tone="text_soft")
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(8)
        self._bar.setAccessibleName(tr("Download of the model"))
        self._loading = card(row(Icon(theme, "save", "text_soft"), (self._came, 1)), self._bar, gap=8)
        self._waiting, self._cards = text(theme, "", "body", "soft"), column(gap=12)
        self._empty = card(self._waiting)
        self.setLayout(column(self._loading, self._empty, self._cards, self._add_model_card(), self._storage, None, gap=12))
        self._say("")

    def _add_model_card(self) -> QFrame:
        theme = self._theme
        self._name = QLineEdit()
        self._name.setFont(theme.font("body"))
        self._name.setAccessibleName(tr("Name of a model of the hub"))
        self._name.setPlaceholderText("Qwen/Qwen2.5-0.5B-Instruct")
        self._name.setMaxLength(200)
        self._name.setFixedHeight(theme.size["control"])
        self._name.returnPressed.connect(self._use_name)
        self._use, self._folder = Button(theme, tr("Download and train")), Button(theme, tr("Open a folder"))
        self._use.clicked.connect(self._use_name)
        self._folder.clicked.connect(self._ask_for_folder)
        if not self._here:
            self._folder.hide()
        words = tr("A language model of the Hugging Face hub by its name, or a transformers folder. "
                   "Every model keeps what it has learned, and you can come back to it.")  # fmt: skip
        fields = as_widget(row((self._name, 1), self._use, self._folder))
        return card(
            text(theme, tr("Another model"), "heading"), text(theme, words, "small", "soft", wrap=True), fields, self._message
        )

    def show_state(self, state: State) -> None:
        before, self._state = self._state, state
        # choosing another model interrupts a download, and answers the question about a changed one
        may_choose = state.phase == "preparing" and (state.downloading is not None or state.changed is not None)
        why_not = tr(NO_MODEL) if self._recorded else "" if may_choose else why_unavailable(state)
        if self.isVisible() and not why_not:
            self._list()
        for button in (self._use, self._folder):
            button.setEnabled(not why_not)
            button.setToolTip(why_not)
        self._show_download()
        if state.exported is not None and state.exported is not before.exported:
            self._writing = False
            self._say(exported_words(state.exported), "good")
        self._draw(why_not)

    def show_replay(self) -> None:
        """Mark as a replay: there is no engine to command."""
        self._recorded = True
        self.show_state(self._state)

    def showEvent(self, event: QShowEvent) -> None:
        """Query the models again: training may have changed them while the view was hidden."""
        super().showEvent(event)
        self._asked_of = None
        self.show_state(self._state)

    def _list(self) -> None:
        """Query the models once for each engine and each saved round: saved rounds can be exported."""
        about = (self._state.ready, self._state.saved_round, self._state.changed)
        if (about[0] or about[2]) is not None and about != self._asked_of:
            self._asked_of = about
            self.commanded.emit(ListModels(id=new_id()))

    def handle_refusal(self, words: str, command: str) -> bool:
        if not (command == self._asked_by if command else self._writing):
            return False
        self._asked_by, self._writing = "", False
        self._say(visible(words), "bad")
        return is_in_view(self._message)

    def _show_download(self) -> None:
        coming = self._state.downloading if self._state.phase in ("preparing", "paused") else None
        self._loading.setVisible(coming is not None)
        if coming is None:
            return
        self._bar.setRange(0, 1000)
        self._bar.setValue(round(1000 * coming.done / max(1, coming.total)))
        words = tr("%1: %2 of %3; it goes on where it was if interrupted").replace("%1", one_line(coming.model))
        self._came.say(words.replace("%2", size(coming.done)).replace("%3", size(coming.total)))

    def _draw(self, why_not: str) -> None:
        """Draw the models. Cards are reused while the models stay the same, so that a press is not lost."""
        listing = self._state.models
        self._waiting.setText(why_not or tr("Looking which models are here."))
        self._empty.setVisible(listing is None)
        if listing is None:
            return
        models = sorted(listing.models, key=lambda model: not model.active)
        if [card_shape(model) for model in models] != self._shapes:
            self._shapes = [card_shape(model) for model in models]
            self._make_cards(models)
        for model_card, model in zip(self._model_cards, models, strict=True):
            model_card.show_model(model, prompt_form_words(self._state) if model.active else "", why_not)
        self._storage.say(storage(listing.models, listing.free))

    def _make_cards(self, models: list[ModelDetails]) -> None:
        empty(self._cards)
        self._model_cards = [ModelCard(self._theme, model) for model in models]
        for model_card in self._model_cards:
            model_card.chosen.connect(lambda chosen_model: self._choose(chosen_model.name, chosen_model.folder))
            model_card.removed.connect(lambda chosen_model: self._ask(RemoveModel(id=new_id(), name=chosen_model.name)))
            model_card.export_wanted.connect(self._ask_where_to_export)
            self._cards.addWidget(model_card)

    def _choose(self, name: str, folder: str) -> None:
        self._say("")
        self._ask(ChooseModel(id=new_id(), name=name, folder=folder))

    def _ask(self, command: ChooseModel | RemoveModel | ExportModel) -> None:
        self._asked_by = command.id
        self.commanded.emit(command)

    def _use_name(self) -> None:
        if name := self._name.text().strip():
            self._choose(name, "")

    def _ask_for_folder(self) -> None:
        dialog = file_dialog(self, tr("A transformers folder"), lambda path: self._choose("", path))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.open()

    def _ask_where_to_export(self) -> None:
        if not self._here:
            self._say(tr("On the computer that the engine runs on, `waggle export FOLDER` writes it."))
            return
        file_dialog(self, tr("Export to a new folder"), self.export, saves="waggle-model").open()

    def export(self, path: str) -> None:
        self._say(tr("Writing it as it is after the step in progress."))
        self._writing = True
        self._ask(ExportModel(id=new_id(), path=path))

    def _say(self, words: str, tone: str = "text") -> None:
        say_in(self._message, words, tone)


def exported_words(exported: ModelExported) -> str:
    """What an export contains, in one or two sentences."""
    words = plural(exported.rounds, "Written to %1: %n round of training.", "Written to %1: %n rounds of training.")
    words = words.replace("%1", exported.path)
    if exported.gguf:
        words += " " + tr("Programs to chat in, such as LM Studio and Ollama, open %1 there.").replace("%1", exported.gguf)
    elif exported.no_gguf:
        words += " " + tr("Programs to chat in, such as LM Studio and Ollama, do not know models like this one.")
    if exported.not_now:
        words += f" {tr('This is the newest saved state.')} {tr_sentence(exported.not_now)}"
    return words
