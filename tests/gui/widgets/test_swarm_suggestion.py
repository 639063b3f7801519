"""The suggestion of another swarm on Home and Models: it leads to a preview, is dismissed for good, and moves nobody."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from gui.pages.swarms.test_page import buttons, tell
from gui.recorded import ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.swarms.join_view import PREVIEW
from waggle.gui.pages.swarms.page import JOIN, SwarmsPage
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard
from waggle.gui.widgets.swarm_suggestion import SwarmSuggestionLine
from waggle.protocol import events
from waggle.protocol.commands import AnyCommand, ChooseSwarm
from waggle.protocol.events_swarms import KnownSwarms, SwarmDetails
from waggle.protocol.state import AnyEvent
from waggle.protocol.text.swarm_suggestion import suggestion_text
from waggle.tasks.shipped_swarms import first_steps

TellWindow = Callable[[Sequence[AnyEvent]], MainWindow]
HERE = SwarmDetails(charter="ab" * 32, name="First light", specialties=(), shipped=True, known=True, active=True)
BETTER = events.SwarmSuggestion(charter=first_steps().digest.hex(), name="First steps")
STEPS = SwarmDetails(charter=BETTER.charter, name=BETTER.name, specialties=(), shipped=True, known=True)
BEGUN = [replace(ready(round=0), better_swarm=BETTER), events.PhaseChanged(phase="contributing", round=0)]
both_pages = pytest.mark.parametrize("page", ["home", "models"])


def line_on(window: MainWindow, page: str) -> SwarmSuggestionLine:
    window.show_page(page)
    window._store.flush()
    (line,) = window.pages.built[page].findChildren(SwarmSuggestionLine)
    return line


def press(line: SwarmSuggestionLine, words: str) -> None:
    (button,) = (button for button in buttons(line) if button.text() == words)
    button.click()


@both_pages
@pytest.mark.parametrize("listed", [False, True], ids=["not listed yet", "listed"])
def test_its_link_leads_to_the_preview_of_the_swarm_and_joins_nothing(window_told: TellWindow, page: str, listed: bool) -> None:
    window, sent = window_told(BEGUN), list[AnyCommand]()
    window.commanded.connect(sent.append)
    known = KnownSwarms(swarms=(HERE, STEPS))
    if listed:
        tell(window, known)
    line = line_on(window, page)
    assert line.isVisible()
    press(line, "Preview First steps")
    assert window.page == "swarms"
    if not listed:
        tell(window, known)
    swarms = window.pages.of(SwarmsPage)
    assert (swarms._views.currentIndex(), swarms.join_view.currentIndex()) == (JOIN, PREVIEW)
    (preview,) = swarms.join_view.findChildren(SwarmPreviewCard)
    assert "Switch to First steps" in [button.text() for button in buttons(preview)]
    assert not any(isinstance(command, ChooseSwarm) for command in sent)


def test_a_person_who_turned_to_another_view_is_not_brought_back_to_the_preview(window_told: TellWindow) -> None:
    window = window_told(BEGUN)
    press(line_on(window, "home"), "Preview First steps")
    swarms = window.pages.of(SwarmsPage)
    swarms.show_part("invite")
    before = swarms._views.currentIndex()
    tell(window, KnownSwarms(swarms=(HERE, STEPS)))
    assert swarms._views.currentIndex() == before != JOIN


@both_pages
def test_dismissed_on_one_page_it_is_gone_from_both_for_good(window_told: TellWindow, page: str) -> None:
    window = window_told(BEGUN)
    settings = window._settings
    press(line_on(window, page), "Dismiss")
    assert not settings.settings.window.suggest_swarm
    for each in ("home", "models"):
        assert not line_on(window, each).isVisible()


@both_pages
def test_it_is_gone_once_the_swarm_was_chosen(window_told: TellWindow, page: str) -> None:
    window = window_told(BEGUN)
    line = line_on(window, page)
    tell(window, replace(ready(round=0), swarm="First steps", charter=BETTER.charter))
    assert not line.isVisible()


@both_pages
def test_a_model_that_the_swarm_suits_gets_none(window_told: TellWindow, page: str) -> None:
    assert not line_on(window_told([ready(round=0), BEGUN[1]]), page).isVisible()


def test_it_is_there_in_german() -> None:
    translator.use("de")
    assert tr(suggestion_text(BETTER)).startswith("Kleine Sprachmodelle lernen mehr in First steps,")
