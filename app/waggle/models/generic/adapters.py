"""LoRA by peft over all linear layers except the head, with the rank, scale, beginning and names of models/shared/lora.py."""

from typing import Any

import torch

from waggle.core.errors import ModelError
from waggle.models.shared.lora import RANK, SCALE, first_a

NAME = "default"  # of the adapter, inside peft


def inject(network: Any) -> dict[str, torch.nn.Parameter]:
    """Put adapters beside the frozen weights of a model, and return them by name. Raises ModelError."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ModelError("LoRA for this model needs peft, which is not installed.", "Set model.training to lean.") from error
    network.requires_grad_(False)
    targets = _linear_layers(network)
    if not targets:
        raise ModelError("This model has no layer that LoRA could train.", "Set model.training to lean.")
    config = LoraConfig(r=RANK, lora_alpha=int(SCALE * RANK), target_modules=targets, lora_dropout=0.0, bias="none")
    inject_adapter_in_model(config, network, NAME)
    trained: dict[str, torch.nn.Parameter] = {}
    for name, parameter in network.named_parameters():
        if f".{NAME}." not in name:
            continue
        plain = name.replace(f".{NAME}.", ".")
        with torch.no_grad():
            if ".lora_A." in name:
                start = first_a(plain.removesuffix(".lora_A.weight"), parameter.shape[1])
                parameter.copy_(torch.from_numpy(start))
            parameter.data = parameter.data.float()
        parameter.requires_grad_(True)
        trained[plain] = parameter
    return trained


def _linear_layers(network: Any) -> list[str]:
    """The names of all linear layers but the head: nn.Linear, and the Conv1D of GPT-2."""
    from transformers.pytorch_utils import Conv1D

    head = network.get_output_embeddings()
    return [
        name
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D) and module is not head
    ]
