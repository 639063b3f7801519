"""Models of the hub as the window offers them: Waggle's suggestions, and what a search brought, with whether they fit."""

from collections.abc import Iterable

from waggle.core.message import NOTHING, Message
from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared.suggested_models import SuggestedModel, suggested_models
from waggle.models.storage.hub_search import HubModel
from waggle.protocol.events_models import ModelOffer


def suggested(machine: DeviceCapacity | None, chosen: Settings) -> tuple[ModelOffer, ...]:
    """Waggle's suggestions, smallest first; whether they fit once this computer has been measured."""
    if machine is None:
        return tuple(offer_of(model) for model in suggested_models())
    return tuple(offer_of(model, verdict) for model, verdict in model_fit.suggestions(machine, chosen))


def offer_of(model: SuggestedModel, verdict: model_fit.FitVerdict | None = None) -> ModelOffer:
    """One suggestion."""
    return ModelOffer(
        name=model.name,
        title=model.title,
        licence=model.licence,
        gated=model.gated,
        weights=model.weights,
        bytes=model.download,
        good_at=Message(model.good_at),
        fits=verdict.fits if verdict else None,
        fit=verdict.sentence if verdict else NOTHING,
    )


def of_hub(models: Iterable[HubModel], machine: DeviceCapacity | None) -> tuple[ModelOffer, ...]:
    """What a search brought. Only what is certainly too large is known not to fit: the rest is told by the configuration.

    A suggested model is as large as its suggestion says: the hub counts weights twice that a model uses in two places.
    """
    sizes = {model.name: (model.weights, model.download) for model in suggested_models()}
    sized_models = ((model, *sizes.get(model.name, (_weights(model), model.size))) for model in models)
    return tuple(
        ModelOffer(
            name=model.name,
            licence=model.licence,
            gated=model.gated,
            weights=weights,
            bytes=download,
            downloads=model.downloads,
            quantised=model.quantised,
            fits=False if (why := _too_large(model, machine)) else None,
            fit=why,
        )
        for model, weights, download in sized_models
    )


def _weights(model: HubModel) -> int:
    """The hub counts numbers as they are stored, several in one where they are quantised: then nobody knows."""
    return 0 if model.quantised else model.weights


def _too_large(model: HubModel, machine: DeviceCapacity | None) -> Message:
    if machine is None or model.quantised or not model.weights:
        return NOTHING
    return model_fit.too_large(machine, model.weights)
