"""The page Swarms: remembered swarms, joining, creating and inviting; nothing joins before a person says so."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QStandardPaths, Qt, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from gui.answers import answer, refuse, run_coroutines, without_engine
from gui.recorded import ready
from waggle.core.settings import SwarmSettings as SwarmSettings
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.qt_application import Application
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.coroutines import start
from waggle.gui.i18n import translator
from waggle.gui.i18n.translator import Language
from waggle.gui.pages.models.page import ModelsPage
from waggle.gui.pages.peers.page import PeersPage
from waggle.gui.pages.swarms.join_view import PREVIEW
from waggle.gui.pages.swarms.page import CREATE, INVITE, JOIN, LIST, SwarmsPage
from waggle.gui.pages.swarms.specialty_choice import OFFER, TOPICS, SpecialtyChoice, closest_level
from waggle.gui.pages.swarms.swarm_card import SwarmCard
from waggle.gui.pages.swarms.swarm_facts import members_words, trains_on
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard
from waggle.gui.pages.you.page import YouPage
from waggle.gui.state.inputs.invite_link import invite_in_file
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets import qr_code
from waggle.gui.widgets.containers.page_header import TitleRow
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import ConfirmLink
from waggle.gui.widgets.file_dialogs import file_dialog
from waggle.gui.widgets.text import ElidedLabel
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.events_swarms import (
    EndedSwarm,
    InviteRead,
    InviteWritten,
    KnownSwarms,
    SpecialtyDetails,
    SpecialtyOffer,
    StartedAgain,
    SwarmCreated,
    SwarmDetails,
)
from waggle.tasks.catalogue import catalogue_entries

TellWindow = Callable[..., MainWindow]
HERE, THERE = "ab" * 32, "cd" * 32
LINK = f"waggle://join?charter={THERE}&seed=/ip4/192.0.2.1/tcp/4001/p2p/12D3KooW"
EASY = SpecialtyDetails(title="Fractions", levels=("easy",), sample="Simplify 36/84.")
FIRST = SwarmDetails(charter=HERE, name="First light", specialties=(EASY,), shipped=True, known=True, active=True)
OTHER = SwarmDetails(charter=THERE, name="Two laptops", specialties=(EASY, EASY), known=True, members=2)
OFFERS = (
    SpecialtyOffer(dataset="bf", title="Tiny programs", topic="code", samples={"easy": "+", "hard": "+++"}),
    SpecialtyOffer(dataset="gcd", title="Divisors", topic="arithmetic", samples={"standard": "gcd of 4 and 6?"}),
)
BEGUN = [
    ready(charter=HERE, swarm="First light"),
    events.PhaseChanged(phase="contributing", round=613),
    KnownSwarms(swarms=(FIRST, OTHER), offers=OFFERS),
]


@pytest.fixture
def page(window_told: TellWindow) -> tuple[MainWindow, SwarmsPage, list[AnyCommand]]:
    window = window_told(BEGUN)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("swarms")
    return window, window.pages.of(SwarmsPage), sent


Page = tuple[MainWindow, SwarmsPage, list[AnyCommand]]


def is_previewing(swarms: SwarmsPage) -> bool:
    """Whether the page shows the preview of a swarm."""
    return (swarms._views.currentIndex(), swarms.join_view.currentIndex()) == (JOIN, PREVIEW)


def press_again(qtbot: QtBot, button: QWidget) -> None:
    """The second press of a double click."""
    qtbot.mouseDClick(button, Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(button, Qt.MouseButton.LeftButton)


def tell(window: MainWindow, *new_events: object) -> None:
    for event in new_events:
        window._store.take(event)  # type: ignore[arg-type]
    window._store.flush()


def test_what_is_known_is_asked_for_once_and_shown(page: Page) -> None:
    window, swarms, sent = page
    window.redraw()
    assert [type(command) for command in sent] == [commands.ListSwarms]
    assert swarms._line.words() == "You are in First light"
    assert len(swarms.findChildren(SwarmCard)) == 2


def test_a_link_from_outside_is_looked_at_and_joined_only_by_the_button(page: Page) -> None:
    window, swarms, sent = page
    window.show_page("home")
    window.arrivals.show_invite(LINK)
    assert window.page == "swarms"
    assert sent[-1] == commands.ReadInvite(id=sent[-1].id, link=LINK)
    answer(window, InviteRead(swarm=replace(OTHER, known=False), answered=True))
    assert is_previewing(swarms)
    assert not any(isinstance(command, commands.ChooseSwarm) for command in sent)
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    assert "Simplify 36/84." in " ".join(label.text() for label in sheet.findChildren(QLabel))
    sheet.join.click()
    assert sent[-1] == commands.ChooseSwarm(id=sent[-1].id, charter=THERE)


def test_a_link_that_came_before_the_engine_is_asked_about_when_it_is_there(page: Page) -> None:
    window, swarms, sent = page
    tell(window, events.Warned(title="The last thing that the engine before said.", seq=1000))
    with without_engine(window):
        window.arrivals.show_invite(LINK)
    assert swarms.join_view._message.text().startswith("Starting up.")
    sent_before = len(sent)
    tell(window, events.Preparing(part="Starting the answer checker", done=0, parts=4, seq=1))
    run_coroutines()
    assert [type(command) for command in sent[sent_before:]] == [commands.ReadInvite]


def test_answers_of_ones_own_are_named_where_it_says_what_is_shared_and_what_stays(page: Page) -> None:
    window, swarms, _ = page

    def words_in(kind: type[QWidget]) -> str:
        return " ".join(label.text() for widget in swarms.findChildren(kind) for label in widget.findChildren(QLabel))

    assert "answers of your own where you choose to share them" in words_in(SwarmCard)
    window.arrivals.show_invite(LINK)
    answer(window, InviteRead(swarm=replace(OTHER, known=False), answered=True))
    assert "answers of your own where you choose to share them" in words_in(SwarmPreviewCard)
    assert "what you write to it in a chat" in words_in(SwarmPreviewCard)


def test_a_link_to_the_swarm_that_one_is_in_offers_nothing_but_to_be_read(page: Page) -> None:
    window, swarms, _ = page
    window.arrivals.show_invite(LINK)
    answer(window, InviteRead(swarm=FIRST, answered=True))
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    assert [button.text() for button in sheet.findChildren(QPushButton)] == ["Done"]
    words = " ".join(label.text() for label in sheet.findChildren(QLabel))
    assert "You are in this swarm already." in words
    assert "will" not in words
    assert "Going there" not in words
    sheet.no.click()
    assert swarms._views.currentIndex() == LIST


def test_a_link_to_the_swarm_that_one_is_in_is_joined_if_it_leads_to_others(page: Page) -> None:
    """Everybody begins in First light, and alone there."""
    window, swarms, sent = page
    window.arrivals.show_invite(LINK)
    answer(window, InviteRead(swarm=replace(FIRST, members=1), answered=True, leads_to_others=True))
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    words = " ".join(label.text() for label in sheet.findChildren(QLabel))
    assert "1 computer is there now." in words
    assert "You are in this swarm, but have not met these computers yet." in words
    assert "already" not in words
    assert "come back" not in words
    assert sheet.join.text() == "Join First light"
    sheet.join.click()
    assert sent[-1] == commands.ChooseSwarm(id=sent[-1].id, charter=HERE)


def test_not_now_joins_nothing(page: Page, qtbot: QtBot) -> None:
    window, swarms, sent = page
    window.arrivals.show_invite(LINK)
    answer(window, InviteRead(swarm=OTHER, answered=False))
    qtbot.keyClick(swarms, Qt.Key.Key_Escape)
    assert swarms._views.currentIndex() == LIST
    assert [type(command) for command in sent] == [commands.ListSwarms, commands.ReadInvite]


@pytest.mark.parametrize(
    ("members", "there"),
    [(0, "Not asked yet who is there."), (1, "1 computer was there when last asked."),
     (4, "4 computers were there when last asked.")],
)  # fmt: skip
def test_of_a_swarm_that_is_known_nothing_is_said_that_nobody_asked(page: Page, members: int, there: str) -> None:
    window, swarms, _ = page
    tell(window, KnownSwarms(swarms=(FIRST, replace(OTHER, members=members))))
    next(button for button in swarms._list.findChildren(QPushButton) if button.text().startswith("Switch to ")).click()
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    assert f"{there} You know this swarm." in [label.text() for label in sheet.findChildren(QLabel)]


def test_three_examples_stand_in_a_card_the_shortest_first(page: Page) -> None:
    window, swarms, _ = page
    samples = {"Words": "Spell the word backwards: level", "Sums": "1 + 1?", "Maze": "How do you get out of here?"}
    kinds = tuple(SpecialtyDetails(title=title, levels=("easy",), sample=sample) for title, sample in samples.items())
    tell(window, KnownSwarms(swarms=(replace(FIRST, specialties=kinds),)))
    (card,) = swarms._list._active
    lines = [label.text().replace("\u200b", "") for label in card.findChildren(QLabel) if label.isVisibleTo(card)]
    assert [line for line in lines if line in samples.values()] == sorted(samples.values(), key=len)


def test_who_knows_no_other_swarm_is_led_to_one(page: Page) -> None:
    window, swarms, _ = page
    tell(window, KnownSwarms(swarms=(FIRST,), offers=OFFERS))
    for words, view in (("Create a swarm", CREATE), ("Join with an invite", JOIN)):
        next(button for button in buttons(swarms._list) if button.text() == words).click()
        assert swarms._views.currentIndex() == view
        swarms.show_list()
    assert not swarms._new.isVisible(), "it stands there once"
    assert not swarms._join.isVisible()
    tell(window, KnownSwarms(swarms=(FIRST, OTHER), offers=OFFERS))
    assert swarms._new.isVisible()
    assert swarms._join.isVisible()


def test_a_press_made_for_what_came_before_joins_nothing(page: Page, qtbot: QtBot) -> None:
    window, swarms, sent = page
    swarms.show_join(LINK)
    answer(window, InviteRead(swarm=replace(OTHER, known=False), answered=True))
    known, focused = len(sent), window.focusWidget()
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    assert focused is sheet.no
    press_again(qtbot, sheet.join)
    qtbot.keyClick(focused, Qt.Key.Key_Return)
    assert (sent[known:], swarms._views.currentIndex()) == ([], LIST)


def test_the_keyboard_stays_on_the_page_when_what_it_pressed_goes_away(page: Page, qtbot: QtBot) -> None:
    window, swarms, sent = page
    tell(window, KnownSwarms(swarms=(FIRST, OTHER)))
    go = next(button for button in swarms._list.findChildren(QPushButton) if button.text().startswith("Switch to "))
    go.setFocus()
    qtbot.keyClick(go, Qt.Key.Key_Return)
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    sheet.join.setFocus()
    qtbot.keyClick(sheet.join, Qt.Key.Key_Return)
    assert isinstance(sent[-1], commands.ChooseSwarm)
    assert window.focusWidget() is swarms
    swarms._ask_others.setFocus()
    qtbot.keyClick(swarms._ask_others, Qt.Key.Key_Return)
    assert (swarms._views.currentIndex(), window.focusWidget()) == (INVITE, swarms)
    qtbot.keyClick(swarms, Qt.Key.Key_Space)
    assert window.page == "swarms"


def test_a_link_that_is_refused_is_said_beside_it(page: Page) -> None:
    window, swarms, _ = page
    swarms.show_join("waggle://nonsense")
    refuse(window, "This is not an invite link: one begins with waggle://join?", "")
    assert swarms._views.currentIndex() == JOIN
    assert swarms.join_view._message.text().startswith("This is not an invite link")
    assert not window.status._notice._content[0], "once is enough"
    assert swarms.join_view._link.text() == "waggle://nonsense", "to be mended"


def test_an_invite_comes_from_a_file_too(page: Page, tmp_path: Path) -> None:
    window, swarms, sent = page
    (tmp_path / "an invite.waggle").write_text(f"An invite for you:\n{LINK}\n")
    for outside in (str(tmp_path / "an invite.waggle"), (tmp_path / "an invite.waggle").as_uri()):  # as file managers name it
        sent.clear()
        window.arrivals.show_invite(outside)
        assert sent[-1] == commands.ReadInvite(id=sent[-1].id, link=LINK)
    (tmp_path / "mark.waggle").write_text(f"{LINK}\n", encoding="utf-8-sig")  # as Notepad saves it
    assert invite_in_file(tmp_path / "mark.waggle") == LINK
    (tmp_path / "other").write_bytes(b"\xff\xfe no link")
    swarms.join_view.open_file(tmp_path / "other")
    assert swarms.join_view._message.text() == "There is no invite in that file."
    swarms.join_view.open_file(tmp_path / "nowhere")
    assert swarms.join_view._message.text().startswith("The file cannot be read")


def test_a_swarm_is_created_from_what_was_chosen_and_then_shown(page: Page) -> None:
    window, swarms, sent = page
    swarms._new.click()
    form = swarms._form
    assert (swarms._views.currentIndex(), form._create.isEnabled()) == (CREATE, False)
    form._name.setText(" Ours ")
    for i in range(2):
        form._specialties._items()[i].setCheckState(Qt.CheckState.Checked)
    form._specialties._level.choose(2)
    form._private.setChecked(True)
    form._create.click()
    command = sent[-1]
    assert isinstance(command, commands.CreateSwarm)
    assert (command.name, command.private) == ("Ours", True)
    assert set(command.specialties) == {("bf", "hard"), ("gcd", "standard")}
    assert not form._create.isEnabled(), "one press is one swarm"
    refuse(window, "The disk is full.", "")
    assert (form._problem.text(), form._create.isEnabled()) == ("The disk is full.", True)
    form._create.click()
    answer(window, SwarmCreated(swarm=replace(OTHER, name="Ours", created=True)))
    assert is_previewing(swarms)


def test_what_was_typed_of_a_swarm_is_there_until_it_is_created_or_given_up(page: Page, qtbot: QtBot) -> None:
    window, swarms, sent = page
    form = swarms._form
    swarms._new.click()
    form._name.setText("Ours")
    form._specialties._items()[0].setCheckState(Qt.CheckState.Checked)
    assert not swarms._new.isVisible(), "its word is that of the form's own button"
    qtbot.keyClick(form._name, Qt.Key.Key_Escape)
    for leave in (lambda: None, swarms._join.click, partial(window.show_page, "playground")):
        leave()
        window.show_page("swarms")
        swarms.show_list()
        swarms._new.click()
        assert (form._name.text(), len(form._specialties.chosen()), window.focusWidget()) == ("Ours", 1, form._name)
    form._create.click()
    swarms.show_list()
    swarms._new.click()
    assert (form._create.isEnabled(), form._count.words()) == (True, "1 specialty chosen"), "no answer is waited for"
    next(button for button in form.findChildren(Button) if button.text() == "Cancel").click()
    swarms._new.click()
    assert (form._name.text(), form._specialties.chosen()) == ("", [])
    swarm_commands = [type(command) for command in sent if not isinstance(command, commands.PoseQuestion)]
    assert swarm_commands == [commands.ListSwarms, commands.CreateSwarm]


def test_what_a_swarm_still_lacks_is_said(page: Page) -> None:
    window, swarms, _ = page
    form = swarms._form
    many = tuple(replace(OFFERS[0], dataset=f"bf{i}", title=f"Tiny programs {i}") for i in range(65))
    tell(window, KnownSwarms(swarms=(FIRST, OTHER), offers=many))
    assert form._count.words() == "Give it a name, and choose at least one specialty or add questions of your own."
    for i in range(65):
        form._specialties._items()[i].setCheckState(Qt.CheckState.Checked)
    assert form._count.words() == "65 specialties chosen. At most 64 specialties."
    form._specialties._items()[0].setCheckState(Qt.CheckState.Unchecked)
    assert (form._count.words(), form._create.isEnabled()) == ("64 specialties chosen. Give it a name.", False)
    form._name.setText("Ours")
    assert (form._count.words(), form._create.isEnabled()) == ("64 specialties chosen", True)


def test_the_question_of_the_kind_that_was_chosen_last_is_shown(page: Page) -> None:
    form = page[1]._form
    for i in range(2):
        form._specialties._items()[i].setCheckState(Qt.CheckState.Checked)
        assert form._specialties._about.words().startswith(form._specialties._items()[i].text().split("  ·")[0])


def test_a_kind_of_question_is_found_by_what_it_is_about_in_german(page: Page) -> None:
    assert {offer.topic for offer in catalogue_entries()} == set(TOPICS)
    translator.use("de")
    window, swarms, _ = page
    tell(window, KnownSwarms(swarms=(FIRST,), offers=(replace(OFFERS[0], topic="algorithms"),)))
    choice = swarms._form._specialties
    for words, rows in (("algorithm", ["Algorithmen", "Winzige Programme"]), ("winz", ["Algorithmen", "Winzige Programme"]),
                        ("geometrie", [])):  # fmt: skip
        choice._filter.setText(words)
        assert shown_rows(choice) == rows


def shown_rows(choice: SpecialtyChoice) -> list[str]:
    return [choice._filtered.index(place, 0).data() for place in range(choice._filtered.rowCount())]


def test_specialties_stand_under_their_topics_and_a_topic_is_not_chosen(page: Page) -> None:
    window, swarms, _ = page
    offers = tuple(
        replace(OFFERS[0], title=title, topic=topic)
        for title, topic in (("Sudoku", "games"), ("Sums", "arithmetic"), ("Chess", "chess"), ("Maze", "games"))
    )
    tell(window, KnownSwarms(swarms=(FIRST,), offers=offers))
    choice = swarms._form._specialties
    assert shown_rows(choice) == ["Arithmetic", "Sums", "Games", "Maze", "Sudoku", "chess", "Chess"], "unknown topics come last"
    choice._filter.setText("sud")
    assert shown_rows(choice) == ["Games", "Sudoku"]
    heading = choice._filtered.index(0, 0)
    assert not choice._filtered.flags(heading) & (Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable)
    assert choice._list.currentIndex().data(OFFER) is not None


def test_kinds_of_questions_stand_in_the_order_of_their_names_in_german(page: Page) -> None:
    translator.use("de")
    window, swarms, _ = page
    offers = tuple(replace(OFFERS[0], title=title) for title in ("Maze", "Sums", "Dice", "Grids"))
    tell(window, KnownSwarms(swarms=(FIRST,), offers=offers))
    names = [item.text().split("  ·")[0] for item in swarms._form._specialties._items()]
    assert names == ["Labyrinth", "Raster", "Summen", "Würfel"]


WHY = (
    "Its questions had false answers, and members now agree on levels that were checked. "
    "Create it anew and send its members a new invite."
)
ENDED = (EndedSwarm(charter="0a" * 32, name="Cellar\nlab", why=WHY), EndedSwarm(charter="0b" * 32, name="Class 7b", why=WHY))


@pytest.mark.parametrize(
    ("language", "words", "forget"),
    [
        ("en", ["Ended", f"{WHY} Your model, its progress and your name stay."], "Forget Class 7b"),
        (
            "de",
            [
                "Beendet",
                "Zu seinen Fragen gehörten falsche Antworten, und Mitglieder einigen sich jetzt auf geprüfte Stufen. "
                "Lege ihn neu an und schicke seinen Mitgliedern eine neue Einladung. "
                "Dein Modell, sein Fortschritt und dein Name bleiben.",
            ],
            "Class 7b vergessen",
        ),
    ],
)
def test_swarms_that_ended_stand_below_the_others_with_the_reason_once(
    page: Page, language: Language, words: list[str], forget: str
) -> None:
    translator.use(language)
    window, swarms, sent = page
    tell(window, KnownSwarms(swarms=(FIRST, OTHER), offers=OFFERS, ended=ENDED))
    labels = [label.text() for label in swarms._list.findChildren(QLabel)]
    assert [labels.count(line) for line in words] == [1] * len(words)
    assert {"Cellar lab", "Class 7b"} <= {label.words() for label in swarms._list.findChildren(ElidedLabel)}
    buttons = {button.accessibleName(): button for button in swarms._list.findChildren(QPushButton)}
    buttons[forget].click()
    assert sent[-1] == commands.ForgetSwarm(id=sent[-1].id, charter="0b" * 32)


def test_all_levels_of_a_kind_of_question_can_be_chosen(page: Page) -> None:
    _, swarms, sent = page
    form = swarms._form
    swarms._new.click()
    form._name.setText("Ours")
    for i in range(2):
        form._specialties._items()[i].setCheckState(Qt.CheckState.Checked)
    form._specialties._level.choose(3)
    form._create.click()
    create = sent[-1]
    assert isinstance(create, commands.CreateSwarm)
    assert sorted(create.specialties) == [("bf", "easy"), ("bf", "hard"), ("gcd", "standard")]


def test_a_swarm_of_several_levels_names_none() -> None:
    levels = SpecialtyDetails(title="Fractions", levels=("easy", "hard"))
    assert trains_on(replace(OTHER, specialties=(EASY,))) == "Fractions (easy)"
    assert trains_on(replace(OTHER, specialties=(levels,))) == "Fractions"
    assert trains_on(replace(OTHER, specialties=(EASY, replace(EASY, levels=("hard",))))) == "Fractions, Fractions"


def test_the_closest_difficulty_is_taken() -> None:
    assert [closest_level(OFFERS[0], difficulty) for difficulty in ("easy", "standard", "hard")] == ["easy", "easy", "hard"]


def every_offer() -> tuple[SpecialtyOffer, ...]:
    """What the engine offers."""
    return tuple(
        SpecialtyOffer(
            dataset=each.dataset, title=each.title, topic=each.topic,
            samples={name: level.sample for name, level in each.levels.items()},
        )
        for each in catalogue_entries()
    )  # fmt: skip


@pytest.mark.parametrize("size", [(1024, 600), (1440, 900), (2560, 1440)])
def test_the_form_scrolls_as_a_whole_or_in_its_list_but_not_in_both(page: Page, size: tuple[int, int]) -> None:
    window, swarms, _ = page
    every = every_offer()
    tell(window, KnownSwarms(swarms=(FIRST, OTHER), offers=every))
    swarms.show_form()
    window.resize(*size)
    screenshot_when_still(window)
    form, choice = swarms._form, swarms._form._specialties._list
    bars = [area.verticalScrollBar().isVisible() for area in (form._area, choice)]
    assert bars == {(1024, 600): [True, False], (1440, 900): [False, True], (2560, 1440): [False, False]}[size]
    for width in range(size[0], size[0] + 4):  # where the columns fill the list exactly, too
        window.resize(width, size[1])
        screenshot_when_still(window)
        places = [choice.model().index(place, 0) for place in range(choice.model().rowCount())]
        lines = {choice.visualRect(place).y() for place in places}
        assert len(lines) == choice._lines()
        assert len(lines) < len(every) * 0.7, "in columns"
        assert max(choice.visualRect(place).right() for place in places) <= choice.viewport().width(), "nothing is cut off"
        assert choice.viewport().height() % choice.sizeHintForRow(0) == 0, "no line is cut through"


def test_the_arrow_keys_lead_to_every_specialty_of_a_form_that_scrolls_as_a_whole(page: Page) -> None:
    window, swarms, _ = page
    tell(window, KnownSwarms(swarms=(FIRST, OTHER), offers=every_offer()))
    swarms.show_form()
    window.resize(1024, 600)
    screenshot_when_still(window)
    choice = swarms._form._specialties._list
    choice.setFocus()
    for _ in range(choice.model().rowCount()):
        QTest.keyClick(choice, Qt.Key.Key_Down)
    row = choice.visualRect(choice.currentIndex())
    assert choice.viewport().visibleRegion().contains(row.center())
    assert choice.currentIndex().row() > choice.model().rowCount() // 2


def test_what_is_typed_is_set_in_code_type_and_what_is_asked_for_is_not(page: Page, theme: Theme) -> None:
    field = page[1].join_view._link
    assert field.font().family() == theme.font("body").family()
    field.setText("waggle://join?x")
    assert field.font().family() == theme.font("mono").family()
    field.clear()
    assert field.font().family() == theme.font("body").family()


def test_an_invite_is_shown_for_the_swarm_of_now_only(page: Page, qapp: QApplication, tmp_path: Path) -> None:
    window, swarms, sent = page
    swarms._ask_others.click()
    assert (type(sent[-1]), swarms._views.currentIndex()) == (commands.WriteInvite, INVITE)
    tell(window, InviteWritten(charter=THERE, link="waggle://join?other"))
    assert swarms._invite_view._link == ""
    assert swarms._invite_view._field.placeholderText() == "Preparing the link: a few seconds."
    tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works from anywhere."))
    swarms._invite_view._copy.click()
    assert qapp.clipboard().text() == LINK
    swarms._invite_view.save(tmp_path / "invite.waggle")
    assert (tmp_path / "invite.waggle").read_text() == f"{LINK}\n"
    assert os.name == "nt" or not (tmp_path / "invite.waggle").stat().st_mode & 0o077, "it may hold the key of a private swarm"
    window.redraw()
    assert window.status._notice.accessibleName() == f"Saved to {tmp_path / 'invite.waggle'}"


def test_whoever_listens_hears_that_the_link_is_made_and_ready(page: Page, announcements: list[str]) -> None:
    window, swarms, _ = page
    announcements.clear()
    swarms._ask_others.click()
    window.redraw()
    tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works from anywhere."))
    tell(window, InviteWritten(charter=HERE, link=f"{LINK}9", reach="It works from anywhere."))
    assert announcements == [
        "Invite someone to First light. Preparing the link: a few seconds.",
        "Invite someone to First light. The link is ready: copy it, or save it as a file. Its QR code is on the screen.",
    ]
    assert swarms._invite_view._field.placeholderText() == "", "it would be read out behind the link"
    swarms._invite_view.closed.emit()
    swarms._ask_others.click()
    assert announcements[2:] == announcements[1:2], "again when it is opened again"


def test_an_invite_that_is_too_long_for_a_code_is_shown_copied_and_saved_as_a_link(page: Page, qapp: QApplication) -> None:
    window, swarms, _ = page
    swarms._ask_others.click()
    invitation, long = swarms._invite_view, LINK + "9" * (4096 - len(LINK))
    tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works from anywhere."))
    assert (invitation._code.isVisible(), invitation._how.text()[:28]) == (True, "Send the link, or a picture ")
    tell(window, InviteWritten(charter=HERE, link=long, reach="It works from anywhere."))
    assert qr_code.modules(long) == ()
    assert (invitation._code.isVisible(), invitation._field.text()) == (False, long)
    assert invitation._how.text().startswith("This link is too long for a QR code.")
    assert (invitation._copy.isEnabled(), invitation._save.isEnabled()) == (True, True)
    invitation._copy.click()
    assert qapp.clipboard().text() == long
    tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works from anywhere."))
    assert invitation._code.isVisible()


def test_an_invite_is_written_anew_once_others_can_reach_this_computer_in_another_way(page: Page) -> None:
    window, swarms, sent = page
    swarms._ask_others.click()
    tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works on your network only."))
    reached = events.ReachChanged(reach="connected", peers=1, address="/ip4/192.0.2.9/tcp/4001", way="direct")

    def invites_asked_for() -> int:
        return sum(isinstance(command, commands.WriteInvite) for command in sent)

    assert invites_asked_for() == 1
    tell(window, reached)
    assert (invites_asked_for(), swarms._invite_view._link) == (2, LINK)
    tell(window, InviteWritten(charter=HERE, link=f"{LINK}9", reach="It works from anywhere."), reached)
    assert (invites_asked_for(), swarms._invite_view._link) == (2, f"{LINK}9")
    tell(window, StartedAgain(reason="Memory is short."), ready(charter=HERE, swarm="First light", round=700))
    assert invites_asked_for() == 2, "nobody can be asked before the engine is ready"
    tell(window, events.PhaseChanged(phase="contributing", round=700))
    assert invites_asked_for() == 3
    swarms.show_list()
    tell(window, reached)
    assert invites_asked_for() == 3


def test_what_was_copied_is_said_for_a_moment_and_not_of_another_link(page: Page, qapp: QApplication) -> None:
    window, swarms, _ = page
    swarms._ask_others.click()
    tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works from anywhere."))
    button = swarms._invite_view._copy
    button.click()
    assert (qapp.clipboard().text(), button.text(), button._end.isActive()) == (LINK, "Copied", True)
    button._end.timeout.emit()
    assert button.text() == "Copy link"
    button.click()
    tell(window, InviteWritten(charter=HERE, link=f"{LINK}9", reach="It works from anywhere."))
    assert (button.text(), button._end.isActive()) == ("Copy link", False)


def test_while_the_engine_goes_elsewhere_nothing_can_be_asked(page: Page) -> None:
    window, swarms, _ = page
    tell(window, StartedAgain(reason="Going to Two laptops."))
    assert not swarms._ask_others.isEnabled()
    assert swarms._line.words().startswith("Waggle is going there")


def test_settings_that_leave_no_choice_are_said(page: Page) -> None:
    window, swarms, _ = page
    tell(window, KnownSwarms(swarms=(FIRST, OTHER), fixed="swarm.charter names the swarm."))
    assert swarms._line.words() == "swarm.charter names the swarm"
    assert (swarms._new.isEnabled(), swarms._ask_others.isEnabled()) == (False, True), "who may not leave may invite"


def test_where_there_is_this_computer_only_nobody_is_invited(page: Page) -> None:
    window, swarms, _ = page
    assert swarms._ask_others.isVisible()
    edge = _right_edge(swarms._ask_others, swarms)
    tell(window, events.ReachChanged(reach="solo", peers=0))
    assert not swarms._ask_others.isVisible()
    for _ in range(3):  # a head in a head
        QApplication.processEvents()
    assert _right_edge(swarms._new, swarms) == edge, "no room is kept for what never comes"


def _right_edge(button: QWidget, page: QWidget) -> int:
    return button.mapTo(page, QPoint(button.width(), 0)).x()


def test_words_of_a_stranger_stay_words(page: Page) -> None:
    window, swarms, _ = page
    window.arrivals.show_invite(LINK)
    answer(window, InviteRead(swarm=replace(OTHER, name="<b>\u202eevil</b>", known=False), answered=True))
    (sheet,) = swarms.findChildren(SwarmPreviewCard)
    assert sheet.join.text() == "Join <b>\ufffdevil</b>"
    theme = window.pages.of(SwarmsPage).theme
    sheet = SwarmPreviewCard(
        theme, replace(OTHER, name="Q&A club", known=False), about="", leaving="", round_=1, why_not=""
    )  # fmt: skip
    assert sheet.join.text() == "Join Q&&A club", "which Qt shows as one sign"
    assert sheet.join.shortcut().isEmpty(), "a stranger's name is no key"
    assert sheet.join.accessibleName() == "Join Q&A club"
    assert trains_on(replace(OTHER, specialties=(SpecialtyDetails(title="a\nb"),))) == "a b"


@pytest.mark.parametrize("url", [QUrl(LINK), QUrl.fromLocalFile("/somewhere/invite.waggle")])
def test_what_the_system_asks_to_open_is_passed_on(qapp: Application, url: QUrl, qtbot: QtBot) -> None:
    with qtbot.waitSignal(qapp.invite_opened) as invite:
        QApplication.sendEvent(qapp, QFileOpenEvent(url))
    assert invite.args == [LINK if url.scheme() == "waggle" else "/somewhere/invite.waggle"]


def test_a_code_has_whole_modules_and_three_corners() -> None:
    code = qr_code.modules(LINK)
    corner = tuple(line[:7] for line in code[:7])
    assert len(code) == len(code[0])
    assert corner == tuple(line[-7:][::-1] for line in code[:7])
    assert qr_code.modules("") == ()


def test_a_card_of_a_swarm_stays_while_members_come_and_go(page: Page) -> None:
    window, swarms, _ = page
    tell(window, KnownSwarms(swarms=(FIRST, OTHER)))
    go = next(button for button in swarms._list.findChildren(QPushButton) if button.text().startswith("Switch to "))
    go.setFocus()
    peer = events.PeerInfo(id="p", name="Brisk Otter", received=3)
    tell(window, events.PeerChanged(peer=peer), KnownSwarms(swarms=(FIRST, OTHER), seq=9))
    assert window.focusWidget() is go
    assert swarms._list._active[0]._members.words() == "2 members, you included"


def buttons(widget: QWidget) -> list[QPushButton]:
    return widget.findChildren(QPushButton)


def test_whoever_looks_at_the_peers_can_invite_one(page: Page) -> None:
    window, swarms, sent = page
    window.show_page("peers")
    window.pages.of(PeersPage)._invite.click()
    assert window.page == "swarms"
    assert swarms._views.currentIndex() == INVITE
    assert isinstance(sent[-1], commands.WriteInvite)


def test_a_form_that_is_being_filled_is_not_replaced_by_what_was_looked_at_before(page: Page) -> None:
    window, swarms, _ = page
    window.arrivals.show_invite(LINK)
    swarms._new.click()
    swarms._form._name.setText("Ours")
    answer(window, InviteRead(swarm=replace(OTHER, known=False), answered=True))
    assert swarms._views.currentIndex() == CREATE
    assert swarms._form._name.text() == "Ours"


def test_a_link_that_was_left_is_not_asked_about_once_the_engine_is_there(page: Page) -> None:
    window, swarms, sent = page
    with without_engine(window):
        window.arrivals.show_invite(LINK)
    swarms.show_list()
    sent_before = len(sent)
    tell(window, events.Preparing(part="Starting the answer checker", done=0, parts=4, seq=7))
    run_coroutines()
    assert not any(isinstance(command, commands.ReadInvite) for command in sent[sent_before:])


def test_a_swarm_that_others_can_name_again_is_forgotten_at_a_press(page: Page) -> None:
    _, swarms, sent = page
    swarms.findChildren(ConfirmLink)[-1].click()
    assert sent[-1] == commands.ForgetSwarm(id=sent[-1].id, charter=THERE)


@pytest.mark.parametrize(
    ("kind", "question"), [({"private": True}, "Forget its key for good"), ({"created": True}, "Forget it for good")]
)
def test_the_only_way_back_is_not_forgotten_at_one_press(page: Page, qtbot: QtBot, kind: dict[str, bool], question: str) -> None:
    window, swarms, sent = page
    tell(window, KnownSwarms(swarms=(FIRST, replace(OTHER, **kind)), offers=OFFERS))
    window.activateWindow()
    screenshot_when_still(window)
    (forget,) = (link for link in swarms.findChildren(ConfirmLink) if link.isVisible())
    known = len(sent)

    def forget_state() -> tuple[str, bool]:
        labels = [label.text() for label in swarms.findChildren(QLabel) if label.isVisible()]
        return forget.text(), "Without an invite to it you can never come back." in labels

    qtbot.mouseClick(forget, Qt.MouseButton.LeftButton)
    press_again(qtbot, forget)
    assert (forget_state(), sent[known:]) == ((question, True), [])
    assert forget.accessibleName() == f"{question}: Two laptops"
    swarms._join.setFocus()
    assert forget_state() == ("Forget", False)
    forget.click()
    window.show_page("home")
    window.show_page("swarms")
    assert (forget_state(), sent[known:]) == (("Forget", False), [])
    forget.click()
    forget.click()
    assert sent[known:] == [commands.ForgetSwarm(id=sent[-1].id, charter=THERE)]


@pytest.mark.parametrize("size", [(1280, 800), (1024, 640)])
def test_the_actions_stand_beside_the_title_in_german_too(window_told: TellWindow, size: tuple[int, int]) -> None:
    translator.use("de")
    try:
        window = window_told(BEGUN, *size)
        window.show_page("swarms")
        screenshot_when_still(window)
        (top,) = window.pages.of(SwarmsPage).findChildren(TitleRow)
        assert top._actions.geometry().top() < top._title.geometry().bottom()
        assert all(button.width() >= button.sizeHint().width() for button in top.findChildren(Button))
    finally:
        translator.use("en")


def test_how_far_an_invite_reaches_is_read_in_the_windows_language(page: Page) -> None:
    window, swarms, _ = page
    swarms._ask_others.click()
    translator.use("de")
    try:
        tell(window, InviteWritten(charter=HERE, link=LINK, reach="It works from anywhere."))
        assert swarms._invite_view._reach.text().startswith("Der Link funktioniert von überall.")
    finally:
        translator.use("en")


def test_files_of_a_person_are_looked_for_where_a_person_keeps_them(theme: Theme, qtbot: QtBot, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path / "anna"))
    (tmp_path / "anna").mkdir()
    (tmp_path / "program").mkdir()
    monkeypatch.chdir(tmp_path / "program")
    above = Button(theme, "")
    qtbot.addWidget(above)
    QFileDialog(above).setDirectory(str(tmp_path / "program"))  # as at first: Qt remembers where a dialog was last
    dialog = file_dialog(above, "Save", saves="invite.waggle")
    on_windows = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)  # which asks no variable
    assert Path(dialog.directory().path()) == (Path(on_windows) if sys.platform == "win32" else tmp_path / "anna")


def test_of_an_engine_elsewhere_nothing_is_chosen_by_paths_of_this_computer(window_told: TellWindow) -> None:
    window = window_told([ready(at=1.0)])  # without a home
    window.show_page("models")
    window.show_page("you")
    window.pages.of(YouPage)._open("backup")
    assert not window.pages.of(YouPage)._identity._choose.isVisible()
    assert window.pages.of(YouPage)._identity._path.placeholderText() == "Its whole path on the computer that the engine runs on"
    start(window, window.pages.of(ModelsPage)._ask_where_to_export())
    run_coroutines()
    assert "waggle export" in window.pages.of(ModelsPage)._message.text()
    assert window.pages.of(ModelsPage)._field.folder.isHidden()
    assert window.findChildren(QFileDialog) == []


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"shipped": True}, "no members seen yet"),
        ({"shipped": True, "members": 3}, "3 members when last asked"),
        ({"shipped": True, "active": True}, ""),
        ({"created": True}, ""),
    ],
)
def test_who_is_in_another_swarm_is_said_as_far_as_it_is_known(qapp: QApplication, about: dict[str, Any], words: str) -> None:
    assert members_words(SwarmDetails(charter="ab", name="First light", specialties=(), **about), None) == words
