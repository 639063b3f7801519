"""The card of a file of questions in the form that creates a swarm: its title, what is in it, and how its answers are graded."""

import os

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QFrame, QLineEdit

from waggle.gui.i18n.formatting import breakable, figure, one_line, plural, tr, visible
from waggle.gui.pages.swarms.question_examples import QuestionExamples, TrialResult, trial_refusal_words
from waggle.gui.pages.swarms.question_file_draft import LONGEST_TITLE, QuestionFileDraft
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import ResponsiveRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import ComboBox, NumberField, Range
from waggle.gui.widgets.layout import FLUSH, as_widget, column, row, rule
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.events_questions import GraderOffer, QuestionsPreviewed

LARGEST_TOLERANCE = 1e9
APART = "  ·  "


class QuestionFileCard(QFrame):
    """`reread`: the file has to be read, as it is graded in another way. `opened`: its details should be shown."""

    removed = Signal()
    reread = Signal()
    opened = Signal()

    def __init__(self, theme: Theme, draft: QuestionFileDraft) -> None:
        super().__init__()
        self.setProperty("kind", "well")
        self._theme, self.draft = theme, draft
        self._file_name = one_line(os.path.basename(draft.path)) or tr("The file")
        self._offers: tuple[GraderOffer, ...] = ()
        self._title = QLineEdit()
        self._title.setFont(theme.font("strong"))
        self._title.setMaxLength(LONGEST_TITLE)
        self._title.setFixedHeight(theme.size["control"])
        self._title.setAccessibleName(tr("Title of the questions of %1").replace("%1", self._file_name))
        self._title.setPlaceholderText(tr("Title"))
        self._title.textEdited.connect(self._retitle)
        self.details = self._link(tr("Details"), tr("Details of %1"))
        self.details.clicked.connect(self.opened)
        self.remove = self._link(tr("Remove"), tr("Remove %1"))
        self.remove.clicked.connect(self.removed)
        self._summary = ElidedLabel(theme, "", "small", "text_soft")
        self._problem = text(theme, "", "small", "bad", wrap=True)
        self._hint = text(theme, "", "small", "soft", wrap=True)
        self._read_link = self._link(tr("Read it again"), tr("Read %1 again"))
        self._read_link.clicked.connect(self._read_again)
        self._lengths = ElidedLabel(theme, "", "caption", "text_faint")
        self._examples, self._trial = QuestionExamples(theme), TrialResult(theme)
        self._contents = as_widget(column(self._hint, self._examples, self._lengths, 2, rule(), 2, self._trial, gap=4))
        self._graders = row(gap=8)
        self._tolerance = NumberField(
            theme, tr("How far off an answer may be"), Range(minimum=0, maximum=LARGEST_TOLERANCE, step=0.1, whole=False)
        )
        self._tolerance.setMinimumWidth(theme.px(96))
        self._tolerance.changed.connect(lambda value: self._grade_by(self.draft.grader, float(value)))
        self._tolerance_part = as_widget(row(text(theme, tr("off by at most"), "small", "soft"), self._tolerance, gap=8))
        self._grading = ResponsiveRow(
            as_widget(row(text(theme, tr("Graded as"), "small", "soft"), self._graders, gap=8)), self._tolerance_part
        )
        self._grading.set_gap(12)
        self._body = as_widget(column(self._grading, 2, self._contents, gap=6))
        head = row((self._title, 1), self.details, self.remove, gap=8)
        correction = row(FLUSH, self._read_link, None)
        self.setLayout(column(head, self._summary, self._problem, correction, self._body, gap=6, margins=(12, 12, 12, 12)))
        self.set_open(True)
        self.show_draft()

    def _link(self, words: str, name: str) -> Button:
        link = Button(self._theme, words, "link")
        link.setAccessibleName(name.replace("%1", self._file_name))
        return link

    def set_open(self, is_open: bool, *, alone: bool = True) -> None:
        """Show the details or not. `alone`: no other file needs the room, so there is no link to them."""
        self.is_open = is_open
        self.details.setVisible(not alone and not is_open)
        self._show_body()

    def show_draft(self) -> None:
        """Show the present state of the draft."""
        draft, preview = self.draft, self.draft.preview
        if self._title.text() != draft.shown_title and (draft.title is None or not self._title.hasFocus()):
            self._title.setText(visible(draft.shown_title))
        self._summary.say(self._summary_words())
        say_in(self._problem, breakable(tr(visible(draft.problem))), "bad")
        self._read_link.setVisible(bool(draft.problem))
        if draft.offers != self._offers:
            self._offers = draft.offers
            self._make_graders()
        self._show_grading()
        if preview is not None and not preview.refusal:
            self._hint.setText(breakable(tr(visible(preview.hint))))
            self._hint.setVisible(bool(preview.hint))
            self._examples.show_examples(preview.examples)
            words = tr("The longest question has %1 characters, the longest answer %2.")
            lengths = (figure(preview.longest_question), figure(preview.longest_answer))
            self._lengths.say(words.replace("%1", lengths[0]).replace("%2", lengths[1]))
            self._show_trial(preview)
        self._show_body()

    def _show_body(self) -> None:
        draft = self.draft
        has_contents = draft.preview is not None and not draft.preview.refusal and not draft.refusal
        self._contents.setVisible(has_contents)
        self._grading.setVisible(bool(draft.offers))
        self._body.setVisible(self.is_open and (has_contents or bool(draft.offers)))

    def _summary_words(self) -> str:
        draft, preview = self.draft, self.draft.preview
        if draft.problem:
            return self._file_name
        if preview is None or not draft.is_settled:
            return tr("Reading %1.").replace("%1", self._file_name)
        parts = [plural(preview.questions, "%n question", "%n questions")]
        if preview.duplicates:
            parts.append(plural(preview.duplicates, "%n repeated", "%n repeated"))
        parts.append(plural(preview.reserved, "%n for exams", "%n for exams"))
        return APART.join([*parts, self._file_name])

    def _show_trial(self, preview: QuestionsPreviewed) -> None:
        draft = self.draft
        if draft.is_reading or draft.is_trying:
            self._trial.show_words(tr("Your model answers five of them now; a large one takes minutes. You need not wait."))
        elif preview.trial is None:
            self._trial.show_words(trial_refusal_words(preview.trial_refusal))
        else:
            self._trial.show_trial(preview.trial)

    def _make_graders(self) -> None:
        for earlier in self.findChildren(ComboBox):
            self._graders.removeWidget(earlier)
            earlier.hide()
            earlier.deleteLater()
        name = tr("How the answers of %1 are graded").replace("%1", self._file_name)
        offers = [(offer.name, tr(one_line(offer.title))) for offer in self._offers]
        self._grader = ComboBox(self._theme, name, offers)
        self._grader.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._grader.setMinimumContentsLength(10)
        self._grader.setMinimumWidth(self._theme.px(160))
        self._grader.view().setMinimumWidth(self._grader.view().sizeHintForColumn(0) + self._theme.px(32))
        self._grader.changed.connect(lambda value: self._grade_by(str(value), self.draft.tolerance))
        self._graders.addWidget(self._grader)

    def _show_grading(self) -> None:
        chosen = next((offer for offer in self._offers if offer.name == self.draft.grader), None)
        if self._offers:
            self._grader.show_value(self.draft.grader)
        self._tolerance_part.setVisible(chosen is not None and chosen.uses_tolerance)
        self._tolerance.show_value(self.draft.tolerance)

    def _grade_by(self, grader: str, tolerance: float) -> None:
        uses_tolerance = any(offer.uses_tolerance for offer in self._offers if offer.name == grader)
        self.draft.grade_by(grader, tolerance if uses_tolerance else 0.0)
        self.reread.emit()

    def _retitle(self, title: str) -> None:
        self.draft.title = title

    def _read_again(self) -> None:
        self.draft.read_again()
        self.reread.emit()
