"""Linear layers in 4 bits (NF4 with doubly quantised scales; QLoRA, arXiv 2305.14314, section 3), by bitsandbytes.

Their weights are frozen: only adapters beside them are trained. A product first turns a layer's weights back into the precision
of the product, which takes longer than the product itself on a CPU.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from waggle.core.errors import ModelError
from waggle.core.message import Message

MISSING = Message("Weights in 4 bits need bitsandbytes, which is not installed.")


def quantise(network: Any, device: torch.device) -> None:
    """Move a model to a device, with the weights of its linear layers in 4 bits there. The head and embeddings stay as they are.

    One layer is moved at a time, so the device never holds the whole model in its own precision. Raises ModelError.
    """
    library = _bitsandbytes()
    head = network.get_output_embeddings()
    layers = [
        (name, layer) for name, layer in network.named_modules() if isinstance(layer, torch.nn.Linear) and layer is not head
    ]
    for name, layer in layers:
        network.set_submodule(name, _in_four_bits(library, layer, device))
    network.to(device)


def _in_four_bits(library: Any, layer: torch.nn.Linear, device: torch.device) -> Any:
    has_bias, precision = layer.bias is not None, layer.weight.dtype
    result = library.nn.Linear4bit(
        layer.in_features, layer.out_features, bias=has_bias, compute_dtype=precision, quant_type="nf4", device="meta"
    )
    weight = library.nn.Params4bit(layer.weight.data, requires_grad=False, quant_type="nf4", module=result)
    result.weight = weight.to(device)  # which quantises it
    if has_bias:
        result.bias = torch.nn.Parameter(layer.bias.data.to(device), requires_grad=False)
    layer.weight.data = torch.empty(0, dtype=precision)  # its memory is needed for the layers that follow
    return result


def _bitsandbytes() -> Any:
    try:
        with quiet_import():
            import bitsandbytes
    except ImportError as error:
        raise ModelError(MISSING, "Set model.training to lora.") from error
    return bitsandbytes


@contextmanager
def quiet_import() -> Iterator[None]:
    """Import bitsandbytes in here, also where peft does so: it warns of kernels that could be downloaded."""
    log = logging.getLogger("bitsandbytes")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
