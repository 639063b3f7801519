"""The page Models: what is here, suggestions, the hub, and the choice of another model while the present one is trained."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import keyring
import pytest
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from engine.file_keyring import FileKeyring
from gui.answers import answer, refuse
from gui.pages.swarms.test_page import BEGUN, HERE, buttons, press_again, tell
from gui.recorded import ready
from pictures.staged_models import FRESH, RESULTS
from waggle.core import hub_token, paths
from waggle.core.errors import ModelError
from waggle.core.message import Figure, Message, in_turn, turns_of
from waggle.gui.application.main_window import MainWindow
from waggle.gui.application.screenshot import screenshot_when_still
from waggle.gui.i18n import translator
from waggle.gui.pages.models import model_words
from waggle.gui.pages.models.cards import ModelCard, OfferCard
from waggle.gui.pages.models.licence_steps import LicenceSteps
from waggle.gui.pages.models.model_words import choice_progress, choice_title, model_name, model_summary, offer_size, offer_terms
from waggle.gui.pages.models.page import ModelsPage
from waggle.gui.state.inputs.dropped_model import dropped_model
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.card_grid import CardGrid
from waggle.models.memory_fit import WORDS
from waggle.models.shared.training_mode import ADAPTED
from waggle.models.storage import hub_download
from waggle.protocol import commands, events
from waggle.protocol.commands import AnyCommand
from waggle.protocol.events_models import HubResults, ModelChoice, ModelDetails, ModelExported, ModelList, ModelOffer
from waggle.protocol.events_swarms import StartedAgain

TellWindow = Callable[..., MainWindow]
STARTER = ModelDetails(kind="starter", bytes=3_300_000, active=True, rounds=613)
QWEN = ModelDetails(kind="hub", name="Qwen/Tiny", bytes=988_000_000)
HALF = ModelDetails(kind="hub", name="Qwen/Half", bytes=400_000_000, finished=False)
FITS = Message(model_words.FITS, Figure(40), Figure(3.1, 1), Figure(8.0, 1))
SMALL = ModelOffer(
    name="bees/small",
    title="Small",
    licence="Apache-2.0",
    weights=135_000_000,
    bytes=273_000_000,
    good_at="The smallest one: it learns on almost any computer.",
    fits=True,
    fit=in_turn(FITS, Message("All weights are trained in float32.")),
)
LARGE = ModelOffer(name="bees/large", title="Large", gated=True, fits=False, fit="This model does not fit: it needs 300.5 GB.")
LISTED = ModelList(models=(STARTER, QWEN, HALF), cache="/cache", free=50_000_000_000, suggested=(SMALL, LARGE))


@pytest.fixture
def models(window_told: TellWindow) -> tuple[MainWindow, ModelsPage, list[AnyCommand]]:
    window = window_told(BEGUN)
    sent: list[AnyCommand] = []
    window.commanded.connect(sent.append)
    window.show_page("models")
    tell(window, LISTED)
    return window, window.pages.of(ModelsPage), sent


Models = tuple[MainWindow, ModelsPage, list[AnyCommand]]


def cards(page: ModelsPage, words: str) -> list[QWidget]:
    """The cards of models on this computer that have a button with these words."""
    return [card for card in page._model_cards if any(button.text() == words for button in buttons(card))]


def button_of(page: ModelsPage, words: str) -> QPushButton:
    return next(button for button in buttons(cards(page, words)[0]) if button.text() == words)


def offer_card(page: ModelsPage, name: str) -> OfferCard:
    return next(card for card in (*page._hub.cards, *page._suggested.cards, *page._too_large.cards) if card.offer.name == name)


def test_models_are_listed_with_what_they_take_and_what_they_learned(models: Models) -> None:
    _, page, sent = models
    assert isinstance(sent[-1], commands.ListModels)
    assert model_summary(STARTER, {}) == "Comes with Waggle  ·  3.3 MB  ·  613 rounds trained here"
    assert model_summary(HALF, {}) == "Hugging Face: Qwen  ·  400 MB downloaded so far"
    known = {HALF.name: replace(SMALL, name=HALF.name, title="Half 1B")}
    assert model_summary(HALF, known) == "Hugging Face  ·  400 MB of 273 MB downloaded"
    assert (model_name(HALF, {}), model_name(HALF, known)) == ("Half", "Half 1B")
    assert page._storage.words() == "Downloaded models take 1.4 GB; 50.0 GB are free"


def test_before_the_models_are_listed_no_heading_stands_over_nothing(window_told: TellWindow) -> None:
    window = window_told(BEGUN)
    window.show_page("models")
    page = window.pages.of(ModelsPage)
    screenshot_when_still(window)
    field = page._field.y()
    assert (page._others_part.isVisible(), page._coming_card.isVisible(), page._coming_offers.isVisible()) == (False, True, True)
    tell(window, replace(LISTED, models=(replace(STARTER, fit=SMALL.fit), QWEN)))
    assert (page._others_part.isVisible(), page._coming_card.isVisible(), page._coming_offers.isVisible()) == (True, False, False)
    screenshot_when_still(window)
    assert abs(page._field.y() - field) < 8, "the field for a search stays about where it was"


def test_a_card_of_a_model_stays_while_it_is_trained(models: Models) -> None:
    """Events do not take a card away from a person who is about to press its button or has focused it."""
    window, page, _ = models
    train = button_of(page, "Train this one")
    train.setFocus()
    suggestion = page._suggested.cards[0]
    tell(window, replace(LISTED, models=(replace(STARTER, rounds=614), QWEN, HALF), free=49_000_000_000))
    assert button_of(page, "Train this one") is train
    assert page._suggested.cards[0] is suggestion
    assert window.focusWidget() is train
    assert "614 rounds trained here" in page._model_cards[0]._about.text()
    assert page._storage.words().endswith("49.0 GB are free")


def test_an_export_is_offered_once_something_is_saved(models: Models) -> None:
    window, page, sent = models
    fresh = replace(LISTED, models=(replace(STARTER, rounds=0),))
    tell(window, fresh)
    assert not button_of(page, "Export what was learned").isEnabled()
    sent_before = len(sent)
    tell(window, events.CheckpointSaved(round=8, bytes=1), events.TrafficMeasured(up=1.0, down=1.0))
    window.redraw()
    assert [type(command) for command in sent[sent_before:]] == [commands.ListModels]
    tell(window, replace(fresh, models=(STARTER,)))
    assert button_of(page, "Export what was learned").isEnabled()
    window.show_page("home")
    tell(window, events.CheckpointSaved(round=9, bytes=1))
    assert len(sent) == sent_before + 1, "while it is not seen nothing is asked"
    window.show_page("models")
    assert [type(command) for command in sent[sent_before + 1 :]] == [commands.ListModels]


def test_a_model_is_chosen_by_its_card_a_suggestion_or_what_is_typed(models: Models) -> None:
    window, page, sent = models
    button_of(page, "Train this one").click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name="Qwen/Tiny")
    button_of(page, "Continue the download").click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name="Qwen/Half")
    buttons(offer_card(page, "bees/small"))[0].click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name="bees/small")
    for typed, chosen in (
        (" https://huggingface.co/Qwen/Other/tree/main ", {"name": "Qwen/Other"}),
        ("/home/ada/model/config.json", {"folder": "/home/ada/model"}),
    ):
        page._field.edit.setText(typed)
        assert page._field._act.text() == "Use this model"
        page._field._act.click()
        assert sent[-1] == commands.ChooseModel(id=sent[-1].id, **chosen)
    refuse(window, "There is no model in /home/ada/model: config.json is missing.", "", sent[-1].id)
    assert page._message.text() == "There is no model in /home/ada/model: config.json is missing."
    assert not window.status._notice._content[0], "once, where it is seen"
    page._field._act.click()
    window.show_page("home")
    refuse(window, "There is no model in /home/ada/model: config.json is missing.", "", sent[-1].id)
    assert window.status._notice._content[0] == "There is no model in /home/ada/model: config.json is missing."


def test_what_names_no_model_is_said_at_once_and_not_sent(models: Models) -> None:
    _, page, sent = models
    known = len(sent)
    page._field.edit.setText("https://huggingface.co/bees/tiny/blob/main/x.Q4_K_M.gguf")
    page._field._act.click()
    assert page._field.message().startswith("Waggle does not download the GGUF file x.Q4_K_M.gguf")
    page._field.edit.setText("")
    assert page._field.message() == ""
    page._field._act.click()
    assert len(sent) == known


def test_the_hub_is_searched_and_its_results_are_shown_until_they_are_cleared(models: Models) -> None:
    window, page, sent = models
    page.go_to_search()
    page._field.edit.setText("tiny bee")
    assert page._field._act.text() == "Search"
    page._field._act.click()
    assert sent[-1] == commands.SearchModels(id=sent[-1].id, words="tiny bee")
    assert page._field.message() == "Searching Hugging Face."
    assert not page._hub.isVisible()
    hostile = "bees/tiny" + "-long" * 40
    answer(window, HubResults(words="tiny bee", models=(ModelOffer(name=hostile, licence="<b>x</b>", downloads=7), LARGE)))
    assert page._field.message() == ""
    assert page._hub._title.text() == "Results on Hugging Face for “tiny bee”"
    assert offer_card(page, hostile).width() < page.width()
    buttons(offer_card(page, hostile))[0].click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name=hostile)
    page._clear_search()
    assert not page._hub.isVisible()
    page._field.edit.setText("nothing")
    page._field._act.click()
    answer(window, HubResults(words="nothing", models=()))
    assert page._hub._line.text().startswith("No model that Waggle can train")
    page._field._act.click()
    refuse(window, "Hugging Face cannot be reached.", "Check the connection, then search again.", sent[-1].id)
    assert page._field.message() == "Hugging Face cannot be reached. Check the connection, then search again."


def test_a_suggestion_says_whether_it_fits_what_it_needs_and_what_it_is_good_at(models: Models) -> None:
    window, page, _ = models
    small, large = offer_card(page, "bees/small"), offer_card(page, "bees/large")
    assert (small._chip._content[0], large._chip._content[0]) == ("Fits", "Too large")
    assert small._fit.text() == "40+ answers an hour, 3.1 of 8.0 GB of memory"
    assert (buttons(small)[0].isEnabled(), buttons(large)[0].isEnabled()) == (True, False)
    assert buttons(large)[0].toolTip() == "This model does not fit: it needs 300.5 GB."
    assert offer_size(SMALL).split("  ·  ") == ["135 million parameters", "273 MB to download"]
    assert offer_terms(replace(SMALL, quantised=True, downloads=1200)).split("  ·  ") == [
        "Apache-2.0",
        "quantised",
        "1,200 downloads",
    ]
    assert offer_terms(replace(SMALL, licence="cc-by-4.0")) == "CC-BY-4.0"
    assert offer_size(replace(SMALL, weights=1_235_000_000)).startswith("1.2 billion parameters")
    assert offer_size(replace(SMALL, weights=0, bytes=0)) == "Size not known yet"
    tell(window, replace(LISTED, models=(STARTER, replace(QWEN, name="bees/small"))))
    assert [card.offer.name for card in page._too_large.cards] == ["bees/large"], "what is here is not suggested"
    try:
        translator.use("de")
        card = OfferCard(small._chip.theme, SMALL)
        words = [label.text() for label in card.findChildren(QLabel)]
        assert "Das kleinste: Es lernt auf fast jedem Computer." in words
    finally:
        translator.use("en")


def test_a_download_shows_how_far_it_is_and_is_cancelled(models: Models) -> None:
    window, page, sent = models
    choice = ModelChoice(name="bees/small", stage="downloading")
    tell(window, choice)
    assert page._choice.isVisible()
    assert choice_title(choice, {}) == "Looking up small on Hugging Face"
    tell(window, coming := replace(choice, done=100_000_000, total=273_000_000, seconds_left=130.0))
    assert page._choice._title.words() == "Downloading Small"
    assert choice_progress(coming) == "100 MB of 273 MB, about 2 min left"
    assert page._choice._bar.value() == 366
    assert page._choice._unchanged.text().endswith(" keeps training until the new model is ready.")
    assert (buttons(offer_card(page, "bees/small"))[0].text(), buttons(offer_card(page, "bees/small"))[0].isEnabled()) == (
        "Downloading",
        False,
    )
    tell(window, replace(coming, name="Qwen/Half"))
    assert not button_of(page, "Continue the download").isEnabled()
    tell(window, coming)
    page._choice._cancel.click()
    assert sent[-1] == commands.CancelChoice(id=sent[-1].id)
    known = len(sent)
    tell(window, replace(choice, stage="ended"))
    assert not page._choice.isVisible()
    assert [type(command) for command in sent[known:]] == [commands.ListModels], "part of it is here now"


def test_a_download_that_the_start_waits_for_shows_how_far_it_is_too(models: Models) -> None:
    window, page, _ = models
    tell(window, StartedAgain(reason="Going on with Qwen/Half."), events.Downloading(model="Qwen/Half", done=412, total=980))
    assert (page._choice._bar.value(), page._choice.isVisible(), page._choice._cancel.isVisible()) == (420, True, False)
    assert page._field._act.isEnabled(), "another choice ends the download"


def test_a_failed_choice_says_why_and_is_tried_again_or_dismissed(models: Models) -> None:
    window, page, sent = models
    failed = ModelChoice(
        name="bees/small",
        stage="failed",
        title="Hugging Face has lost a file of bees/small.",
        advice="Choose another revision of it.",
    )
    tell(window, failed)
    assert page._choice._title.words() == "Waggle could not switch to Small"
    assert page._choice._progress.text() == "Hugging Face has lost a file of bees/small. Choose another revision of it."
    assert page._choice._unchanged.text().startswith("You are still training")
    page._choice._retry.click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name="bees/small")
    page._choice._close.click()
    window.redraw()
    assert not page._choice.isVisible()
    tell(window, replace(failed, at=9.0))
    assert page._choice.isVisible(), "it failed again"


def test_why_a_choice_failed_stays_beside_the_model_which_does_not_claim_to_fit(models: Models) -> None:
    window, page, sent = models
    title = "This model does not fit: it needs at least 18.9 GB of memory, and Waggle may use 7.6 GB."
    tell(window, coming := ModelChoice(name="bees/small", stage="checking"))
    known = len(sent)
    tell(window, replace(coming, stage="failed", title=title))
    assert [type(command) for command in sent[known:]] == [commands.ListModels], "it is on this computer now"
    page._choice._close.click()
    offer = offer_card(page, "bees/small")
    assert (offer._fit.text(), offer._chip.isVisible()) == (title, False)
    assert (buttons(offer)[0].text(), buttons(offer)[0].isEnabled()) == ("Download and train", True)
    here = ModelDetails(kind="hub", name="bees/small", bytes=273_000_000, fit=SMALL.fit)
    tell(window, replace(LISTED, models=(STARTER, here, QWEN)))
    assert page._model_cards[1]._fit.text() == title
    page._model_cards[1]._act.click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name="bees/small")
    assert page._model_cards[2]._act.text() == "Train this one", "the other one is as before"
    tell(window, replace(coming, stage="ended"))
    assert page._model_cards[1]._fit.text().startswith("40+ answers")


def test_a_choice_is_over_when_its_engine_is(models: Models) -> None:
    window, page, _ = models
    tell(window, ModelChoice(name="bees/small", stage="downloading"), StartedAgain(reason="Another swarm."))
    assert page._choice.isVisible(), "a restart within the process goes on with it"
    tell(window, events.EngineStopped(round=3))
    assert not page._choice.isVisible()


def test_a_folder_a_file_of_a_model_and_a_hub_address_are_recognised_when_they_are_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(paths.starter(), folder)
    address = "https://huggingface.co/Qwen/Qwen3-0.6B"
    for item in (str(folder), str(folder / "model.safetensors"), str(folder / "config.json"), "/x/y.gguf", address):
        assert dropped_model([item]) == item
    for other in (
        ["/x/questions.jsonl"],
        ["/x/photo.png"],
        ["https://example.org/x"],
        [],
        [str(folder), str(folder)],
        ["/" + "x" * 5000],
    ):
        assert dropped_model(other) == ""


def test_what_was_dropped_is_filled_in_and_waits_for_the_person(models: Models) -> None:
    window, page, sent = models
    window.show_page("home")
    known = len(sent)
    window.file_drop.model_dropped.emit("/home/ada/model")
    assert window.page == "models"
    assert page._field.edit.text() == "/home/ada/model"
    assert window.focusWidget() is page._field._act
    assert not any(isinstance(command, commands.ChooseModel) for command in sent[known:])
    page._field._act.click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, folder="/home/ada/model")


def test_cards_stand_in_as_many_columns_as_fit(theme: Theme, qtbot: QtBot) -> None:
    grid = CardGrid(300)
    qtbot.addWidget(grid)
    members = [QWidget() for _ in range(4)]
    grid.show_cards(members)
    for width, columns in ((250, 1), (640, 2), (1000, 3), (2000, 3), (640, 2)):
        grid.resize(width, 400)
        grid._arrange()
        places = [grid._box.getItemPosition(grid._box.indexOf(member))[:2] for member in members]  # type: ignore[index]
        assert places == [(place // columns, place % columns) for place in range(4)]


def test_how_a_model_is_trained_is_in_the_tooltip_of_how_well_it_fits(theme: Theme) -> None:
    card = ModelCard(theme, replace(QWEN, fit="?"), {})
    card.show_model(replace(QWEN, fit=in_turn(FITS, Message("Weights are many."), Message("More."))), {}, "", "")
    assert card._fit.text() == "40+ answers an hour, 3.1 of 8.0 GB of memory"
    words = "Fits: about 40 answers an hour or more, 3.1 of 8.0 GB of memory. Weights are many. More."
    assert card._fit.toolTip() == words
    card.show_model(replace(QWEN, fit="This model does not fit: it needs 300.5 GB at the least."), {}, "", "")
    assert (card._fit.text(), card._fit.toolTip()) == ("This model does not fit: it needs 300.5 GB at the least.", "")


def test_how_the_model_in_training_is_asked_stands_on_its_card(models: Models) -> None:
    window, page, _ = models
    assert not any(model_card._form.isVisible() for model_card in page._model_cards), "the starter has only one way"
    choice = events.PromptFormChoice(form="chat_example", why="trial", readable=14, total=18)
    tell(window, ready(charter=HERE, swarm="First light", prompt_form=choice))
    words = "Asked as a chat with a worked example, because 14 of 18 answers could be read that way."
    assert page._model_cards[0]._form.text() == words


def test_a_model_is_removed_at_a_second_press_only_and_while_there_is_an_engine(models: Models, qtbot: QtBot) -> None:
    window, page, sent = models
    window.activateWindow()
    screenshot_when_still(window)
    remove, known = button_of(page, "Remove"), len(sent)
    assert remove.accessibleName() == "Remove Tiny from this computer"
    qtbot.mouseClick(remove, Qt.MouseButton.LeftButton)
    press_again(qtbot, remove)
    assert (remove.text(), sent[known:]) == ("Remove 988 MB", [])
    page._field.edit.setFocus()
    assert remove.text() == "Remove"
    remove.click()
    remove.click()
    assert sent[known:] == [commands.RemoveModel(id=sent[-1].id, name="Qwen/Tiny")]
    assert page._model_cards[0]._chip.accessibleName() == "In training"
    tell(window, events.PhaseChanged(phase="stopped", round=613))
    assert (remove.isEnabled(), bool(remove.toolTip())) == (False, True)
    assert page._model_cards[0]._chip.accessibleName() == "Not training"


def test_what_was_learned_is_exported_and_said(models: Models) -> None:
    window, page, sent = models
    page.export("/tmp/mine")
    assert sent[-1] == commands.ExportModel(id=sent[-1].id, path="/tmp/mine")
    answer(window, ModelExported(path="/tmp/mine", rounds=600))
    assert page._message.text() == "Written to /tmp/mine: 600 rounds of training."
    for spoken, words in (
        ("en", "Written to /tmp/%n: 1 round of training."),
        ("de", "Nach /tmp/%n geschrieben: 1 Runde Training."),
    ):
        translator.use(spoken)
        page.export("/tmp/%n")
        answer(window, ModelExported(path="/tmp/%n", rounds=1))
        assert page._message.text() == words


def test_the_engine_says_of_a_model_whether_it_fits_in_the_words_that_the_card_shortens() -> None:
    sentences = {part.id for offer in (*FRESH.suggested, *RESULTS.models) for part in turns_of(offer.fit)}
    assert {model_words.FITS, model_words.TOO_LARGE} <= sentences
    assert {WORDS[method].id for method in ADAPTED} == set(model_words.ADAPTERS)
    assert WORDS["lean"].id == model_words.LEAN


def test_a_model_that_the_hub_refuses_to_the_token_is_offered_with_the_same_steps(models: Models) -> None:
    window, page, _ = models
    response = httpx2.Response(403, request=httpx2.Request("GET", "https://huggingface.co/bees/large"))
    with pytest.raises(ModelError) as caught, hub_download._in_words("bees/large"):
        raise HfHubHTTPError("refused", response=response)
    tell(window, ModelChoice(name="bees/large", stage="failed", title=caught.value.title, advice=caught.value.advice))
    assert page._choice._title.words().startswith("Hugging Face refuses ")
    assert not page._choice._licence.isHidden()


def test_a_model_that_does_not_fit_says_in_grey_what_it_needs(models: Models) -> None:
    window, page, _ = models
    tell(window, FRESH)
    cards = (*page._suggested.cards, *page._too_large.cards)
    lines = {card.offer.title: card._fit for card in cards}
    assert lines["SmolLM3 3B"].text() == "Needs at least 7.7 GB of memory; Waggle may use 7.6 GB"
    assert lines["SmolLM3 3B"].property("tone") == "soft"
    assert lines["Qwen3 0.6B"].text() == "560+ answers an hour, 6.0 of 7.6 GB of memory"
    chips = {card.offer.title: card._chip.accessibleName() for card in cards}
    assert (chips["Qwen3 0.6B"], chips["LFM2.5 350M"]) == ("Fits, saving memory", "Fits")


def test_the_model_that_suits_this_computer_best_stands_first_and_is_called_that(models: Models) -> None:
    window, page, _ = models
    second = replace(FRESH, suggested=tuple(replace(offer, recommended=offer is FRESH.suggested[1]) for offer in FRESH.suggested))
    for listed, best in ((FRESH, "SmolLM2 135M"), (second, FRESH.suggested[1].title)):
        tell(window, listed)
        first, *others = page._suggested.cards
        assert (first.offer.title, first._chip.accessibleName()) == (best, "Recommended here")
        assert "Recommended here" not in [card._chip.accessibleName() for card in others]


@pytest.fixture
def keychain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the keychain."""
    monkeypatch.setenv("KEYCHAIN_FILE", str(tmp_path / "keychain.json"))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())
    yield tmp_path / "keychain.json"
    keyring.set_keyring(before)


def steps_after_refusal(window: MainWindow, page: ModelsPage) -> LicenceSteps:
    """The steps that stand there after the hub refused a model, as it really says it."""
    refused = pytest.raises(ModelError)
    response = httpx2.Response(403, request=httpx2.Request("GET", "https://huggingface.co/bees/large"))
    with refused as caught, hub_download._in_words("bees/large"):
        raise GatedRepoError("gated", response=response)
    tell(window, ModelChoice(name="bees/large", stage="failed", title=caught.value.title, advice=caught.value.advice))
    assert page._choice._title.words() == "Accept the licence of Large first"
    assert not page._choice._progress.isVisible()
    return page._choice._licence


def test_a_model_with_a_licence_leads_to_its_page(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    window, page, _ = models
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    steps = steps_after_refusal(window, page)
    assert offer_card(page, "bees/large")._account.text() == "Not accepted yet"
    assert offer_card(page, "bees/large")._fit.text() == "This model does not fit: it needs 300.5 GB.", "it is known as before"
    next(button for button in buttons(steps) if button.text() == "Open its page").click()
    next(button for button in steps.findChildren(QPushButton) if button.text() == "Get a token").click()
    assert opened == ["https://huggingface.co/bees/large", "https://huggingface.co/settings/tokens"]


def test_a_token_goes_into_the_keychain_and_the_model_is_tried_again(models: Models, keychain: Path, qtbot: QtBot) -> None:
    window, page, sent = models
    steps = steps_after_refusal(window, page)
    steps._token.setText(" hf_secret ")
    assert (steps._go.text(), steps._token.displayText()) == ("Continue", "\N{BLACK CIRCLE}" * 11)
    known = len(sent)
    steps._go.click()
    assert steps._token.text() == "", "nobody sees it again"
    qtbot.waitUntil(lambda: len(sent) > known)
    assert sent[known:] == [commands.ChooseModel(id=sent[-1].id, name="bees/large")]
    assert hub_token.stored_token() == "hf_secret"


def test_what_is_no_token_is_refused_and_not_stored(models: Models, keychain: Path, qtbot: QtBot) -> None:
    window, page, sent = models
    steps, known = steps_after_refusal(window, page), len(sent)
    steps._token.setText("no token")
    steps._go.click()
    qtbot.waitUntil(steps._complaint.isVisible)
    assert steps._complaint.text().startswith("That is not a Hugging Face token.")
    assert (keychain.exists(), sent[known:]) == (False, [])


def test_a_stored_token_is_tried_again_as_it_is(models: Models, keychain: Path) -> None:
    window, page, sent = models
    steps_after_refusal(window, page)._go.click()
    assert sent[-1] == commands.ChooseModel(id=sent[-1].id, name="bees/large")
    assert not keychain.exists()


def test_the_keychain_of_another_computer_is_not_at_hand(theme: Theme, qtbot: QtBot, qapp: QApplication) -> None:
    steps = LicenceSteps(theme, here=False)
    qtbot.addWidget(steps)
    assert [(field.text(), field.isReadOnly()) for field in steps.findChildren(QLineEdit)] == [("waggle token", True)]
    next(button for button in steps.findChildren(QPushButton) if button.text() == "Copy").click()
    assert qapp.clipboard().text() == "waggle token"
