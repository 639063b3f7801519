"""LoRA by peft over all linear layers except the head, with the rank, scale, beginning and names of models/shared/lora.py."""

import warnings
from typing import Any

import torch

from waggle.core.errors import ModelError
from waggle.models.generic import four_bits
from waggle.models.shared.lora import RANK, SCALE, first_a

NAME = "default"  # of the adapter, inside peft
LORA_A = ".lora_A.weight"


class _Bare(torch.nn.Module):
    """A model without its configuration, from which peft would take other layers than these in some kinds of models."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network


def inject(network: Any) -> dict[str, torch.nn.Parameter]:
    """Put adapters beside the frozen weights of a model, and return them by name. Raises ModelError."""
    try:
        with four_bits.quiet_import():
            from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ModelError("LoRA for this model needs peft, which is not installed.", "Set model.training to lean.") from error
    network.requires_grad_(False)
    targets = [f"network.{name}" for name in _linear_layers(network)]
    if not targets:
        raise ModelError("This model has no layer that LoRA could train.", "Set model.training to lean.")
    config = LoraConfig(r=RANK, lora_alpha=int(SCALE * RANK), target_modules=targets, lora_dropout=0.0, bias="none")
    with warnings.catch_warnings(), four_bits.quiet_import():
        warnings.simplefilter("ignore")  # it says of each Conv1D that it treats it as such
        inject_adapter_in_model(config, _Bare(network), NAME)
    trained: dict[str, torch.nn.Parameter] = {}
    for name, parameter in network.named_parameters():
        if f".{NAME}." not in name:
            continue
        plain = name.replace(f".{NAME}.", ".")
        parameter.data = parameter.data.float()
        if plain.endswith(LORA_A):
            parameter.data.copy_(torch.from_numpy(first_a(plain.removesuffix(LORA_A), parameter.shape[1])))
        parameter.requires_grad_(True)
        trained[plain] = parameter
    return trained


def _linear_layers(network: Any) -> list[str]:
    """The names of all linear layers: nn.Linear, and the Conv1D of GPT-2.

    Left out are the head, and the output of a Mamba mixer, whose weights a fused kernel may read past the adapters.
    """
    from transformers.pytorch_utils import Conv1D

    head = network.get_output_embeddings()
    fused = {f"{name}.out_proj" for name, module in network.named_modules() if hasattr(module, "conv1d")}
    return [
        name
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D) and module is not head and name not in fused
    ]
