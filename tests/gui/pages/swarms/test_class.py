"""A swarm for a class in the window: what its page does is said before, names are chosen, and the page opens on a projector."""

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from gui.answers import answer
from gui.conftest import TellWindow
from gui.recorded import ready
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.pages.swarms.create_form import CreateSwarmForm
from waggle.gui.pages.swarms.invite_view import InviteView
from waggle.gui.pages.swarms.page import SwarmsPage
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard
from waggle.gui.theme.theme import Theme
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.events_swarms import InviteWritten, KnownSwarms, SwarmCreated, SwarmDetails
from waggle.protocol.state import State, apply
from waggle.protocol.text.swarm_text import CLASS_PAGE

pytestmark = pytest.mark.qt_log_ignore("does not support")  # a minimum size, on the offscreen platform
HERE, CLASS = "ab" * 32, "cd" * 32
FIRST = SwarmDetails(charter=HERE, name="First light", specialties=(), shipped=True, known=True, active=True)
OURS = SwarmDetails(charter=CLASS, name="Class 7b", specialties=(), known=True, private=True, created=True, for_class=True)
PAGE, JOIN_PAGE = "http://127.0.0.1:8080/class", "http://192.168.178.20:8080/join"
INVITE = InviteWritten(charter=CLASS, link=f"waggle://join?charter={CLASS}", class_page=PAGE, join_page=JOIN_PAGE)


@pytest.fixture
def sent() -> list[AnyCommand]:
    """The commands that the form sent to the engine."""
    return []


@pytest.fixture
def form(theme: Theme, qtbot: QtBot, sent: list[AnyCommand]) -> CreateSwarmForm:
    form = CreateSwarmForm(theme, EngineClient(lambda command: sent.append(command) is None))
    qtbot.addWidget(form)
    form.show()
    return form


def words_of(card: SwarmPreviewCard) -> str:
    return " ".join(label.text() for label in card.findChildren(QLabel))


def test_a_class_needs_only_a_name_and_is_private(form: CreateSwarmForm, sent: list[AnyCommand]) -> None:
    form._private.setChecked(True)
    form._private.setChecked(False)
    assert form._asks.text() == "What it asks"
    form._for_class.click()
    assert form._asks.text() == "What else it asks", "a class has questions already"
    assert (form._private.isChecked(), form._private.isEnabled()) == (True, False)
    assert form._class_words.isVisible()
    assert CLASS_PAGE in [label.text() for label in form._class_words.findChildren(QLabel)], "said before it is created"
    assert not form._create.isEnabled(), "it has no name yet"
    form._name.setText("Class 7b")
    form._create.click()
    command = sent[-1]
    assert isinstance(command, commands.CreateSwarm)
    assert (command.name, command.preset, command.private, command.specialties) == ("Class 7b", "classroom", True, ())


def test_a_swarm_that_is_for_no_class_after_all_still_needs_questions(form: CreateSwarmForm) -> None:
    form._name.setText("Ours")
    form._for_class.click()
    assert form._create.isEnabled()
    form._for_class.click()
    assert not form._create.isEnabled()
    assert form._private.isEnabled()
    assert not form._class_words.isVisible()


def test_what_was_chosen_stays_when_the_window_is_built_again(form: CreateSwarmForm, theme: Theme, qtbot: QtBot) -> None:
    form._for_class.click()
    rebuilt = CreateSwarmForm(theme, EngineClient())
    qtbot.addWidget(rebuilt)
    rebuilt.take_over(form)
    assert rebuilt._for_class.isChecked()
    assert not rebuilt._private.isEnabled()
    rebuilt.reset()
    assert not rebuilt._for_class.isChecked()


def test_its_author_sees_what_the_page_does_and_chooses_a_name_before_going_there(window_told: TellWindow) -> None:
    window = window_told([ready(charter=HERE), events.PhaseChanged(phase="contributing", round=3), KnownSwarms(swarms=(FIRST,))])
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("swarms")
    swarms = window.pages.of(SwarmsPage)
    swarms.show_form()
    swarms._form._name.setText("Class 7b")
    swarms._form._for_class.click()
    swarms._form._create.click()
    assert isinstance(sent[-1], commands.CreateSwarm)
    answer(window, SwarmCreated(swarm=OURS))
    (card,) = swarms.findChildren(SwarmPreviewCard)
    assert CLASS_PAGE in words_of(card)
    (name,) = card.findChildren(QLineEdit)
    name.setText(" Ms Lee ")
    card.join.click()
    assert sent[-1] == commands.ChooseSwarm(id=sent[-1].id, charter=CLASS, member_name="Ms Lee")


def test_pupils_are_asked_for_a_name_and_told_nothing_of_a_page_that_they_do_not_serve(theme: Theme, qtbot: QtBot) -> None:
    pupils = replace(OURS, created=False, for_class=False)
    card = SwarmPreviewCard(theme, pupils, about="", leaving="First light", round_=3, why_not="")
    qtbot.addWidget(card)
    accepted: list[tuple[str, str]] = []
    card.accepted.connect(lambda charter, name: accepted.append((charter, name)))
    card.join.click()
    assert accepted == [(CLASS, "")], "without a name, the class sees the one of the key"
    assert CLASS_PAGE not in words_of(card)


def invite_view(theme: Theme, qtbot: QtBot, host: str = "", invite: InviteWritten = INVITE) -> InviteView:
    """An open invite to the class; `host`: the computer of the engine."""
    state = State()
    for event in (ready(charter=CLASS), events.PhaseChanged(phase="contributing", round=3), invite):
        state = apply(state, event)
    view = InviteView(theme, EngineClient(lambda _command: True), host)
    qtbot.addWidget(view)
    view.show()
    view.open()
    view.show_state(state)
    return view


def test_the_page_for_the_projector_opens_and_others_are_told_where_to_join(theme: Theme, qtbot: QtBot, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    view = invite_view(theme, qtbot)
    assert JOIN_PAGE in view._join_page.text()
    view._project.click()
    assert opened == [PAGE]


@pytest.mark.parametrize(
    ("host", "invite"),
    [("", replace(INVITE, class_page="", join_page="")), ("nas-kiel", INVITE)],
    ids=["no class", "the page is at another computer"],
)
def test_no_page_is_offered_that_cannot_be_opened_here(theme: Theme, qtbot: QtBot, host: str, invite: InviteWritten) -> None:
    view = invite_view(theme, qtbot, host, invite)
    assert not view._project.isVisible()
    assert view._join_page.isVisible() == bool(invite.join_page)
