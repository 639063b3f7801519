"""Live before the first question: what Waggle is doing, the progress of the first test, and when questions will appear."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame

from waggle.gui.i18n.formatting import tr
from waggle.gui.state.story.learning_story import test_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import column, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.part_bar import PartBar
from waggle.gui.widgets.text import say_in, text
from waggle.protocol.state import State

BAR_WIDE, WORDS_WIDE = 320, 620  # pixels, before text scaling
WIDE = 820  # pixels, before text scaling: of the card
AROUND, BETWEEN = 36, 10  # pixels


class NothingYet(QFrame):
    """`example_wanted`: the person wants to watch a recorded run.

    After a failure, `remedy_wanted`: what the main button says; `again_wanted`: the same once more.
    """

    example_wanted, remedy_wanted, again_wanted = Signal(), Signal(), Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._sign = Icon(theme, "live", "text_faint", 36)
        self.says = text(theme, "", "title", wrap=True)
        self.test, self.when = text(theme, "", "small", "soft"), text(theme, "", "body", "soft", wrap=True)
        for words in (self.says, self.test, self.when):
            words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.when.setMaximumWidth(theme.px(WORDS_WIDE))  # a longer line is hard to read
        self.bar = PartBar(tr("Questions answered"))
        self.bar.setFixedWidth(theme.px(BAR_WIDE))
        self._example = Button(theme, tr("Watch an example"), icon="play")
        self._example.clicked.connect(self.example_wanted)
        self.remedy = Button(theme, tr("Try again"), "primary", "play")
        self.remedy.clicked.connect(self.remedy_wanted)
        self._retry = Button(theme, tr("Try again"))
        self._retry.clicked.connect(self.again_wanted)
        self.setMaximumWidth(theme.px(WIDE))
        self.setLayout(
            column(
                row(None, self._sign, None), self.says, row(None, self.bar, None), self.test, 4,
                row(None, (self.when, 1000), None), 4,
                row(None, self.remedy, self._retry, self._example, None), gap=BETWEEN, margins=(AROUND, AROUND, AROUND, AROUND),
            )
        )  # fmt: skip

    def show_state(self, state: State, says: str, when: str, remedy: str, *, offers_again: bool) -> None:
        """`says`: what Waggle is doing; `when`: when questions will appear; `remedy`: what the main button says, if any.

        `offers_again`: beside a remedy that is another one.
        """
        failed = state.phase == "problem"
        self._sign.show_icon("warn" if failed else "live", "bad" if failed else "text_faint")
        self.says.setText(says)
        self.when.setText(when)
        self.remedy.setVisible(bool(remedy))
        if remedy:
            self.remedy.say(remedy, "play")
        self._retry.setVisible(offers_again)
        testing = state.takes_first_test
        self.bar.setVisible(testing)
        say_in(self.test, test_words(state) if testing else "", "soft")
        if testing and state.test is not None:
            self.bar.show_part(state.test.done, state.test.total)
