"""Cards of models: one that is on this computer, and one of the hub that can be chosen."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from waggle.core.message import Message
from waggle.gui.i18n.formatting import breakable, one_line, size, tr
from waggle.gui.pages.models.model_words import (
    UNCHECKED,
    Offers,
    fit_label,
    fit_parts,
    model_name,
    model_summary,
    offer_size,
    offer_terms,
    offer_title,
)
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.controls.confirm_button import ConfirmLink
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.painted_widgets import Chip, Icon
from waggle.gui.widgets.text import ElidedLabel, say_in, set_tip, text
from waggle.protocol.events_models import ModelDetails, ModelOffer

MARGINS = (20, 14, 20, 14)


class ModelCard(QFrame):
    """One model on this computer. `chosen` and `removed` carry it; the model in training offers an export instead."""

    chosen = Signal(object)
    removed = Signal(object)
    export_wanted = Signal()

    def __init__(self, theme: Theme, model: ModelDetails, offers: Offers, name: str = "") -> None:
        """`name`: what the model in training is called; others are called as in the suggestions, or as on the hub."""
        super().__init__()
        self.setProperty("kind", "card")
        self.setProperty("now", model.active)
        title = name or model_name(model, offers)
        head = row((ElidedLabel(theme, title, "title" if model.active else "heading"), 0 if model.active else 1))
        self._chip = Chip(theme)
        head.addWidget(self._chip)
        if model.active:
            head.addStretch(1)
        self._about, self._fit = text(theme, "", "small", "soft", wrap=True), text(theme, "", "small", "soft", wrap=True)
        self._form = text(theme, "", "small", "soft", wrap=True)
        if model.active:
            self._act = Button(theme, tr("Export what was learned"), small=True, icon="share")
            self._act.clicked.connect(self.export_wanted)
        else:
            self._act = Button(theme, _act_words(model), small=True)
            self._act.setAccessibleName(tr("Train %1").replace("%1", title))
            self._act.clicked.connect(lambda: self.chosen.emit(model))
        head_box = as_widget(head)
        head_box.setMinimumHeight(
            theme.size["chip"]
        )  # the names of neighbours are at the same height, with a chip or without one
        words = column(head_box, self._about, self._fit, self._form, gap=5)
        if model.active:  # the widest card, alone on its line
            self.setLayout(row((words, 1), self._act, gap=20, margins=MARGINS))
            return
        acts = [self._act, *([self._remover(theme, model, title)] if model.kind == "hub" else [])]
        self.setLayout(column(words, None, row(*acts, None, margins=(0, 4, 0, 0)), gap=5, margins=MARGINS))

    def _remover(self, theme: Theme, model: ModelDetails, title: str) -> ConfirmLink:
        name = tr("Remove %1 from this computer").replace("%1", title)
        sure = tr("Remove %1").replace("%1", size(model.bytes))
        button = ConfirmLink(theme, tr("Remove"), name, question=sure, question_name=f"{name}: {size(model.bytes)}")
        button.confirmed.connect(lambda: self.removed.emit(model))
        return button

    def show_model(
        self, model: ModelDetails, offers: Offers, form: str, why_not: str, failure: str = "", *, trains: bool = True
    ) -> None:
        """Show the model's present state.

        `form`: how it is asked, in words; `why_not`: why no button can be pressed; `failure`: why its last choice failed.
        `trains`: whether the engine trains, of the active model.
        """
        say_in(self._form, form, "soft")
        self._about.setText(breakable(model_summary(model, offers)))
        unchecked, offer = "" if model.active else tr(UNCHECKED), offers.get(model.name)
        fit = model.fit or (offer.fit if offer is not None else model.fit)  # of one that has not wholly arrived, too
        first, how = (failure, "") if failure else fit_parts(fit)
        say_in(self._fit, first or unchecked, "bad" if failure else "soft")
        set_tip(self._fit, how)
        if model.active:
            self._chip.say(*((tr("In training"), "accent", "on") if trains else (tr("Not training"), "plain", "")))
        else:
            self._act.say(_act_words(model))
            fits = offer.fits if offer is not None else None
            self._chip.setVisible(fits is not None)
            if fits is not None:
                self._chip.say(*_fit_chip(fit, fits=fits))
        for act in self.findChildren(Button):
            act.setEnabled(not why_not and (model.rounds > 0 or not model.active))
            act.setToolTip(why_not)


class OfferCard(QFrame):
    """A model of the hub: what it is, whether it fits here, and a button that downloads it. `chosen` carries its name."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, offer: ModelOffer) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self.offer = offer
        self._chip, self._fit = Chip(theme), text(theme, "", "small", "soft", wrap=True)
        self._account = text(theme, tr("Needs a free account"), "caption", "soft")
        gated = as_widget(row(Icon(theme, "lock", "text_soft", 14), self._account, gap=6))
        if not offer.gated:  # never show what has no parent yet: it would be a window
            gated.hide()
        set_tip(
            gated,
            tr("You get it once you have accepted its licence on Hugging Face. Waggle shows how."),
        )
        good_at = text(theme, tr(offer.good_at), "body", wrap=True)
        if not offer.good_at:
            good_at.hide()
        self._act = Button(theme, "", "primary" if offer.recommended else "plain", small=True)
        self._act.clicked.connect(lambda: self.chosen.emit(offer.name))
        head = as_widget(row((ElidedLabel(theme, offer_title(offer), "heading"), 1), self._chip))
        head.setFixedHeight(theme.size["chip"])  # the names of neighbours are at the same height, with a chip or without one
        owned = ElidedLabel(theme, one_line(offer.name), "small", "text_faint")
        if offer.title:  # one that Waggle suggests: its owner is known
            owned.hide()
            set_tip(head, one_line(offer.name))
        lines = (
            head,
            owned,
            good_at,
            *((None,) if offer.good_at else ()),  # the facts of neighbours stand at the same height
            self._fit,
            ElidedLabel(theme, offer_size(offer), "caption", "text_faint"),
            row(ElidedLabel(theme, offer_terms(offer), "caption", "text_faint"), gated, None, gap=12),
            *(() if offer.good_at else (None,)),
            row(self._act, None, margins=(0, 4, 0, 0)),
        )
        self.setLayout(column(*lines, gap=5, margins=MARGINS))

    def show_offer(
        self,
        offer: ModelOffer,
        here: ModelDetails | None,
        *,
        coming: bool,
        why_not: str,
        failure: str = "",
        unlicensed: bool = False,
    ) -> None:
        """Show its present state. `here`: the same model on this computer; `coming`: it is being downloaded or checked.

        `failure`: why its last choice failed, which counts for more than the forecast whether it fits, unless `unlicensed`: only
        its licence was not accepted.
        """
        if unlicensed := unlicensed and offer.gated:
            failure = ""
        say_in(
            self._account, tr("Not accepted yet") if unlicensed else tr("Needs a free account"), "bad" if unlicensed else "soft"
        )
        fits = None if failure else offer.fits
        first, how = (failure, "") if failure else fit_parts(offer.fit)
        say_in(self._fit, first or tr(UNCHECKED), "bad" if failure else "soft")
        set_tip(self._fit, how)
        active = here is not None and here.active
        if active:
            self._chip.say(tr("In training"), "accent", "on")
        elif fits is None:
            self._chip.say(tr("Not checked"), "plain")
        elif fits and offer.recommended:
            self._chip.say(tr("Recommended here"), "accent", "check")
        else:
            self._chip.say(*_fit_chip(offer.fit, fits=fits))
        self._chip.setVisible(active or not failure)
        self._act.setVisible(not active)
        words = _act_words(here, coming=coming)
        self._act.say(words)
        self._act.setAccessibleName(f"{words}: {offer_title(offer)}")
        reason = why_not or (how or first if fits is False else "")
        self._act.setEnabled(not reason and not coming)
        set_tip(self._act, reason)


def _fit_chip(fit: Message, *, fits: bool) -> tuple[str, str, str]:
    """Words, tone and icon of the chip that says whether a model fits."""
    return (fit_label(fit), "good", "check") if fits else (tr("Too large"), "plain", "")


def _act_words(here: ModelDetails | None, *, coming: bool = False) -> str:
    """What the button does with a model that is `here`, wholly or in part, or on the hub only."""
    if coming:
        return tr("Downloading")
    if here is None:
        return tr("Download and train")
    return tr("Train this one") if here.finished else tr("Continue the download")
