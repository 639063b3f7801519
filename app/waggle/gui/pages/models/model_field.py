"""The field in which a person searches the hub, or names a model: an address, a name, a folder or a file in one."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from waggle.core.errors import ModelError
from waggle.core.model_reference import is_reference, parse
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.text import say_in, text

LONGEST = 4096  # characters, of a path
LONGEST_SEARCH = 100


class ModelField(QWidget):
    """`searched` carries words for the hub, `named` the name and the folder of a model, one of which is empty."""

    searched = Signal(str)
    named = Signal(str, str)

    def __init__(self, theme: Theme, *, here: bool) -> None:
        """`here`: the engine runs on this computer, so that folders of this computer can be opened."""
        super().__init__()
        self._why_not = ""
        self.edit = QLineEdit()
        self.edit.setFont(theme.font("body"))
        self.edit.setAccessibleName(tr("Search Hugging Face, or name a model"))
        self.edit.setPlaceholderText(tr("Search, or paste a name, a huggingface.co address, a folder or a GGUF file"))
        self.edit.setMaxLength(LONGEST)
        self.edit.setFixedHeight(theme.size["control"])
        self.edit.returnPressed.connect(self._submit)
        self.edit.textChanged.connect(self._show_act)
        self._act = Button(theme, tr("Search"))
        self._act.clicked.connect(self._submit)
        self.folder = Button(theme, tr("Open a folder"))
        if not here:
            self.folder.hide()
        self.message_label = text(theme, "", "small", "soft", wrap=True)
        self.message_label.hide()
        self.setLayout(column(row((self.edit, 1), self._act, self.folder), self.message_label, gap=6))

    def show_state(self, why_not: str) -> None:
        """`why_not`: why no engine can be asked now."""
        self._why_not = why_not
        for button in (self._act, self.folder):
            button.setEnabled(not why_not)
            button.setToolTip(why_not)

    def show_reference(self, words: str) -> None:
        """Fill in what was dropped; the person confirms it."""
        self.edit.setText(words)
        self._act.setFocus()

    def say(self, words: str, tone: str = "soft") -> None:
        say_in(self.message_label, words, tone)

    def message(self) -> str:
        return self.message_label.text()

    def _show_act(self, words: str) -> None:
        self._act.say(tr("Use this model") if is_reference(words) else tr("Search"))
        self.say("")

    def _submit(self) -> None:
        words = self.edit.text().strip()
        if not words or self._why_not:
            return
        self.say("")
        if not is_reference(words):
            self.searched.emit(words[:LONGEST_SEARCH])
            return
        try:
            model = parse(words)
        except ModelError as error:
            self.say(visible(f"{tr(error.title)} {tr(error.advice)}"), "bad")
            return
        self.named.emit(model.name, model.folder)
