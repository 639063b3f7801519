"""The card on the stage: a question, its tries, and what was learned from them."""

from collections import Counter

from PySide6.QtCore import QPointF, Qt, QTimer, Signal
from PySide6.QtWidgets import QBoxLayout, QFrame, QWidget

from waggle.core.peer_id import fingerprint
from waggle.core.text.round_number import round_number
from waggle.gui.charts.painted.lesson_flight import Flight, LessonFlight
from waggle.gui.charts.painted.try_chips import TryChips
from waggle.gui.i18n.formatting import ago, breakable, figure, listed, one_line, plural, shortened, tr
from waggle.gui.pages.live.other_questions import OtherQuestions, arrows_key, right_words
from waggle.gui.state.story.namesakes import namesakes
from waggle.gui.state.story.stage import Scene, Teacher, lesson_words
from waggle.gui.state.story.tries import card_tries, essence, kind_of, merged_tries, truth_of
from waggle.gui.state.story.typesetting import task_words
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import FLUSH, UNLIMITED, as_widget, column, frame, row, rule
from waggle.gui.widgets.painted_widgets import Avatar, Chip, Icon
from waggle.gui.widgets.text import ElidedLabel, text
from waggle.gui.widgets.typeset.typeset_text import TypesetText
from waggle.protocol.state import HALTED_PHASES, State

TEACHERS = 3  # peers that are shown
SIDE_BY_SIDE = 980  # pixels of width from which on the lesson stands beside the tries
USUAL_ROOM = 520  # pixels of height for which question and tries have their usual size
SMALLEST, LARGEST = 0.8, 1.8  # of what they are usually
LONGEST_QUESTION, LONGEST_ANSWER = 140, 60  # characters of a peer's example
LESSON = 256  # pixels: the width of the lesson beside the tries
SPECIALTY = 150  # pixels that the specialty's name keeps: the round beside it is cut first
AROUND = 130  # pixels of height around question and tries
QUESTION_SHARE, LEAST_QUESTION = 0.42, 150  # of the room's height, and pixels, that a question may take unless it is opened


class TeacherRow(QWidget):
    """A peer, and what was learned from it in a round: an example where its texts are here, else its specialties."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._face = Avatar(theme, 24)
        self._name, self._about = ElidedLabel(theme, role="label"), text(theme, "", "small", "soft", wrap=True)
        self._key = ElidedLabel(theme, role="caption", tone="text_faint")  # the fingerprint of the peer's key
        words = column(row(self._name, (self._key, 1), gap=8), self._about, gap=0)
        self.setLayout(row(column(self._face, None), (words, 1), gap=10))

    def place_of_face(self, within: QWidget) -> QPointF:
        """Where the peer's picture stands, in the coordinates of a widget around it."""
        return QPointF(self._face.mapTo(within, self._face.rect().center()))

    def show_teacher(self, teacher: Teacher, titles: dict[str, str], *, has_namesake: bool) -> None:
        self._face.show_identity(teacher.origin, mine=False)
        self._name.say(one_line(teacher.name) or tr("A peer"))
        self._key.say(one_line(fingerprint(teacher.origin)) if has_namesake else "")
        self._about.setText(breakable(_example_words(teacher)) or _specialty_words(teacher, titles))


def _example_words(teacher: Teacher) -> str:
    """The example's question and its right answer; empty without one."""
    card = teacher.example
    right = [answer for answer in card.completions if kind_of(answer) == "right"] if card else []
    if card is None or not right:
        return ""
    shortest = min(right, key=lambda answer: len(answer.text))
    return f"{shortened(task_words(card.question), LONGEST_QUESTION)} \u2192 {shortened(essence(shortest), LONGEST_ANSWER)}"


def _specialty_words(teacher: Teacher, titles: dict[str, str]) -> str:
    counts = Counter(tr(one_line(titles.get(dataset, dataset))) for dataset in teacher.datasets)
    named = [f"{title} \u00d7{figure(count)}" if count > 1 else title for title, count in counts.items()]
    return listed(named, len(named))


class SceneCard(QFrame):
    """Shows one scene.

    `opened`: the whole question was opened or closed. `chosen` carries the key of another question, which shall be on the stage.
    `all_wanted`: for questions that have no room here.
    """

    opened, chosen, all_wanted = Signal(), Signal(str), Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme = theme
        self.is_open = False
        self._room, self._is_wide = 0, False
        self._key = ""
        self._specialty, self._round = Chip(theme), ElidedLabel(theme, role="heading")
        self._when = ElidedLabel(theme, role="small", tone="text_faint", right=True)
        self._question, self._tries, self._others = TypesetText(theme), TryChips(theme), OtherQuestions(theme)
        self._reader = Button(theme, tr("Show question"), "link")
        self._reader.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # not by a click: the focus would hold the stage
        self._reader.clicked.connect(self._toggle)
        self._sign = Icon(theme, "learn", "accent_text", 20)
        self._lesson = text(theme, "", "strong", wrap=True)
        self._teachers = [TeacherRow(theme) for _ in range(TEACHERS)]
        self._others.chosen.connect(self.chosen)
        self._missing = Button(theme, "", "link")
        self._missing.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._missing.clicked.connect(self.all_wanted)
        self._arrows = arrows_key(theme)  # where the other questions, which explain them, have no room
        self._right = ElidedLabel(theme, role="label", tone="text_soft")  # how many of the tries are right
        self._head = row(self._round, self._specialty, self._right, (self._when, 1), self._arrows, self._missing, gap=12)
        self._body = column(self._question, row(FLUSH, self._reader, None, gap=0), 6, self._tries, 14, self._others, gap=8)
        self._foot = column(row(column(self._sign, None), (self._lesson, 1), gap=10), *self._teachers, gap=8)
        self._between = rule(), frame("line", column())  # below the tries, and beside them
        self._between[1].setFixedWidth(1)
        self._lesson_side = as_widget(column(self._between[0], self._foot, None, gap=14))
        self._sides = row((column(self._body, None), 1), self._between[1], self._lesson_side, gap=24)
        self.setLayout(column(self._head, (self._sides, 1), gap=18, margins=(24, 18, 24, 18)))
        self._flight = LessonFlight(theme, self)
        self._learned = -1  # the round whose lesson was shown last

    def set_room(self, width: int, height: int) -> None:
        """How many pixels are visible: the higher, the larger is the type; in a wide card the lesson stands beside the tries."""
        self._room = height
        wide, ways = width >= self._theme.px(SIDE_BY_SIDE), QBoxLayout.Direction
        self._is_wide = wide
        self._sides.setDirection(ways.LeftToRight if wide else ways.TopToBottom)
        self._sides.setSpacing(24 if wide else 14)
        self._lesson_side.setMinimumWidth(self._theme.px(LESSON) if wide else 0)
        self._lesson_side.setMaximumWidth(self._theme.px(LESSON) if wide else UNLIMITED)
        for line, visible in zip(self._between, (not wide, wide), strict=True):
            line.setVisible(visible)
        scale = round(min(LARGEST, max(SMALLEST, height / self._theme.px(USUAL_ROOM))), 1)
        for part in (self._question, self._tries):
            part.set_scale(scale)
        self._fit()

    def show_scene(self, scene: Scene, state: State, now: float, *, newest: bool) -> None:
        """The lesson of the `newest` round is seen as it happens."""
        card = scene.card
        if card.key != self._key:
            self._key, self.is_open = card.key, False
        self._specialty.say(tr(one_line(card.specialty)), "plain")
        self._specialty.setMinimumWidth(min(self._theme.px(SPECIALTY), self._specialty.sizeHint().width()))
        last = newest and scene.own is not None
        words = tr("Last finished round: %1") if last else tr("Round %1") if scene.own is None else tr("Round %1, finished")
        self._round.say(words.replace("%1", figure(round_number(scene.round))))
        self.setAccessibleName(f"{self._round.words()}: {self._specialty.accessibleName()}")
        right = right_words(card)
        self._right.say(right, "good" if any(kind_of(answer) == "right" for answer in card.completions) else "text_soft")
        self._right.setVisible(bool(right))
        when = ago(card.at, now)
        self._when.say("" if when == tr("now") else when)
        self._question.say(card.question)
        begun = tuple(answer for answer in card.completions if answer.judged or answer.text)
        tries = card_tries(card) if any(card.effects) else [*merged_tries(begun), *truth_of(card)]
        self._tries.show_tries(tries, going=state.phase not in HALTED_PHASES)
        self._lesson.setText(lesson_words(scene, state))
        self._sign.show_icon("peers" if scene.taught else "learn", "peer" if scene.taught else "accent_text")
        self._others.explains = any(card.effects)
        self._others.show_cards(scene.others)
        titles = {info.dataset: info.title for info in state.ready.specialties} if state.ready else {}
        several = namesakes(state.peers.values(), state.ahas)
        for place, line in enumerate(self._teachers):
            line.setVisible(place < len(scene.teachers))
            if place < len(scene.teachers):
                teacher = scene.teachers[place]
                line.show_teacher(teacher, titles, has_namesake=teacher.name.casefold() in several)
        self._fit()
        if newest and scene.own is not None and scene.round != self._learned:
            self._learned = scene.round
            QTimer.singleShot(0, self, lambda: self._flight.fly(self._flights))  # once the page is visible

    def _flights(self) -> list[Flight]:
        """The ways of the right answers, and of the examples of peers, to the sign of the lesson."""
        end = QPointF(self._sign.mapTo(self, self._sign.rect().center()))
        own = [Flight(self._tries.mapTo(self, place), end, "accent_line") for place in self._tries.right_places()]
        starts = [line.place_of_face(self) for line in self._teachers if line.isVisible()]
        theirs = [Flight(start, end, "peer") for start in starts]
        return [*own, *theirs]

    def _toggle(self) -> None:
        self.is_open = not self.is_open
        self._fit()
        self.opened.emit()

    def _fit(self) -> None:
        """Limit the question to its share of the room, unless the person opened all of it."""
        room = max(self._theme.px(LEAST_QUESTION), self._room * QUESTION_SHARE)
        self._question.set_limit(10_000 if self.is_open else room)
        self._reader.setVisible(self._question.is_cut or self.is_open)
        below = 0 if self._is_wide else self._foot.sizeHint().height()
        self._others.fit(self._room - self._theme.px(AROUND) - self._question.height() - self._tries.height() - below)
        self._reader.say(tr("Show less") if self.is_open else tr("Show question"))
        missing = self._others.missing
        self._missing.setVisible(bool(missing))
        self._arrows.setVisible(self._others.explains and self._others.isHidden())
        self._missing.say(plural(missing, "%n other question", "%n other questions"))
