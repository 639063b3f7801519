"""Test that levels whose answer keys nobody could check are marked, before a swarm is created and before it is joined."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel

from waggle.gui.i18n import translator
from waggle.gui.pages.swarms.specialty_choice import SpecialtyChoice
from waggle.gui.pages.swarms.swarm_card import SwarmCard
from waggle.gui.pages.swarms.swarm_facts import Fact, has_unchecked, trains_on, unchecked_mark
from waggle.gui.pages.swarms.swarm_preview import SwarmPreviewCard
from waggle.gui.theme.theme import Theme
from waggle.protocol.events import Difficulty
from waggle.protocol.events_swarms import SpecialtyDetails, SpecialtyOffer, SwarmDetails
from waggle.protocol.text.swarm_text import UNCHECKED

ALL: tuple[Difficulty, ...] = ("easy", "standard", "hard")
EASY, STANDARD, HARD, EVERY = range(4)  # places of the switch
SAMPLES: dict[Difficulty, str] = {"easy": "a?", "standard": "ab?", "hard": "abc?"}
CHECKED = SpecialtyOffer(dataset="gcd", title="Divisors", topic="arithmetic", samples=SAMPLES)
PART = SpecialtyOffer(dataset="bf", title="Tiny programs", topic="algorithms", samples=SAMPLES, unchecked=("hard",))
SENTENCE = "its answer keys could not be checked independently; its scorer was tested with altered answers."


def swarm(*specialties: SpecialtyDetails) -> SwarmDetails:
    return SwarmDetails(charter="ab" * 32, name="Ours", specialties=specialties)


def details(title: str, levels: tuple[str, ...] = ("easy",), unchecked: tuple[str, ...] = ()) -> SpecialtyDetails:
    return SpecialtyDetails(title=title, levels=levels, unchecked=unchecked)


@pytest.fixture
def form(theme: Theme) -> SpecialtyChoice:
    choice = SpecialtyChoice(theme)
    choice.show_offers((CHECKED, PART))
    return choice


def row_texts(form: SpecialtyChoice) -> list[str]:
    return [item.text() for item in form._items()]


@pytest.mark.parametrize(
    ("levels", "unchecked", "mark"),
    [
        (ALL, (), ""),
        (("easy",), ("hard",), ""),
        (("hard",), ("hard",), "answers not verified"),
        (ALL, ALL, "answers not verified"),
        (ALL, ("hard",), "hard: answers not verified"),
        (ALL, ("hard", "easy"), "easy, hard: answers not verified"),
    ],
)
def test_the_mark_names_levels_where_some_only_are_unchecked(
    qapp: QApplication, levels: tuple[str, ...], unchecked: tuple[str, ...], mark: str
) -> None:
    assert unchecked_mark(levels, unchecked) == mark


@pytest.mark.parametrize(
    ("place", "mark", "sentence"),
    [
        (EASY, "", ""),
        (STANDARD, "", ""),
        (HARD, "  ·  not verified", f"Answers not verified: {SENTENCE}"),
        (EVERY, "  ·  hard: not verified", f"Answers not verified (hard): {SENTENCE}"),
    ],
)
def test_the_form_marks_what_is_unchecked_at_the_chosen_difficulty(
    form: SpecialtyChoice, place: int, mark: str, sentence: str
) -> None:
    form._level.choose(place)
    assert row_texts(form) == ["Divisors", f"Tiny programs{mark}"]
    form._list.setCurrentIndex(form._filtered.index(3, 0))
    assert (form._unchecked.text(), form._unchecked.isHidden()) == (sentence, not sentence)
    form._list.setCurrentIndex(form._filtered.index(1, 0))
    assert form._unchecked.isHidden()


def test_another_difficulty_neither_unticks_nor_moves(form: SpecialtyChoice) -> None:
    for item in form._items():
        item.setCheckState(Qt.CheckState.Checked)
    form._list.setCurrentIndex(form._filtered.index(1, 0))
    form._level.choose(HARD)
    assert form._list.currentIndex().row() == 1
    assert [offer.dataset for offer in form.chosen()] == ["gcd", "bf"]


def test_a_swarm_says_so_beside_each_such_specialty(qapp: QApplication) -> None:
    checked, part = details("Fractions", ALL), details("Logic", ALL, ("hard",))
    assert trains_on(swarm(checked, part)) == "Fractions, Logic (hard: answers not verified)"
    all_easy = swarm(details("Words"), details("Logic", unchecked=("easy",)))
    assert trains_on(all_easy) == "Easy questions: Words, Logic (answers not verified)"
    assert trains_on(swarm(details("Words", unchecked=("easy",)))) == "Words (easy, answers not verified)"
    none = swarm(details("Words", ALL, ALL), details("Maze", ("hard",), ("hard",)))
    assert trains_on(none) == "Words, Maze; answers of all not verified"
    translator.use("de")
    assert trains_on(swarm(checked, part)) == "Brüche, Logik (schwer: Lösungen ungeprüft)"


def test_unchecked_specialties_that_are_not_named_are_mentioned(qapp: QApplication) -> None:
    many = [details(f"Kind {number}", ("easy", "hard")) for number in range(12)]
    assert trains_on(swarm(*many)).endswith("Kind 8 and 3 more")
    assert trains_on(swarm(*many, details("Maze", ALL, ALL))).endswith("Kind 8 and 4 more (answers of some not verified)")


def preview_texts(theme: Theme, previewed: SwarmDetails) -> list[str]:
    preview = SwarmPreviewCard(theme, previewed, about="", leaving="", round_=1, why_not="")
    return [label.text() for label in preview.findChildren(QLabel)]


def test_the_preview_says_what_unchecked_means_where_something_is(theme: Theme) -> None:
    assert UNCHECKED in preview_texts(theme, swarm(details("Logic", ALL, ("hard",))))
    assert UNCHECKED not in preview_texts(theme, swarm(details("Logic", ALL)))
    assert not has_unchecked(swarm(details("Logic", ("easy",), ("hard",)))), "a level that the swarm does not have"


def test_the_card_of_a_swarm_says_it_in_its_tooltip(theme: Theme) -> None:
    def tips(shown_swarm: SwarmDetails) -> str:
        card = SwarmCard(theme, shown_swarm, "")
        return "".join(widget.toolTip() for widget in card.findChildren(Fact))

    assert UNCHECKED in tips(swarm(details("Logic", ALL, ("hard",))))
    assert tips(swarm(details("Logic", ALL))) == ""


def test_levels_of_a_stranger_stay_words(qapp: QApplication) -> None:
    assert unchecked_mark(("<b>\u202e", "easy"), ("<b>\u202e",)) == "<b>\ufffd: answers not verified"
