"""LoRA by mlx-lm's layers over all linear layers except the head, in the terms of models/shared/lora.py.

A layer may be quantised: then only its adapter is in full precision (QLoRA, arXiv 2305.14314).
"""

from typing import Any

from mlx.nn.layers.linear import Linear
from mlx.nn.layers.quantized import QuantizedLinear
from mlx.utils import tree_unflatten

from waggle.core.errors import ModelError
from waggle.models.shared.lora import RANK, SCALE
from waggle.models.shared.mlx_lm import modules as mlx_lm_modules

READ_DIRECTLY = ("prediction_coefs", "correction_coefs")  # layers whose weights Gemma 3n reads past any adapter
ROUTERS = ("gate", "router")  # of mixtures of experts; in transformers they are no linear layers


def inject(network: Any, layers: list[Any]) -> dict[str, Any]:
    """Put adapters around the linear layers within `layers`, and return mlx-lm's LoRA layers by name. Raises ModelError."""
    library = mlx_lm_modules.part("tuner.lora")
    inside = {id(module) for layer in layers for module in layer.modules()}
    adapted: dict[str, Any] = {}
    for name, module in network.named_modules():
        is_linear = type(module) in (Linear, QuantizedLinear) and id(module) in inside
        if is_linear and not name.endswith(READ_DIRECTLY) and not _is_router(network, name):
            adapted[name] = library.LoRALinear.from_base(module, r=RANK, dropout=0.0, scale=SCALE)
    if not adapted:
        raise ModelError("This model has no layer that LoRA could train.", "Set model.training to full.")
    network.update_modules(tree_unflatten(list(adapted.items())))
    return adapted


def _is_router(network: Any, name: str) -> bool:
    parent, _, last = name.rpartition(".")
    if last not in ROUTERS:
        return False
    stacked = mlx_lm_modules.part("models.switch_layers")
    experts = (stacked.SwitchGLU, stacked.SwitchMLP, stacked.SwitchLinear, stacked.QuantizedSwitchLinear)
    siblings = dict(network.named_modules())[parent].children().values()
    return any(isinstance(sibling, experts) for sibling in siblings)
