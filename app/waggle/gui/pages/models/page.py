"""The page Models: the model in training, others on this computer, suggestions, and a search of the hub."""

import asyncio
from collections.abc import Callable, Sequence

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QWidget

from waggle.core.errors import EngineError
from waggle.gui.coroutines import start
from waggle.gui.i18n.formatting import later, one_line, tr
from waggle.gui.i18n.placeholders import NO_MODEL, why_unavailable
from waggle.gui.pages.context import PageContext
from waggle.gui.pages.models.cards import ModelCard, OfferCard
from waggle.gui.pages.models.choice_card import ChoiceCard
from waggle.gui.pages.models.model_field import ModelField
from waggle.gui.pages.models.model_words import exported_words, failure_words, needs_licence, offers_of, storage_words
from waggle.gui.pages.models.prompt_form_words import prompt_form_words
from waggle.gui.pages.page import Page
from waggle.gui.widgets.containers.card_grid import CardGrid
from waggle.gui.widgets.containers.page_header import header_margins, page_header
from waggle.gui.widgets.containers.scroll_area import ScrollArea
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.draft_text import copy_drafts
from waggle.gui.widgets.file_dialogs import chosen_path, file_dialog
from waggle.gui.widgets.layout import as_widget, card, column, empty, row
from waggle.gui.widgets.refusals import announce_refusal, refusal_words
from waggle.gui.widgets.skeleton import SkeletonCard
from waggle.gui.widgets.swarm_suggestion import SwarmSuggestionLine
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.commands import (
    AnyCommand,
    CancelChoice,
    ChooseModel,
    ExportModel,
    ListModels,
    RemoveModel,
    SearchModels,
    new_id,
)
from waggle.protocol.events import CommandDone
from waggle.protocol.events_models import HubResults, ModelDetails, ModelExported, ModelOffer
from waggle.protocol.state import State

LEAST = 330  # pixels of a card's width, at a text size of 100%
SUGGESTED = later("Good models to begin with")
ABOUT_SUGGESTED = later("Small models that learn well. Waggle downloads nothing until you say so.")
TOO_LARGE = later("For computers with more memory")
AT_REST = ("paused", "stopped", "problem")  # phases in which no model trains
COMING = 3  # cards that stand for the models until they are listed


class OfferSection(QWidget):
    """A heading, a line below it, and cards of models of the hub. `choose` gets the name of one."""

    def __init__(self, context: PageContext, choose: Callable[[str], object], *head: QWidget) -> None:
        super().__init__()
        theme = context.theme
        self._theme, self._choose = theme, choose
        self._title, self._line = text(theme, "", "heading", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self._grid = CardGrid(theme.px(LEAST))
        self._offers: tuple[str, ...] = ()
        self.cards: list[OfferCard] = []
        self.setLayout(column(row((self._title, 1), *head), self._line, 4, self._grid, gap=4))

    def show_offers(self, title: str, line: str, offers: Sequence[ModelOffer]) -> None:
        """Show these models. Cards stay while the models stay the same, so that a press is not lost."""
        self._title.setText(title)
        say_in(self._line, line, "soft")
        names = tuple(offer.name for offer in offers)
        if names != self._offers:
            self._offers = names
            self.cards = [OfferCard(self._theme, offer) for offer in offers]
            for offer_card in self.cards:
                offer_card.chosen.connect(self._choose)
            self._grid.show_cards(self.cards)
        self._grid.setVisible(bool(names))


class ModelsPage(Page):
    """Everything that is shown is in the State, except the words that a person typed, and what is waited for."""

    def __init__(self, context: PageContext) -> None:
        super().__init__(context)
        theme, self._here = context.theme, context.engine.home is not None
        self._state, self._recorded = State(), False
        self._listed_for: object = None  # the engine and the saved round for which models were queried
        self._searching: asyncio.Future[HubResults] | None = None  # the awaited answer to the last search
        self._results: HubResults | None = None
        self._exporting: asyncio.Future[ModelExported] | None = None  # the awaited answer to the last export
        self._shapes: list[object] = []  # what decides which widgets the cards of models have
        self._model_cards: list[ModelCard] = []
        self._line = ElidedLabel(theme, role="small", tone="text_soft")
        self._head = page_header(theme, tr("Models"), self._line)
        self._choice = ChoiceCard(theme, here=self._here)
        self._choice.cancelled.connect(lambda: self._send(CancelChoice(id=new_id())))
        self._choice.repeated.connect(lambda choice: self._choose(choice.name, choice.folder))
        self._suggestion = SwarmSuggestionLine(theme, context.settings)
        self._suggestion.swarm_wanted.connect(lambda charter: context.requests.page.emit("swarms", charter))
        self._suggestion_card = card(self._suggestion)
        self._message = text(theme, "", "body", wrap=True)
        self._message_card = card(self._message)
        self._waiting = text(theme, "", "body", "soft", wrap=True)
        self._waiting_card = card(self._waiting)
        self._coming_card, coming_cards = SkeletonCard(theme), CardGrid(theme.px(LEAST))
        coming_cards.show_cards([SkeletonCard(theme, lines=6) for _ in range(COMING)])
        line = text(theme, tr(ABOUT_SUGGESTED), "small", "soft", wrap=True)
        self._coming_offers = as_widget(column(text(theme, tr(SUGGESTED), "heading"), line, 4, coming_cards, gap=4))
        self._active, self._others = column(), CardGrid(theme.px(LEAST))
        self._active_part = as_widget(self._active)
        self._active_part.hide()
        self._others_part = as_widget(column(text(theme, tr("Also on this computer"), "heading"), self._others))
        self._others_part.hide()
        self._field = ModelField(theme, here=self._here)
        self._field.searched.connect(self._search)
        self._field.named.connect(self._choose)
        self._field.folder.clicked.connect(lambda: start(self, self._ask_for_folder()))
        clear = Button(theme, tr("Clear the search"), "link")
        clear.clicked.connect(self._clear_search)
        self._hub = OfferSection(context, lambda name: self._choose(name, ""), clear)
        self._suggested = OfferSection(context, lambda name: self._choose(name, ""))
        self._too_large = OfferSection(context, lambda name: self._choose(name, ""))
        self._storage = ElidedLabel(theme, role="small", tone="text_soft")
        self._box = column(
            self._choice, self._suggestion_card, self._message_card, self._waiting_card, self._coming_card,
            self._active_part, self._field, self._coming_offers, self._hub, self._others_part, self._suggested,
            self._too_large, self._storage, None,
        )  # fmt: skip
        self._scroll = ScrollArea(self._box)
        self.setLayout(column(self._head, (self._scroll, 1), gap=0))
        self._say("")
        self.set_compact(False)

    def arrange(self, edge: int, gap: int) -> None:
        self._head.setContentsMargins(*header_margins(edge, compact=self.compact, below=gap))
        self._scroll.set_edges(edge, 20 if self.compact else 24)
        self._box.setSpacing(gap)

    def show_state(self, state: State, now: float) -> None:
        self._state = state
        # choosing another model interrupts the start's download, and answers the question about one that changed or is not there
        reasons = (state.downloading, state.changed, state.unavailable)
        may_choose = state.phase == "preparing" and any(reason is not None for reason in reasons)
        why_not = tr(NO_MODEL) if self._recorded else "" if may_choose else why_unavailable(state)
        if not why_not:
            self._list()
        self._line.say(
            why_not or tr("Choose the model that this computer trains")
            if state.ready
            else tr("No model is loaded.").removesuffix(".")
        )
        self._field.show_state(why_not)
        self._choice.show_state(state, offers_of(state.models), why_not)
        self._suggestion.show_state(state)
        self._suggestion_card.setVisible(not self._suggestion.isHidden())
        self._draw_models(why_not)
        self._draw_offers(why_not)

    def show_part(self, part: str) -> None:
        """Fill in a model that was dropped on the window; the person confirms it."""
        self._field.show_reference(part)
        self._scroll.ensureWidgetVisible(self._field)

    def show_replay(self, *, over: bool) -> None:
        """There is no engine to command."""
        self._recorded = True
        self.show_state(self._state, 0.0)

    def showEvent(self, event: QShowEvent) -> None:
        """Query the models again: training may have changed them while the page was hidden."""
        super().showEvent(event)
        self._listed_for = None

    def go_to_search(self) -> None:
        self._field.edit.setFocus()
        self._field.edit.selectAll()

    def take_over(self, before: Page) -> None:
        assert isinstance(before, ModelsPage)
        copy_drafts(self._field, before._field)
        self._state, self._results = before._state, before._results
        if before._searching is not None:
            self._await_results(before._searching)
        if before._exporting is not None:
            self._await_export(before._exporting)

    @property
    def _coming(self) -> str:
        """The name of the model that is being downloaded or checked; empty: none."""
        choice = self._state.choice
        return choice.name if choice is not None and choice.stage != "failed" else ""

    def _failure(self, name: str) -> str:
        """Why the last choice of this model of the hub failed; empty if it did not."""
        choice = self._state.choice
        return failure_words(choice) if choice is not None and choice.name == name != "" else ""

    def _list(self) -> None:
        """Query the models once for each engine, each saved round and each choice that has ended or failed."""
        about = (self._state.ready, self._state.changed, self._state.saved_round, self._coming)
        if (about[0] or about[1]) is not None and about != self._listed_for:
            self._listed_for = about
            self.commanded.emit(ListModels(id=new_id()))

    def _draw_models(self, why_not: str) -> None:
        """Draw the models on this computer. Cards are reused while the models stay the same, so that a press is not lost."""
        listing = self._state.models
        self._waiting.setText(why_not)
        self._waiting_card.setVisible(listing is None and bool(why_not))
        for each in (self._coming_card, self._coming_offers):
            each.setVisible(listing is None and not why_not)
        self._storage.setVisible(listing is not None)
        models = sorted(listing.models, key=lambda model: not model.active) if listing else []
        trained = one_line(self._state.ready.model) if self._state.ready else ""
        shapes: list[object] = [(model.kind, model.name, model.folder, model.active, model.finished) for model in models]
        shapes.append(trained)
        if shapes != self._shapes:
            self._shapes = shapes
            self._make_cards(models, trained)
        for model_card, model in zip(self._model_cards, models, strict=True):
            why = why_not or (tr("It is being downloaded.") if model.name and model.name == self._coming else "")
            form = prompt_form_words(self._state) if model.active else ""
            failure, trains = self._failure(model.name), self._state.phase not in AT_REST
            model_card.show_model(model, offers_of(self._state.models), form, why, failure, trains=trains)
        if listing is not None:
            self._storage.say(storage_words(listing.models, listing.free))

    def _make_cards(self, models: Sequence[ModelDetails], trained: str) -> None:
        """`trained`: the name of the model in training."""
        empty(self._active)
        self._model_cards = [
            ModelCard(self.theme, model, offers_of(self._state.models), trained if model.active else "") for model in models
        ]
        for model_card in self._model_cards:
            model_card.chosen.connect(lambda chosen_model: self._choose(chosen_model.name, chosen_model.folder))
            model_card.removed.connect(lambda chosen_model: self._send(RemoveModel(id=new_id(), name=chosen_model.name)))
            model_card.export_wanted.connect(lambda: start(self, self._ask_where_to_export()))
        active = [each for each, model in zip(self._model_cards, models, strict=True) if model.active]
        for model_card in active:
            self._active.addWidget(model_card)
        self._active_part.setVisible(bool(active))
        others = self._model_cards[len(active) :]
        self._others.show_cards(others)
        self._others_part.setVisible(bool(others))

    def _draw_offers(self, why_not: str) -> None:
        state = self._state
        results = self._results
        offers = results.models if results is not None else ()
        if results is None:
            self._hub.show_offers("", "", ())
        else:
            none = tr("No model that Waggle can train matches. Try a shorter name.")
            title = tr("Results on Hugging Face for “%1”").replace("%1", one_line(results.words))
            self._hub.show_offers(title, "" if offers else none, offers)
        self._hub.setVisible(results is not None)
        here = {model.name: model for model in state.models.models if model.name} if state.models else {}
        suggested = [offer for offer in (state.models.suggested if state.models else ()) if offer.name not in here]
        too_large = [offer for offer in suggested if offer.fits is False]
        suggested = [offer for offer in suggested if offer.fits is not False]
        suggested.sort(key=lambda offer: not offer.recommended)
        self._suggested.show_offers(tr(SUGGESTED), tr(ABOUT_SUGGESTED), suggested)
        self._suggested.setVisible(bool(suggested) and results is None)
        self._too_large.show_offers(tr(TOO_LARGE), "", too_large)
        self._too_large.setVisible(bool(too_large) and results is None)
        cards = (*self._hub.cards, *self._suggested.cards, *self._too_large.cards)
        for offer_card, offer in zip(cards, (*offers, *suggested, *too_large), strict=True):
            coming, failure = offer.name == self._coming, self._failure(offer.name)
            unlicensed = bool(failure) and needs_licence(state.choice)
            offer_card.show_offer(
                offer, here.get(offer.name), coming=coming, why_not=why_not, failure=failure, unlicensed=unlicensed
            )

    def _search(self, words: str) -> None:
        self._await_results(self.context.client.ask(SearchModels(id=new_id(), words=words), HubResults))

    def _await_results(self, answer: asyncio.Future[HubResults]) -> None:
        self._searching = answer
        self._field.say(tr("Searching Hugging Face."))
        start(self, self._show_results(answer))

    async def _show_results(self, answer: asyncio.Future[HubResults]) -> None:
        try:
            results = await asyncio.shield(answer)
        except EngineError as error:
            if answer is self._searching:
                self._searching = None
                self._field.say(refusal_words(error), "bad")
                announce_refusal(error, self._field.message_label, self.context.client)
            return
        if answer is self._searching:
            self._results, self._searching = results, None
            self._field.say("")
            self.show_state(self._state, 0.0)

    def _clear_search(self) -> None:
        self._results = None
        self._field.edit.clear()
        self.show_state(self._state, 0.0)
        self._field.edit.setFocus()

    def _choose(self, name: str, folder: str) -> None:
        self._send(ChooseModel(id=new_id(), name=name, folder=folder))

    def _send(self, command: AnyCommand) -> None:
        self._say("")
        start(self, self._say_if_refused(self.context.client.command(command)))

    async def _say_if_refused(self, answer: asyncio.Future[CommandDone]) -> None:
        try:
            await answer
        except EngineError as error:
            self._say_refused(error)

    def _say_refused(self, error: EngineError) -> None:
        self._say(refusal_words(error), "bad")
        announce_refusal(error, self._message, self.context.client)

    async def _ask_for_folder(self) -> None:
        dialog = file_dialog(self, tr("A transformers folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        if path := await chosen_path(dialog):
            self._choose("", str(path))

    async def _ask_where_to_export(self) -> None:
        if not self._here:
            self._say(tr("On the computer that the engine runs on, `waggle export FOLDER` writes it."))
            return
        if path := await chosen_path(file_dialog(self, tr("Export to a new folder"), saves="waggle-model")):
            self.export(str(path))

    def export(self, path: str) -> None:
        """Export what was learned to a new folder."""
        self._await_export(self.context.client.ask(ExportModel(id=new_id(), path=path), ModelExported))

    def _await_export(self, answer: asyncio.Future[ModelExported]) -> None:
        self._exporting = answer
        self._say(tr("Writing it as it is after the step in progress."))
        start(self, self._show_export(answer))

    async def _show_export(self, answer: asyncio.Future[ModelExported]) -> None:
        try:
            self._say(exported_words(await asyncio.shield(answer)), "good")
        except EngineError as error:
            self._say_refused(error)
        self._exporting = None

    def _say(self, words: str, tone: str = "text") -> None:
        say_in(self._message, words, tone)
        self._message_card.setVisible(bool(words))
