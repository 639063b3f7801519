"""The files of a person's own questions for a new swarm: add them, see what is in them, and choose how they are graded."""

import asyncio
import os
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from waggle.core.errors import EngineEnded, EngineError, NoEngine
from waggle.gui.coroutines import Task, start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import tr, visible
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.swarms.question_file_card import QuestionFileCard
from waggle.gui.pages.swarms.question_file_draft import QuestionFileDraft
from waggle.gui.state.inputs.question_paths import ENDINGS, MOST_FILES, question_files
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.file_dialogs import chosen_paths, file_dialog
from waggle.gui.widgets.layout import as_widget, column, frame, row
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.text import say_in, text
from waggle.protocol.commands import NewQuestionFile
from waggle.protocol.events_questions import QuestionsPreviewed


class OwnQuestions(QWidget):
    """Reads each file at once, and then lets the own model try one file after the other. `changed`: what is in the files.
    `opened` carries the card whose details are shown now.

    `host`: the engine runs on that computer, where files of this one are not.
    """

    changed = Signal()
    opened = Signal(object)

    def __init__(self, theme: Theme, client: EngineClient, host: str = "") -> None:
        super().__init__()
        self._theme, self._client, self._host = theme, client, host
        self._cards: list[QuestionFileCard] = []
        self._readings: dict[QuestionFileCard, Task] = {}
        self._trial: asyncio.Future[QuestionsPreviewed] | None = None  # that the engine is busy with, whether it counts or not
        self._message = text(theme, "", "small", "bad", wrap=True)
        self._message.hide()
        self.add = Button(theme, tr("Add a file of questions..."), icon="save")
        self.add.clicked.connect(lambda: start(self, self._choose_files()))
        title = text(theme, tr("Drop your file here"), "heading")
        form_words = tr("JSON lines (.jsonl) or a table (.csv): a question and its answer on each line.")
        how = text(theme, form_words, "small", "soft", wrap=True)
        for label in (title, how):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        icon = row(None, Icon(theme, "table", "text_soft", 28), None)
        self._invitation = frame(
            "drop", column(None, icon, title, how, 4, row(None, self.add, None), None, gap=6, margins=(20, 20, 20, 20))
        )
        self._invitation.setMinimumHeight(theme.px(200))
        self._more = Button(theme, tr("Add a file of questions..."), small=True)
        self._more.clicked.connect(lambda: start(self, self._choose_files()))
        self._foot = as_widget(row(self._more, None))
        self._public = text(
            theme, tr("Everybody in the swarm gets the whole file with its answers. Leave out what is secret or personal."),
            "caption", "faint", wrap=True,
        )  # fmt: skip
        far = tr("Your engine runs on %1. There, `waggle swarm create --questions FILE` makes a swarm from a file.")
        self._far = text(theme, far.replace("%1", visible(host)), "body", "soft", wrap=True)
        self._list = column(gap=8)
        self.setLayout(column(self._far, (self._invitation, 1), self._message, self._list, self._foot, self._public, None, gap=8))
        self._arrange()

    def add_files(self, paths: Sequence[str], words: str = "") -> None:
        """Add files, or read those again that are here. `words`: what to say about other files."""
        if self._host:
            return
        for path in paths:
            here = next((card for card in self._cards if _same(card.draft.path, path)), None)
            if here is not None:
                here.draft.read_again()
                self._read_again(here)
                self._open(here)
            elif len(self._cards) < MOST_FILES:
                self._open(self._add_card(QuestionFileDraft(path=path)))
            else:
                words = words or tr("A swarm has at most four files of questions.")
        say_in(self._message, words, "bad")
        self._update()

    def missing_text(self) -> str:
        """Why no swarm can be created from these files yet; empty: one can, or there are none."""
        drafts = [card.draft for card in self._cards]
        if any(draft.problem for draft in drafts):
            return tr("Correct the file, or remove it.")
        return "" if all(draft.is_settled for draft in drafts) else tr("Reading the questions.")

    def new_files(self) -> tuple[NewQuestionFile, ...]:
        return tuple(card.draft.new_file() for card in self._cards)

    def take_over(self, before: "OwnQuestions") -> None:
        """Take over the files, what is known of them, and the awaited answers."""
        self._trial = before._trial
        for earlier in before._cards:
            before._readings[earlier].cancel()
            card = self._add_card(earlier.draft)
            card.set_open(earlier.is_open, alone=len(before._cards) == 1)
        self._update()

    def reset(self) -> None:
        """Remove all files."""
        for card in self._cards[:]:
            self._remove(card)
        say_in(self._message, "", "bad")

    def _add_card(self, draft: QuestionFileDraft) -> QuestionFileCard:
        card = QuestionFileCard(self._theme, draft)
        card.removed.connect(lambda: self._remove(card))
        card.reread.connect(lambda: self._read_again(card))
        card.opened.connect(lambda: self._open(card))
        self._cards.append(card)
        self._readings[card] = start(self, self._read(card))
        self._list.addWidget(card)
        return card

    def _remove(self, card: QuestionFileCard) -> None:
        place = self._cards.index(card)
        had_focus = card.isAncestorOf(self.window().focusWidget() or self)
        self._cards.remove(card)
        self._readings.pop(card).cancel()
        self._list.removeWidget(card)
        card.hide()
        card.deleteLater()
        say_in(self._message, "", "bad")
        if self._cards:
            self._open(self._cards[min(place, len(self._cards) - 1)])
        self._update()
        if had_focus:
            (self._more if self._cards else self.add).setFocus()

    def _read_again(self, card: QuestionFileCard) -> None:
        self._readings[card].cancel()
        self._readings[card] = start(self, self._read(card))
        card.show_draft()
        self._update()

    async def _read(self, card: QuestionFileCard) -> None:
        """Have the engine read a file, then try some of its questions; again where an engine ends before it answers."""
        draft = card.draft
        while draft.is_reading or draft.is_trying:
            try:
                draft.take(await self._answer(draft))
            except (NoEngine, EngineEnded):
                draft.answer = None
                await self._client.until_heard()
            except EngineError as error:
                draft.refuse(refusal_words(error))
                card.show_draft()
                announce_refusal(error, card, self._client)
            card.show_draft()
            self.changed.emit()

    async def _answer(self, draft: QuestionFileDraft) -> QuestionsPreviewed:
        """The answer to the command of the draft's present step. Every file is read at once, but one trial runs at a time."""
        if draft.answer is None:
            await self._client.until(lambda state: state.ready is not None and not why_unavailable(state))
            while draft.is_trying and self._trial is not None and not self._trial.done():
                await asyncio.wait({self._trial})
            draft.answer = self._client.ask(draft.command(), QuestionsPreviewed)
            if draft.is_trying:
                self._trial = draft.answer
        answer = await asyncio.shield(draft.answer)
        draft.answer = None
        return answer

    def _open(self, chosen: QuestionFileCard) -> None:
        """Show the details of one file; the others are folded, so that all fit."""
        for card in self._cards:
            card.set_open(card is chosen, alone=len(self._cards) == 1)
        self.opened.emit(chosen)

    def _update(self) -> None:
        self._arrange()
        self.changed.emit()

    def _arrange(self) -> None:
        count = len(self._cards)
        self._far.setVisible(bool(self._host))
        self._invitation.setVisible(not self._host and not count)
        self._foot.setVisible(0 < count < MOST_FILES)
        self._public.setVisible(not self._host)

    async def _choose_files(self) -> None:
        dialog = file_dialog(self, tr("Add a file of questions"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilter(tr("Files of questions (%1)").replace("%1", " ".join(f"*{ending}" for ending in ENDINGS)))
        if paths := await chosen_paths(dialog):
            self.add_files(*question_files(paths))


def _same(path: str, other: str) -> bool:
    return os.path.normcase(os.path.normpath(path)) == os.path.normcase(os.path.normpath(other))
