"""A person's own files of questions: dropped on the window, previewed in the form, and created; hostile files cost nothing."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QObject, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from gui.answers import answer, refuse, run_coroutines, without_engine
from gui.pages.swarms.test_page import BEGUN, FIRST, OFFERS, OTHER, tell
from waggle.engine.services.own_questions import preview_file
from waggle.gui.application.main_window import MainWindow
from waggle.gui.i18n import translator
from waggle.gui.pages.context import EngineHost, PageContext
from waggle.gui.pages.swarms.own_questions import OwnQuestions
from waggle.gui.pages.swarms.page import CREATE, SwarmsPage
from waggle.gui.pages.swarms.question_file_card import QuestionFileCard
from waggle.gui.state.inputs.question_paths import ACCEPTED_FILES, question_files
from waggle.gui.state.store import StateStore
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.inputs import ComboBox
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand, CreateSwarm, PreviewQuestions
from waggle.protocol.events import ShownCompletion
from waggle.protocol.events_questions import GraderOffer, ModelTrial, QuestionExample, QuestionsPreviewed
from waggle.protocol.events_swarms import KnownSwarms, SwarmCreated

pytestmark = pytest.mark.qt_log_ignore("does not support")  # the platform without a screen says so of dialogs
TellWindow = Callable[[list[events.Event]], MainWindow]
ENDS_IN = "Waggle takes files of questions: JSON lines (.jsonl) or tables (.csv), up to four."
MIDDLE = QPoint(400, 300)
RIGHT = ShownCompletion(text="<answer>4</answer>", ended=True, judged=True, reward=1.0, reason="right")
TRIAL = ModelTrial(
    questions=5, mean_reward=0.2, example=QuestionExample(question="What is 2 + 2?", answer="4"), completion=RIGHT
)  # fmt: skip


def sums(folder: Path, name: str = "sums.jsonl", count: int = 40) -> Path:
    path = folder / name
    path.write_text("\n".join(json.dumps({"question": f"What is {i} + {i}?", "answer": 2 * i}) for i in range(count)))
    return path


class Desk:
    """A window with the commands that it sent, and an engine that answers when it is told to."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.sent = window, list[AnyCommand]()
        window.commanded.connect(self.sent.append)
        self.swarms = window.pages.of(SwarmsPage)
        self.form = self.swarms._form

    @property
    def own(self) -> OwnQuestions:
        return self.form._own

    @property
    def cards(self) -> list[QuestionFileCard]:
        return self.own._cards

    def open_form(self) -> None:
        self.window.show_page("swarms")
        self.swarms._new.click()

    def previews(self, *, trial: bool = False) -> list[PreviewQuestions]:
        run_coroutines()
        return [each for each in self.sent if isinstance(each, PreviewQuestions) and each.try_model == trial]

    def answer(self, command: PreviewQuestions, **changes: object) -> None:
        """Answer as the engine does."""
        previewed = preview_file(command.path, command.grader, command.tolerance)[0]
        tell(self.window, replace(previewed, command_id=command.id, **changes), events.CommandDone(id=command.id))
        run_coroutines()

    def drag(self, *urls: QUrl, onto: QObject | None = None, at: QPoint = MIDDLE) -> QDragEnterEvent:
        self.mime = QMimeData()
        self.mime.setUrls(list(urls))
        self.mime.setText("\n".join(url.toString() for url in urls))  # as browsers and file managers do
        event = QDragEnterEvent(
            at, Qt.DropAction.CopyAction, self.mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )  # fmt: skip
        event.ignore()
        QApplication.sendEvent(onto or self.window, event)
        return event

    def drop(self, *urls: QUrl, onto: QObject | None = None) -> None:
        """Drag and drop as the system reports it."""
        self.drag(*urls, onto=onto)
        event = QDropEvent(
            QPointF(MIDDLE), Qt.DropAction.CopyAction, self.mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )  # fmt: skip
        QApplication.sendEvent(onto or self.window, event)
        QApplication.processEvents()

    def drop_files(self, *paths: Path) -> None:
        self.drop(*(QUrl.fromLocalFile(str(path)) for path in paths))


@pytest.fixture
def desk(window_told: TellWindow) -> Desk:
    return Desk(window_told(BEGUN))


def words_in(widget: QWidget) -> str:
    labels = [label.text() for label in widget.findChildren(QLabel) if not label.isHidden()]
    return " | ".join([*labels, *(line.words() for line in widget.findChildren(ElidedLabel) if not line.isHidden())])


def test_a_dropped_file_is_read_then_tried_and_a_swarm_created_from_it(desk: Desk, tmp_path: Path) -> None:
    file = sums(tmp_path)
    desk.drop_files(file)
    assert (desk.window.page, desk.swarms._views.currentIndex(), desk.own.isVisible()) == ("swarms", CREATE, True)
    (reading,) = desk.previews()
    assert (reading.path, reading.grader, desk.previews(trial=True)) == (str(file), "", [])
    (card,) = desk.cards
    assert "Reading sums.jsonl." in words_in(card)
    assert desk.form._count.words() == "1 file of your own. Reading the questions."
    desk.answer(reading)
    words = words_in(card)
    for expected in ("40 questions", "for exams", "sums.jsonl", "What is 0 + 0?", "The longest question has 16 characters"):
        assert expected in words
    assert "Your model answers five of them now" in words
    (trial,) = desk.previews(trial=True)
    desk.form._name.setText("Ours")
    assert desk.form._create.isEnabled(), "the trial need not be waited for"
    desk.answer(trial, trial=TRIAL)
    assert "With 5 of them your model earned 0.20 of 1 on average." in words_in(card)
    assert "<answer>4</answer>" in words_in(card)
    card._title.selectAll()
    card._title.insert("Our sums")
    card._retitle(card._title.text())
    desk.form._create.click()
    create = desk.sent[-1]
    assert isinstance(create, CreateSwarm)
    assert create.specialties == ()
    assert create.files == (commands.NewQuestionFile(path=str(file), title="Our sums", grader="number"),)
    answer(desk.window, SwarmCreated(swarm=replace(OTHER, name="Ours", created=True)))
    assert desk.cards == []


def test_files_and_specialties_go_together(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    desk.answer(desk.previews()[0])
    desk.form._tabs.choose(0)
    desk.form._specialties._items()[0].setCheckState(Qt.CheckState.Checked)
    desk.form._name.setText("Ours")
    assert desk.form._count.words() == "1 file of your own, 1 specialty chosen"
    desk.form._create.click()
    create = desk.sent[-1]
    assert isinstance(create, CreateSwarm)
    assert (len(create.specialties), len(create.files)) == (1, 1)


def test_another_grader_and_a_tolerance_preview_again_and_a_stale_answer_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    first = desk.previews()[0]
    desk.answer(first)
    (card,) = desk.cards
    assert not card._tolerance_part.isHidden()
    card._tolerance.setValue(0.5)
    second = desk.previews()[-1]
    assert (second.grader, second.tolerance) == ("number", 0.5)
    box = card._grader
    box.setCurrentIndex(box.findText("Exact text"))
    box.activated.emit(box.currentIndex())
    third = desk.previews()[-1]
    assert (third.grader, third.tolerance) == ("text", 0.0), "a tolerance that is not used would be refused"
    desk.answer(second)
    assert (card.draft.grader, card.draft.is_settled) == ("text", False), "the earlier answer came too late"
    assert not desk.form._create.isEnabled()
    desk.answer(third)
    desk.answer(first)
    assert (card.draft.grader, card.draft.tolerance, card.draft.is_settled) == ("text", 0.0, True)
    assert card._tolerance_part.isHidden()
    assert box is card._grader, "the keyboard stays where it is"


def test_one_trial_runs_at_a_time_and_one_of_another_grader_does_not_count(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path), sums(tmp_path, "more.jsonl", 50))
    for reading in desk.previews():
        desk.answer(reading)
    (trial,) = desk.previews(trial=True)
    first, second = desk.cards
    first._grade_by("text", 0.0)
    desk.answer(desk.previews()[-1])
    assert desk.previews(trial=True) == [trial], "the engine is busy with the first one"
    desk.answer(trial, trial=TRIAL)
    assert first.draft.preview is not None
    assert (first.draft.preview.trial, first.draft.grader) == (None, "text")
    other = desk.previews(trial=True)[-1]
    assert other.path == second.draft.path, "it has waited longer"
    desk.answer(other, trial_refusal="There is no room for a second model. Close other programs.")
    assert "There is no room for a second model." in words_in(second)
    later = desk.previews(trial=True)[-1]
    assert (later.path, later.grader) == (first.draft.path, "text")


def test_two_answers_at_once_are_both_taken(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path), sums(tmp_path, "more.jsonl", 50))
    answers = [replace(preview_file(each.path)[0], command_id=each.id) for each in desk.previews()]
    tell(desk.window, *(event for each in answers for event in (each, events.CommandDone(id=each.command_id))))
    run_coroutines()
    assert [card.draft.is_settled for card in desk.cards] == [True, True]


def test_questions_that_are_too_long_for_the_model_are_counted(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    desk.answer(desk.previews()[0])
    desk.answer(desk.previews(trial=True)[0], trial=replace(TRIAL, too_long=7))
    assert "7 questions are longer than your model can read. With 5 of them your model earned" in words_in(desk.cards[0])


def test_what_the_model_could_not_do_is_said(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    desk.answer(desk.previews()[0])
    desk.answer(desk.previews(trial=True)[0])
    assert "Your model is not open now, so it did not try them." in words_in(desk.cards[0])


def bytes_file(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


HOSTILE = {
    "gzip.csv": (gzip.compress(b"0" * 1_000_000, mtime=0), "is compressed. Unpack it first."),
    "zstd.csv": (b"\x28\xb5\x2f\xfd" + b"\0" * 99, "is compressed. Unpack it first."),
    "zip.csv": (b"PK\x03\x04" + b"\0" * 99, "is a spreadsheet or an archive. Save the table as CSV (UTF-8)."),
    "line.jsonl": (b'{"question": "' + b"a" * 10_000_000 + b'", "answer": 1}', "line 1: it is longer than 1 MiB."),
    "zero.csv": (b"question,answer\nWhat\0?,1\n", "line 2: it contains the byte 0."),
    "columns.csv": (",".join(f"c{i}" for i in range(60)).encode() + b"\n", "line 1: it has 60 columns, more than 50."),
    "marks.csv": ("question,answer\nWhat is \u202e12?,1\n".encode(), "line 2: the question contains U+202E"),
    "twice.csv": (b"question,answer\nWhat?,1\nWhat?,2\n", "line 3: the question of line 2 has another answer here."),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_cannot_be_used_is_refused_in_words_and_nothing_is_lost(desk: Desk, tmp_path: Path, name: str) -> None:
    content, reason = HOSTILE[name]
    desk.open_form()
    desk.form._name.setText("Ours")
    desk.form._specialties._items()[0].setCheckState(Qt.CheckState.Checked)
    desk.drop_files(sums(tmp_path))
    desk.answer(desk.previews()[0])
    desk.drop_files(bytes_file(tmp_path, name, content))
    desk.answer(desk.previews()[-1])
    good, bad = desk.cards
    assert reason in bad._problem.text().replace("\u200b", "")
    assert bad._problem.isVisible()
    assert desk.form._count.words().endswith("Correct the file, or remove it.")
    assert (desk.form._name.text(), good.draft.is_settled, len(desk.form._specialties.chosen())) == ("Ours", True, 1)
    assert not desk.form._create.isEnabled()
    bad._read_link.click()
    assert desk.previews()[-1].path.endswith(name)
    bad.remove.click()
    assert desk.form._create.isEnabled()


def test_the_reason_is_german_in_german(desk: Desk, tmp_path: Path) -> None:
    translator.use("de")
    desk.drop_files(bytes_file(tmp_path, "zero.csv", HOSTILE["zero.csv"][0]))
    desk.answer(desk.previews()[0])
    german = "zero.csv, Zeile 2: sie enthält das Byte 0. Speichere die Datei als Text in UTF-8."
    assert desk.cards[0]._problem.text() == german


@pytest.mark.parametrize(
    ("language", "hint"),
    [
        ("en", '40 of 41 answers are numbers; line 41 is not: "undefined".'),
        ("de", '40 von 41 Antworten sind Zahlen; Zeile 41 ist anders: "undefined".'),
    ],
)
def test_a_slip_among_the_answers_is_a_hint(desk: Desk, tmp_path: Path, language: str, hint: str) -> None:
    translator.use(language)
    content = sums(tmp_path).read_bytes() + b'\n{"question": "What is 1 / 0?", "answer": "undefined"}'
    desk.drop_files(bytes_file(tmp_path, "slip.jsonl", content))
    desk.answer(desk.previews()[0])
    assert hint in words_in(desk.cards[0])


def test_hostile_texts_stay_plain_visible_and_narrow(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    text = "<b>bold</b>\u202e\0\n" + "x" * 5000
    hostile = QuestionsPreviewed(
        command_id=desk.previews()[0].id, path=str(tmp_path / "sums.jsonl"), title=text, questions=40, grader="number",
        examples=(QuestionExample(question=text, answer=text),) * 5, possible_graders=(GraderOffer(name="number", title=text),),
    )  # fmt: skip
    width = desk.form.width()
    answer(desk.window, hostile)
    trial = replace(TRIAL, example=hostile.examples[0], completion=replace(RIGHT, text=text, reason=text))
    answer(desk.window, replace(hostile, command_id=desk.previews(trial=True)[0].id, trial=trial))
    (card,) = desk.cards
    QApplication.processEvents()
    assert (desk.form.width(), card.width() <= desk.form._area.viewport().width()) == (width, True)
    assert all(label.textFormat() == Qt.TextFormat.PlainText for label in card.findChildren(QLabel))
    words = words_in(card)
    assert "<b>bold</b>" in words
    assert not {"\u202e", "\0"} & set(words)
    card._read_again()
    run_coroutines()
    answer(desk.window, replace(hostile, refusal=f"{'y' * 400}. {text}"))
    QApplication.processEvents()
    assert (desk.form.width(), card.width() <= desk.form._area.viewport().width()) == (width, True)
    assert not {"\u202e", "\0"} & set(words_in(card))


@pytest.mark.parametrize("onto", ["window", "system window"])
def test_the_target_is_visible_while_a_file_is_dragged(desk: Desk, tmp_path: Path, onto: str) -> None:
    overlay = desk.window.file_drop._overlay
    target = desk.window if onto == "window" else desk.window.windowHandle()
    event = desk.drag(QUrl.fromLocalFile(str(sums(tmp_path))), onto=target)
    assert (event.isAccepted(), overlay.isVisible(), overlay.geometry()) == (True, True, desk.window.rect())
    assert overlay._title.text() == "Drop it to create a swarm"
    QApplication.sendEvent(target, QDragLeaveEvent())
    assert not overlay.isVisible()
    desk.drag(QUrl.fromLocalFile(str(tmp_path / "letter.pdf")), onto=target)
    assert (overlay._title.text(), overlay._words.text()) == ("This cannot be dropped here", ENDS_IN)
    QApplication.sendEvent(target, QDragLeaveEvent())
    desk.drop(QUrl.fromLocalFile(str(tmp_path / "sums.jsonl")), onto=target)
    assert (len(desk.cards), overlay.isVisible()) == (1, False)


def test_a_file_over_a_text_field_is_not_taken_as_text_but_a_link_is(desk: Desk, tmp_path: Path) -> None:
    desk.window.show_page("swarms")
    desk.swarms.show_join()
    QApplication.processEvents()
    field, handle, overlay = desk.swarms.join_view._link, desk.window.windowHandle(), desk.window.file_drop._overlay
    place = field.mapTo(desk.window, field.rect().center())
    desk.drag(QUrl("waggle://join?charter=ab"), onto=handle, at=place)
    assert not overlay.isVisible(), "the field takes it"
    QApplication.sendEvent(handle, QDragLeaveEvent())
    desk.drag(QUrl.fromLocalFile(str(sums(tmp_path))), onto=handle, at=place)
    assert overlay.isVisible()


@pytest.mark.parametrize(
    "urls",
    [
        [QUrl("https://example.org/questions.csv")],
        [QUrl.fromLocalFile("/tmp/letter.pdf")],
        [QUrl.fromLocalFile(f"/tmp/{name}.pdf") for name in "abc"],
        [QUrl.fromLocalFile("/" + "long/" * 1200 + "questions.csv")],
    ],
    ids=["link", "letter", "three", "huge path"],
)
def test_what_cannot_be_dropped_is_said_on_any_page(desk: Desk, urls: list[QUrl]) -> None:
    desk.drop(*urls)
    assert desk.window.page == "home"
    assert desk.window.status._notice.accessibleName().endswith(ENDS_IN)
    assert desk.previews() == []


def test_a_folder_is_no_file_even_if_it_is_called_like_one(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert question_files([str(tmp_path / "folder.csv")]) == ([], f"folder.csv is no file of questions. {ACCEPTED_FILES}")
    assert question_files([]) == ([], ACCEPTED_FILES)
    assert question_files(["a.csv"])[0] == [], "not a whole path"


def test_at_most_four_files_and_each_once(desk: Desk, tmp_path: Path) -> None:
    files = [sums(tmp_path, f"{number}.jsonl") for number in range(6)]
    desk.drop_files(*files)
    assert [Path(card.draft.path).name for card in desk.cards] == ["0.jsonl", "1.jsonl", "2.jsonl", "3.jsonl"]
    assert desk.own._message.text() == "A swarm has at most four files of questions."
    assert not desk.own._more.isVisible()
    desk.drop_files(files[5])
    assert (len(desk.cards), desk.own._message.text()) == (4, "A swarm has at most four files of questions.")
    count = len(desk.previews())
    desk.drop_files(files[2])
    assert (len(desk.cards), len(desk.previews())) == (4, count + 1), "it is read again"
    assert [card.is_open for card in desk.cards] == [False, False, True, False]


def test_good_files_are_taken_and_the_others_named(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path), bytes_file(tmp_path, "photo.png", b""))
    assert len(desk.cards) == 1
    assert desk.own._message.text() == f"photo.png is no file of questions. {ENDS_IN}"


def test_a_file_is_added_by_a_dialog(desk: Desk, tmp_path: Path) -> None:
    desk.open_form()
    desk.form._tabs.choose(1)
    desk.own.add.click()
    run_coroutines()
    (dialog,) = desk.own.findChildren(QFileDialog)
    dialog.filesSelected.emit([str(sums(tmp_path))])
    dialog.close()
    assert len(desk.previews()) == 1


def test_a_file_dropped_before_the_engine_runs_is_read_when_it_does(window_told: TellWindow, tmp_path: Path) -> None:
    desk = Desk(window_told([]))
    desk.drop_files(sums(tmp_path))
    assert (desk.previews(), desk.window.page) == ([], "swarms")
    tell(desk.window, *BEGUN)
    assert len(desk.previews()) == 1


def test_a_file_is_read_again_by_the_engine_that_comes_after(desk: Desk, tmp_path: Path) -> None:
    with without_engine(desk.window):
        desk.drop_files(sums(tmp_path))
    assert desk.previews() == []
    tell(desk.window, events.Warned(title="Something.", seq=9))
    assert len(desk.previews()) == 1
    tell(desk.window, events.EngineGone(code=9, restarts=1))
    assert len(desk.previews()) == 1, "not of an engine that is gone"
    tell(desk.window, events.Preparing(part="Loading the model", done=0, parts=3), *BEGUN)
    assert len(desk.previews()) == 2
    desk.answer(desk.previews()[-1])
    assert desk.cards[0].draft.is_settled


def test_a_refused_command_is_said_in_the_card(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    refuse(desk.window, "The engine could not do that: OSError.", "The log has the details.", desk.previews()[0].id)
    assert desk.cards[0]._problem.text() == "The engine could not do that: OSError. The log has the details."
    assert not desk.window.status._notice._content[0], "once is enough"


def test_a_file_whose_trial_is_refused_can_still_be_used(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    desk.answer(desk.previews()[0])
    (trial,) = desk.previews(trial=True)
    refuse(desk.window, "The engine could not do that: OSError.", "", trial.id)
    assert desk.cards[0]._problem.text() == ""
    assert not desk.cards[0].draft.refusal
    assert "OSError" in desk.cards[0]._trial._words.text()


def test_files_of_this_computer_are_not_offered_to_an_engine_elsewhere(theme: Theme, qtbot: QtBot, tmp_path: Path) -> None:
    window = MainWindow(PageContext(theme, store=StateStore(), engine=EngineHost(name="bee@hive")))
    window.show()
    tell(window, *BEGUN)
    desk = Desk(window)
    desk.drop_files(sums(tmp_path))
    assert (window.page, desk.previews()) == ("home", [])
    assert window.status._notice.accessibleName().startswith("Your engine runs on bee@hive.")
    window.show_page("swarms")
    desk.open_form()
    desk.form._tabs.choose(1)
    assert (desk.own.add.isVisible(), desk.own._far.isVisible()) == (False, True)
    window.hide()


def test_a_swarm_that_is_set_by_hand_is_not_left_for_a_file(desk: Desk, tmp_path: Path) -> None:
    tell(desk.window, KnownSwarms(swarms=(FIRST,), offers=OFFERS, fixed="The settings name the swarm."))
    desk.drop_files(sums(tmp_path))
    assert (desk.window.page, desk.window.status._notice.accessibleName()) == ("home", "The settings name the swarm.")


def test_nothing_is_taken_during_the_questions_of_a_first_start(desk: Desk, tmp_path: Path) -> None:
    desk.window.cover(QWidget())
    assert not desk.drag(QUrl.fromLocalFile(str(sums(tmp_path)))).isAccepted()
    desk.window.uncover()
    assert desk.drag(QUrl.fromLocalFile(str(tmp_path / "sums.jsonl"))).isAccepted()


def test_everything_is_reached_by_keyboard_and_has_a_name(desk: Desk, tmp_path: Path, qtbot: QtBot) -> None:
    desk.drop_files(sums(tmp_path), sums(tmp_path, "more.jsonl"))
    for reading in desk.previews():
        desk.answer(reading)
    first, second = desk.cards
    assert (first.is_open, second.is_open) == (False, True)
    names = {
        widget.accessibleName()
        for kind in (Button, QLineEdit, ComboBox)
        for widget in second.findChildren(kind)
        if widget.focusPolicy() and widget.objectName() != "qt_spinbox_lineedit"
    }
    assert {"Title of the questions of more.jsonl", "How the answers of more.jsonl are graded", "Remove more.jsonl"} <= names
    assert "" not in names
    assert second._tolerance.accessibleName() == "How far off an answer may be"
    qtbot.keyClick(first.details, Qt.Key.Key_Space)
    assert (first.is_open, second.is_open) == (True, False)
    first.remove.setFocus()
    qtbot.keyClick(first.remove, Qt.Key.Key_Space)
    assert (len(desk.cards), desk.window.focusWidget()) == (1, desk.own._more)
    second.remove.setFocus()
    qtbot.keyClick(second.remove, Qt.Key.Key_Space)
    assert (len(desk.cards), desk.window.focusWidget()) == (0, desk.own.add)


def test_cancel_forgets_the_files(desk: Desk, tmp_path: Path) -> None:
    desk.drop_files(sums(tmp_path))
    next(button for button in desk.form.findChildren(Button) if button.text() == "Cancel").click()
    assert desk.cards == []
    desk.answer(desk.previews()[0])
    assert desk.previews(trial=True) == []
