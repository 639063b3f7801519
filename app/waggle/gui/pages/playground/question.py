"""A question, answered by every snapshot of the model; the person may answer first, and may compare blind."""

import asyncio
import random

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from waggle.core.errors import EngineError, NoEngine
from waggle.gui.coroutines import start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import one_line, plural, tr, visible_lines
from waggle.gui.i18n.placeholders import NO_MODEL, why_unavailable
from waggle.gui.pages.playground.answer_rows import UNJUDGED, AnswerRow, PaleRows, verdict_word
from waggle.gui.pages.playground.blind_labels import answer_label, hide_names_box, not_now_text, snapshot_label
from waggle.gui.state.story.tries import TAGS
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import ResponsiveRow, StretchRow
from waggle.gui.widgets.controls.buttons import Button, menu_button
from waggle.gui.widgets.controls.copy_button import CopyButton
from waggle.gui.widgets.controls.inputs import CodeField
from waggle.gui.widgets.draft_text import copy_drafts
from waggle.gui.widgets.layout import as_widget, card, column, empty, frame, row, rule
from waggle.gui.widgets.painted_widgets import Icon
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.gui.widgets.typeset.typeset_text import TypesetText
from waggle.protocol.commands import AskModel, ChangeSettings, PoseQuestion, new_id
from waggle.protocol.events import RIGHT, UNTAGGED, ShownCompletion
from waggle.protocol.events_playground import QuestionAnswered, QuestionPosed
from waggle.protocol.state import State

Answer = asyncio.Future[QuestionPosed] | asyncio.Future[QuestionAnswered]
FIRST_QUESTION = 7  # the number of the first question
QUESTION_SIZE, BLANK = 0.8, 40  # times the usual size of a question in large type; pixels of height of its place
JUDGED, MOST_JUDGED = 225, 440  # pixels of a row's verdict at a text size of 100%, and at most


def answers_summary(answers: QuestionAnswered) -> str:
    """What the answers show about learning, in one sentence."""
    right = [answer for answer in answers.answers if answer.completion.reward >= RIGHT]
    oldest, newest = answers.answers[0].completion, answers.answers[-1]
    if newest.completion.reward >= RIGHT and oldest.reason == UNTAGGED:
        return plural(
            right[0].rounds, "It knew this before training. After %n round it also writes it in the required form.",
            "It knew this before training. After %n rounds it also writes it in the required form.",
        )  # fmt: skip
    if newest.completion.reward >= RIGHT and oldest.reward < RIGHT and oldest.reason != UNJUDGED:
        return plural(
            right[0].rounds, "It learned this: %1 before training, right after %n round.",
            "It learned this: %1 before training, right after %n rounds.",
        ).replace("%1", verdict_word(oldest))  # fmt: skip
    if newest.completion.reward >= RIGHT:
        return tr("It gets this one right.")
    if newest.completion.reason == UNTAGGED:
        return tr("It knows this one, but does not mark it as its answer yet.")
    return tr("It was right once, and is not now.") if right else tr("It does not get this one right yet.")


def shares_answers(state: State) -> bool:
    """Whether the person's own answers are shared with the swarm."""
    chosen = state.settings
    return chosen is not None and chosen.swarm.my_answers == "yes" and state.reach != "solo"


def should_offer_sharing(state: State) -> bool:
    """Whether to offer sharing: after the person's own answer, before a choice was made, and not in a solo swarm."""
    chosen, tried = state.settings, state.tried
    answered = tried is not None and tried.mine is not None
    return chosen is not None and chosen.swarm.my_answers == "ask" and state.reach != "solo" and answered


def own_answer_outcome(tried: QuestionAnswered, epoch: int) -> str:
    """Whether the person's own answer was shared; empty if the question was not for the swarm (epoch 0)."""
    if tried.mine is None or not epoch:
        return ""
    if tried.shared:
        return tr("Your answer goes to the swarm, labelled as human. Your own model does not learn from it.")
    return tr("Your answer was not shared: it is too long, or has characters that do not travel.")


def _bare(mine: ShownCompletion) -> ShownCompletion:
    """The person's own answer as it was typed: the tags around it are the engine's."""
    before, after = TAGS
    return replace(mine, text=mine.text.removeprefix(before).removesuffix(after), start=0, length=0)


class QuestionView(QWidget):
    """Poses a question, lets the person answer first, then shows the answer of every snapshot."""

    commanded = Signal(object)

    def __init__(self, theme: Theme, client: EngineClient) -> None:
        super().__init__()
        self._theme, self._client, self._state = theme, client, State()
        self._titles: dict[str, str] = {}
        self._specialty, self._number, self._waiting = "", FIRST_QUESTION, ""
        self._answer: Answer | None = None  # that is awaited, if `_waiting` says for what
        self._posed: QuestionPosed | None = None  # the question that is shown
        self._denied: object = None  # the Ready that refused to pose a question, and the specialty
        self._drawn_from: tuple[object, bool] | None = None
        self._guess = ""  # the sentence on the person's guess
        self._recorded = False
        self._menu = menu_button(theme, tr("Specialty"), small=True)
        self._choices = QMenu(self._menu)
        self._group = QActionGroup(self._choices)
        self._menu.setMenu(self._choices)
        self._next = Button(theme, tr("Another question"), small=True)
        self._next.clicked.connect(self._pose_another)
        self._question = TypesetText(theme)
        self._question.set_scale(QUESTION_SIZE)
        self._blank = frame("well", column())  # in its place, before there is one
        self._blank.setFixedHeight(theme.px(BLANK))
        self._about = ElidedLabel(theme, tr("It appears here once training runs"), "small", "text_soft")
        self._mine = CodeField(theme, tr("Your own answer"))
        self._mine.setPlaceholderText(tr("Your answer first, if you like. It stays on this computer."))
        self._mine.setMaxLength(500)
        self._mine.returnPressed.connect(self._ask)
        self._go = Button(theme, tr("Ask the model"), "primary")
        self._go.clicked.connect(self._ask)
        self._blind = hide_names_box(theme)
        self._blind.toggled.connect(lambda _on: self._draw())
        self._verdict, self._message = text(theme, "", "title", wrap=True), text(theme, "", "small", "bad", wrap=True)
        self._rows = column(gap=6)
        self._title = ElidedLabel(theme, tr("A question it never trains on"), "heading")
        head = row(self._title, 4, (self._about, 1), self._menu, self._next)
        asking = card(head, self._question, self._blank, as_widget(row((self._mine, 1), self._go)),
                      self._sharing_row(), self._message, gap=10)  # fmt: skip
        self._truth, self._outcome = text(theme, "", "mono", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self._copy = CopyButton(theme, tr("Copy"), small=True)
        acts = row(self._blind, None, self._copy)
        self._answers = card(self._verdict, self._rows, self._truth, self._outcome, acts, self._offer_row(), gap=10)
        self._before = card(PaleRows(theme, (tr("Before any training"), tr("Now"))))
        self.setLayout(column(asking, self._answers, self._before, None, gap=12))
        for part in (self._question, self._answers, self._message):
            part.hide()

    def show_state(self, state: State) -> None:
        before, self._state = self._state, state
        why_not = self._why_not()
        self._offer()
        self._follow_sharing(before)
        self._pose_first()
        if state.posed is None:
            self._posed = None
            self._question.hide()
            self._blank.show()
            if not self._recorded:
                self._about.say(self._about_no_question(why_not))
        elif self._posed is None:
            self._show_question(state.posed)
        self._say_sharing()
        if state.tried is not None and state.tried is not before.tried:
            self._draw()
        for button in (self._next, self._menu, self._go):
            button.setEnabled(not why_not and not self._waiting)
            button.setToolTip(why_not)
        self._go.say(tr("It is thinking") if self._waiting == "ask" else tr("Ask the model"))

    def take_over(self, before: "QuestionView") -> None:
        """Take over the question, the person's answer, the model's answers, and the awaited command."""
        self._state = before._state
        self._offer()
        if before._posed is not None:
            self._show_question(before._posed)
        self._specialty, self._number, self._denied = before._specialty, before._number, before._denied
        self._menu.say(self._titles.get(self._specialty, tr("Specialty")), "down")
        if before._waiting and before._answer is not None:
            self._await(before._waiting, before._answer)
        copy_drafts(self, before)
        self._message.setText(before._message.text())
        self._message.setVisible(not before._message.isHidden())
        self._blind.setChecked(before._blind.isChecked())
        if not before._answers.isHidden():
            self._draw()

    def show_replay(self) -> None:
        """Mark as a replay: there is no engine to command."""
        self._recorded = True
        self._about.say(tr(NO_MODEL))
        self.show_state(self._state)

    def _why_not(self) -> str:
        return tr(NO_MODEL) if self._recorded else why_unavailable(self._state)

    def _about_no_question(self, why_not: str) -> str:
        """What stands in the place of a question before the first; empty if it was refused, as the message below says."""
        if why_not:
            return tr("It appears here once training runs")
        return "" if self._message.text() else tr("Fetching a question")

    def _pose_first(self) -> None:
        """Pose a first question without being asked, unless the engine refused that before."""
        state, idle = self._state, self.isVisible() and not self._waiting and not self._why_not()
        if idle and self._specialty and state.posed is None and self._denied != (state.ready, self._specialty):
            self._pose()

    def _await(self, waiting: str, answer: Answer) -> None:
        self._waiting, self._answer = waiting, answer
        start(self, self._show_answer(answer))

    async def _show_answer(self, answer: Answer) -> None:
        """Show a question or answers, or why they were refused, unless another one is awaited by then."""
        try:
            event = await asyncio.shield(answer)
        except EngineError as error:
            if answer is self._answer:
                self._show_refusal(error)
            return
        if answer is not self._answer:
            return
        self._waiting = ""
        if isinstance(event, QuestionPosed):
            self._show_question(event)
        self.show_state(self._client.state)

    def _show_refusal(self, error: EngineError) -> None:
        if self._waiting == "pose" and isinstance(error, NoEngine):
            self._waiting = ""  # a first question is posed once there is one
            return
        if self._waiting == "pose":
            self._denied = (self._client.state.ready, self._specialty)
        self._waiting = ""
        self._message.setText(refusal_words(error))
        self._message.show()
        self.show_state(self._client.state)
        announce_refusal(error, self._message, self._client)

    def _sharing_row(self) -> QWidget:
        """The note below the answer's field, visible while answers are shared."""
        words = tr("Your answer is shared when you ask the model: everybody can read it, labelled as human.")
        keep = Button(self._theme, tr("Keep my answers here"), "link")
        keep.clicked.connect(lambda: self._set_sharing("no"))
        self._sharing = as_widget(
            row(Icon(self._theme, "share", "accent_text", 16), (text(self._theme, words, "small", wrap=True), 1), keep)
        )
        self._sharing.hide()
        return self._sharing

    def _offer_row(self) -> QWidget:
        """The offer to share answers, visible once after the person's own answer."""
        words = tr("Share your answers from now on? Other models learn from them. Everybody in the swarm can read them, labelled "
                   "as human, and they cannot be taken back.")  # fmt: skip
        share = Button(self._theme, tr("Share my answers"), small=True)
        keep = Button(self._theme, tr("Keep them here"), small=True)
        share.clicked.connect(lambda: self._set_sharing("yes"))
        keep.clicked.connect(lambda: self._set_sharing("no"))
        prompt = text(self._theme, words, "small", wrap=True)
        beside = StretchRow((prompt, 1), (ResponsiveRow(share, keep), 0), gap=10)
        self._asking = frame("well", column(beside, margins=(14, 10, 14, 10)))
        self._asking.hide()
        return self._asking

    def _set_sharing(self, choice: str) -> None:
        self.commanded.emit(ChangeSettings(id=new_id(), values={"swarm.my_answers": choice}))

    def _follow_sharing(self, before: State) -> None:
        """After the choice to share changed, pose a question of the other kind, unless this one was or is being answered.

        Answers are shared for questions of an epoch only; the others are reserved questions, which nobody trains on.
        """
        state = self._state
        sharing = shares_answers(state)
        self._asking.setVisible(should_offer_sharing(state))
        idle = not self._waiting and not self._mine.text() and self._answers.isHidden()
        if idle and state.posed is not None and sharing != bool(state.posed.epoch) and sharing != shares_answers(before):
            self._pose_another()

    def _say_sharing(self) -> None:
        """Show the kind of the present question; a new choice applies from the next question on."""
        for_swarm = shares_answers(self._state) if self._posed is None else bool(self._posed.epoch)
        goes = for_swarm and shares_answers(self._state)
        self._title.say(tr("A question for the swarm") if for_swarm else tr("A question it never trains on"))
        self._sharing.setVisible(goes)
        self._mine.setPlaceholderText(tr("Your answer first, if you like") if goes
                                      else tr("Your answer first, if you like. It stays on this computer."))  # fmt: skip

    def _offer(self) -> None:
        ready = self._state.ready
        titles = {info.dataset: tr(one_line(info.title)) for info in ready.specialties} if ready else {}
        if titles == self._titles:
            return
        self._titles = titles
        self._choices.clear()
        for dataset, title in titles.items():
            action = self._choices.addAction(title.replace("&", "&&"))
            action.setCheckable(True)
            action.setActionGroup(self._group)
            action.triggered.connect(lambda _on=False, dataset=dataset: self._choose(dataset))
        if self._specialty not in titles:
            self._specialty = next(iter(titles), "")
            self._menu.say(titles.get(self._specialty, tr("Specialty")), "down")

    def _choose(self, dataset: str) -> None:
        self._specialty = dataset
        self._menu.say(self._titles[dataset], "down")
        self._pose()

    def _pose_another(self) -> None:
        self._number = random.randrange(1 << 20)  # which of many: nothing is drawn for training here
        self._pose()

    def _pose(self) -> None:
        self._message.hide()
        sharing = shares_answers(self._state)
        command = PoseQuestion(id=new_id(), specialty=self._specialty, number=self._number, to_share=sharing)
        self._await("pose", self._client.ask(command, QuestionPosed))

    def _show_question(self, posed: QuestionPosed) -> None:
        self._posed = posed
        self._specialty, self._number = posed.specialty, posed.number
        self._menu.say(self._titles.get(posed.specialty, tr(one_line(posed.title))), "down")
        self._question.say(posed.question.strip())
        self._question.show()
        self._blank.hide()
        pinned, fresh = tr("%1, question %2"), tr("%1, a new question that others take too")
        words = (fresh if posed.epoch else pinned).replace("%1", tr(one_line(posed.title)))
        self._about.say(words.replace("%2", str(posed.number)))
        self._mine.clear()
        self._drawn_from = None
        self._show_answers(answered=False)

    def _ask(self) -> None:
        if not self._go.isEnabled() or self._posed is None:
            return
        self._message.hide()
        mine, posed = self._mine.text().strip(), self._posed
        command = AskModel(id=new_id(), specialty=posed.specialty, number=posed.number, mine=mine, epoch=posed.epoch)
        self._await("ask", self._client.ask(command, QuestionAnswered))
        self.show_state(self._state)

    def _draw(self) -> None:
        tried, posed, blind = self._state.tried, self._posed, self._blind.isChecked()
        if tried is None or posed is None or self._drawn_from == (tried, blind):
            return
        if (tried.specialty, tried.number) != (posed.specialty, posed.number):
            return
        self._drawn_from = (tried, blind)
        empty(self._rows)
        answers = list(tried.answers)
        newest = answers[-1].rounds if not tried.not_now else -1
        if blind:
            random.Random(tried.number).shuffle(answers)
        rows = list[AnswerRow]()
        for i, answer in enumerate(answers):
            who = answer_label(i) if blind else snapshot_label(answer.rounds, newest)
            last = answer is tried.answers[-1]
            answer_row = AnswerRow(self._theme, who, answer.completion, hidden=blind, by_model=True, now=last)
            answer_row.guessed.connect(lambda last=last: self._show_guess(right=last))
            rows.append(answer_row)
        mine = [AnswerRow(self._theme, tr("You"), _bare(tried.mine), hidden=blind)] if tried.mine is not None else []
        between = [] if blind else rows[1:-1]
        rows = [*(one_row for one_row in rows if one_row not in between), *mine, *between]
        room = min(max(answer_row.wants for answer_row in rows), self._theme.px(JUDGED), MOST_JUDGED)
        for one_row in rows:
            one_row.set_room(room)  # all rows end alike
            if between and one_row is between[0]:
                self._rows.addSpacing(4)
                self._rows.addWidget(rule())
                self._rows.addWidget(text(self._theme, tr("In between"), "small", "soft"))
            self._rows.addWidget(one_row)
        truth = "" if blind else visible_lines(tried.truth.strip())
        self._truth.setText(truth and tr("A right answer: %1").replace("%1", truth))
        self._truth.setVisible(bool(truth))
        visible_texts = (visible_lines(posed.question.strip()), *(answer_row.as_text for answer_row in rows), self._truth.text())
        self._copy.offer("\n\n".join(filter(None, visible_texts)))
        outcome = own_answer_outcome(tried, posed.epoch if tried.shared or shares_answers(self._state) else 0)
        sentence = f"{not_now_text(tried.not_now)} {outcome}".strip()
        self._outcome.setText(sentence)
        self._outcome.setVisible(bool(sentence))
        self._verdict.setText(
            tr("Which one is the model of now?") if blind else f"{self._guess} {answers_summary(tried)}".strip()
        )
        self._guess = ""
        self._show_answers(answered=True)

    def _show_answers(self, *, answered: bool) -> None:
        """Show the answers; or where they will stand."""
        self._answers.setVisible(answered)
        self._before.setVisible(not answered)

    def _show_guess(self, *, right: bool) -> None:
        """Show whether the guess was right, and name the models."""
        self._guess = tr("You found it.") if right else tr("It was another one.")
        self._blind.setChecked(False)
