"""Questions of a file with their answers, and what the own model answered, as plain text on single lines."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from waggle.gui.i18n.formatting import decimal, figure, one_line, plural, reward, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.layout import as_widget, column, empty, row
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.protocol.events_questions import ModelTrial, QuestionExample

MOST_EXAMPLES = 3


class QuestionExamples(QWidget):
    """A table of some questions and their answers. A line that is cut has all of it in its tooltip."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._drawn: tuple[QuestionExample, ...] = ()
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(0, 3)
        self._grid.setColumnStretch(1, 1)
        self.setLayout(self._grid)

    def show_examples(self, examples: Sequence[QuestionExample]) -> None:
        examples = tuple(examples[:MOST_EXAMPLES])
        self.setVisible(bool(examples))
        if examples == self._drawn:
            return
        self._drawn = examples
        empty(self._grid)
        for place, title in enumerate((tr("Question"), tr("Right answer"))):
            self._grid.addWidget(text(self._theme, title, "tag", "soft"), 0, place)
        for line, example in enumerate(examples, 1):
            for place, words in enumerate((example.question, example.answer)):
                self._grid.addWidget(ElidedLabel(self._theme, one_line(words), "mono"), line, place)


class TrialResult(QWidget):
    """What the own model earned with some questions of a file; or, in words, why that is not known."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._words = text(theme, "", "small", "soft", wrap=True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        self._question = ElidedLabel(theme, "", "mono", "text_soft")
        self._answer, self._reward = ElidedLabel(theme, "", "mono"), ElidedLabel(theme, "", "tag", "text_soft", right=True)
        self._example = as_widget(column(self._question, row((self._answer, 3), (self._reward, 2), gap=16), gap=2))
        self.setLayout(column(self._words, self._example, gap=4))

    def show_words(self, words: str) -> None:
        self._words.setText(words)
        self._example.hide()

    def show_trial(self, trial: ModelTrial) -> None:
        words = tr("With %1 of them your model earned %2 of 1 on average. Its best answer:")
        words = words.replace("%1", figure(trial.questions)).replace("%2", decimal(trial.mean_reward, 2))
        if trial.too_long:
            too_long = plural(
                trial.too_long,
                "%n question is longer than your model can read.",
                "%n questions are longer than your model can read.",
            )
            words = f"{too_long} {words}"
        self._words.setText(words)
        self._question.say(one_line(trial.example.question))
        self._answer.say(one_line(trial.completion.text) or tr("(nothing)"))
        self._reward.say(reward(trial.completion))
        self._example.show()


def trial_refusal_words(refusal: str) -> str:
    """Why the model did not try the questions."""
    if not refusal:
        return tr("Your model is not open now, so it did not try them.")
    return f"{tr('Your model did not try them.')} {tr(refusal)}"
