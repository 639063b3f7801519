"""The sliding windows of a model's layers: how many tokens a token sees, itself and those right before it (arXiv 2004.05150).

config.json says it in the words of its kind, and this module reads it as transformers does: Mistral and Phi 3 have one window in
all layers, whatever else is said; others have it in the layers of that type, or if no types are there, Gemma 3 in five of six
layers, and Qwen from `max_window_layers` on.
"""

from collections.abc import Mapping
from typing import Any

from waggle.models.shared.configuration.model_kinds import ModelKind

FULL, SLIDING = "full_attention", "sliding_attention"  # types of layers


def of_layers(kind: ModelKind, table: Mapping[str, Any]) -> list[int | None]:
    """The window of each layer, None for a layer that sees the whole text; empty if no layer has one.

    `table` has no settings without a value. Raises TypeError and ZeroDivisionError for settings of another form.
    """
    window: int | None = table.get("sliding_window")
    if kind.windows == "from a layer on" and not table.get("use_sliding_window"):
        window = None
    types = None if kind.windows == "all layers" else table.get("layer_types")
    windows = [window if each == SLIDING else None for each in types or _usual_types(kind, table)]
    return windows if any(each is not None for each in windows) else []


def are_known(kind: ModelKind, table: Mapping[str, Any], windows: tuple[int | None, ...]) -> bool:
    """Whether all types of layers are known, each layer has one, and those with a window have its length."""
    types = table.get("layer_types")
    if kind.windows == "all layers" or not types:
        return True
    if len(types) != table["num_hidden_layers"] or not {FULL, SLIDING}.issuperset(types):
        return False
    return SLIDING not in types or (bool(windows) and kind.windows != "none")


def _usual_types(kind: ModelKind, table: Mapping[str, Any]) -> list[str]:
    layers = range(table["num_hidden_layers"])
    if kind.windows == "none":
        return []
    if kind.windows == "all layers":
        return [SLIDING] * len(layers)
    if kind.windows == "most layers":
        every = table.get("sliding_window_pattern", 6)
        return [FULL if (number + 1) % every == 0 else SLIDING for number in layers]
    first = table.get("max_window_layers", 28)
    return [SLIDING if number >= first else FULL for number in layers]
