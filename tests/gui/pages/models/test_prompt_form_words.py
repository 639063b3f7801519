"""Test the sentences that say how the model is asked, and why."""

import pytest
from PySide6.QtWidgets import QApplication

from gui.recorded import ready
from waggle.core.settings import LearningSettings, Settings
from waggle.gui.i18n import translator
from waggle.gui.pages.models.prompt_form_words import FORM_WORDS, LEARNS_FORM, LEARNS_NO_FORM, prompt_form_words
from waggle.protocol.events import PromptFormChoice
from waggle.protocol.state import State
from waggle.sapo.prompt_form import FORMS


def words_of(form: str, why: str, readable: int = 0, total: int = 0, settings: Settings | None = None) -> str:
    choice = PromptFormChoice(form=form, why=why, readable=readable, total=total)  # type: ignore[arg-type]
    return prompt_form_words(State(ready=ready(prompt_form=choice), settings=settings))


def test_every_form_has_words() -> None:
    assert list(FORM_WORDS) == list(FORMS)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (("plain", "starter"), ""),
        (("chat", "setting"), "Asked as you chose: as a chat."),
        (
            ("chat_example_opened", "trial", 14, 18),
            "Asked as a chat with a worked example and the answer tag opened, because 14 of 18 answers could be read that way.",
        ),
        (("example", "trial", 9, 18), "Asked with a worked example, because 9 of 18 answers could be read that way."),
        (
            ("example", "trial", 8, 18),
            f"Asked with a worked example, which worked best, but only 8 of 18 answers could be read that way. {LEARNS_FORM}",
        ),
        (
            ("plain", "trial", 0, 18),
            f"Asked with the question alone, but no answer could be read, whichever way it was asked. {LEARNS_FORM}",
        ),
        (("plain", "trial", 0, 0), "Asked with the question alone."),
        (("a form of tomorrow", "trial", 3, 4), ""),
    ],
)
def test_the_way_and_the_reason_are_said(qapp: QApplication, choice: tuple[str, str], words: str) -> None:
    assert words_of(*choice) == words


@pytest.mark.parametrize("reason", ["a system message comes first", "a system message comes first."])
def test_a_model_without_chat_is_explained(qapp: QApplication, reason: str) -> None:
    choice = PromptFormChoice(form="plain", why="trial", no_chat=reason)
    assert prompt_form_words(State(ready=ready(prompt_form=choice))) == (
        "Asked with the question alone. Its chat template cannot be used, so it is trained in plain text, without chat: "
        "a system message comes first."
    )


def test_nothing_is_said_before_there_is_a_model(qapp: QApplication) -> None:
    assert prompt_form_words(State()) == ""


def test_a_form_is_not_said_to_be_learned_where_it_earns_nothing(qapp: QApplication) -> None:
    unpaid = Settings(learning=LearningSettings(form_pay="off"))
    assert words_of("chat", "trial", 2, 18, unpaid).endswith(LEARNS_NO_FORM)
    assert words_of("chat", "trial", 2, 18, Settings()).endswith(LEARNS_FORM)


def test_german_forms_fit_into_the_german_sentence(qapp: QApplication) -> None:
    translator.use("de")
    assert words_of("chat_example_opened", "trial", 14, 18) == (
        "Gefragt wird es im Chat mit einem gelösten Beispiel und begonnener Antwort, "
        "weil sich so 14 von 18 Antworten lesen ließen."
    )
