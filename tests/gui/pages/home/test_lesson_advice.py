"""Test what Home says while nothing is learned: a sentence, and links that lead to what helps."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from gui.recorded import ready
from waggle.gui.application.main_window import MainWindow
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.gui.pages.home.lesson_advice import LessonAdvice
from waggle.gui.pages.home.page import HomePage
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.pages.settings.rows import SECTIONS
from waggle.gui.widgets.controls.buttons import Button
from waggle.protocol import events
from waggle.protocol.state import RECALLED, AnyEvent
from waggle.protocol.text.lesson_diagnosis import DIAGNOSES, PAY_FORM, STARTER_WITHOUT_TAG

TellWindow = Callable[[Sequence[AnyEvent]], MainWindow]
REMEDIES = (PAY_FORM, *(remedy for why in DIAGNOSES.values() for remedy in why.remedies))


def rounds(count: int, taught: int = 0) -> list[AnyEvent]:
    """Rounds whose answers are all wrong."""
    summary = events.RoundSummary(round=0, at=1.0, reward=0.0, solved=0.0, seconds=1.0, completions=8, readable=8, taught=taught)
    return [events.RoundCompleted(summary=replace(summary, round=number)) for number in range(count)]


def advice_of(window: MainWindow) -> LessonAdvice:
    (advice,) = window.pages.of(HomePage).hero.findChildren(LessonAdvice)
    return advice


def started() -> list[AnyEvent]:
    return [ready(round=0), events.PhaseChanged(phase="contributing", round=0)]


def test_home_says_why_nothing_was_learned_and_a_link_leads_to_what_helps(window_told: TellWindow) -> None:
    window = window_told([*started(), *rounds(RECALLED)])
    advice = advice_of(window)
    assert advice.isVisible()
    links = {link.text(): link for link in advice.findChildren(Button) if link.isVisible()}
    assert list(links) == ["Find easier questions", "Ask it in another way", "Choose another model"]
    links["Ask it in another way"].click()
    assert window.page == "settings"
    settings_page = window.pages.of(SettingsPage)
    assert [row.key for row in settings_page._rows() if row.has_control_focus] == ["model.prompt_form"]
    window.show_page("home")
    links["Choose another model"].click()
    assert window.page == "models"


@pytest.mark.parametrize("story", [rounds(RECALLED - 1), [*rounds(RECALLED), *rounds(RECALLED + 1, taught=1)[-1:]]])
def test_home_says_nothing_before_and_after(window_told: TellWindow, story: list[AnyEvent]) -> None:
    assert not advice_of(window_told([*started(), *story])).isVisible()


def test_a_lesson_takes_it_away(window_told: TellWindow) -> None:
    window = window_told([*started(), *rounds(RECALLED)])
    advice = advice_of(window)
    window._store.take(rounds(RECALLED + 1, taught=1)[-1])
    window._store.flush()
    assert not advice.isVisible()


def test_every_remedy_leads_to_something_that_exists() -> None:
    keys = {row.key for section in SECTIONS for row in section.rows}
    for remedy in REMEDIES:
        assert remedy.part in {"settings": keys, "swarms": ("list",), "models": ("",)}[remedy.page]


def test_every_sentence_and_every_link_is_there_in_german() -> None:
    translator.use("de")
    for words in (*(why.says for why in (*DIAGNOSES.values(), STARTER_WITHOUT_TAG)), *(remedy.says for remedy in REMEDIES)):
        assert tr(words) != words
