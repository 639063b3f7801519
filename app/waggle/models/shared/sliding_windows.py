"""The sliding windows of a model's layers: how many tokens a token sees, itself and those right before it (arXiv 2004.05150).

config.json says it in the words of its kind, and this module reads it as transformers does: Mistral and Phi 3 have one window in
all layers, whatever else is said; the others have it in the layers of that type, or from `max_window_layers` on.
"""

from collections.abc import Mapping
from typing import Any

FULL, SLIDING = "full_attention", "sliding_attention"  # types of layers
IN_ALL_LAYERS = ("mistral", "phi3")


def of_layers(table: Mapping[str, Any]) -> list[int | None]:
    """The window of each layer, None for a layer that sees the whole text; empty if no layer has one.

    `table` has no settings without a value.
    """
    layers: int = table["num_hidden_layers"] if isinstance(table.get("num_hidden_layers"), int) else 0
    window: int | None = table.get("sliding_window")
    if table["model_type"] in IN_ALL_LAYERS:
        windows = [window] * layers
    else:
        window = window if table.get("use_sliding_window") else None
        first = table.get("max_window_layers", 28)
        types = table.get("layer_types") or [SLIDING if number >= first else FULL for number in range(layers)]
        windows = [window if each == SLIDING else None for each in types]
    return windows if any(each is not None for each in windows) else []


def are_known(table: Mapping[str, Any], windows: tuple[int | None, ...]) -> bool:
    """Whether all types of layers are known, and each layer has one."""
    if table["model_type"] in IN_ALL_LAYERS:
        return True
    types = table.get("layer_types") or ()
    if types and (len(types) != table["num_hidden_layers"] or not {FULL, SLIDING}.issuperset(types)):
        return False
    return bool(windows) or SLIDING not in types
