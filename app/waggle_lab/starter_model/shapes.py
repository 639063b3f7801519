"""Models of published shapes with random weights, to measure speed and memory without a download.

`waggle-lab shapes NAME` writes one as a transformers folder and prints its path. Its text is noise; its costs are real.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from waggle.core import paths
from waggle.core.errors import LabError

QWEN: dict[str, Any] = {
    "vocab_size": 151_936, "rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    "tie_word_embeddings": True, "bos_token_id": 151_643, "eos_token_id": 151_645,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {  # from the config.json of each model on the hub
    "Qwen2.5-0.5B": QWEN | {
        "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32_768,
    },
    "SmolLM2-135M": {
        "model_type": "llama", "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e5},
    },
    "Qwen3-0.6B": QWEN | {
        "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40_960,
    },
    "Llama-3.2-1B": {
        "model_type": "llama", "vocab_size": 128_256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "bos_token_id": 128_000, "eos_token_id": 128_001,
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 32.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    },
}  # fmt: skip
PRECISIONS = ("float32", "bfloat16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=SHAPES, help="the published model")
    parser.add_argument("--precision", choices=PRECISIONS, default="bfloat16", help="of the weights (default: as published)")
    parser.add_argument("--layers", type=int, help="fewer layers than published, for a quick test")
    parser.add_argument("--out", type=Path, help="folder to create the model's folder in (default: the cache)")


def run(arguments: argparse.Namespace) -> int:
    root = arguments.out or paths.cache() / "shapes"
    folder = write(root, arguments.name, arguments.precision, layers=arguments.layers)
    sys.stdout.write(f"{folder}\n")
    return 0


def write(root: Path, name: str, precision: str = "bfloat16", *, layers: int | None = None) -> Path:
    """The folder of a random model of this shape, created if necessary; raises LabError."""
    import torch

    folder = root / f"{name}-{precision}{f'-{layers}-layers' if layers else ''}"
    if folder.is_dir():
        return folder
    unfinished = folder.with_name(f".writing-{folder.name}-{os.getpid()}")
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model(name, precision, layers=layers).save_pretrained(unfinished)
        for file_name in (
            "tokenizer.json",
            "tokenizer_config.json",
        ):  # any tokenizer will do, because only speed and memory are measured
            shutil.copy(paths.starter() / file_name, unfinished)
        os.replace(unfinished, folder)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise LabError(f"{folder} cannot be written: {error.strerror or error}.", "Make room, or choose --out.") from error
    return folder


def model(name: str, precision: str = "float32", *, layers: int | None = None) -> Any:
    """A transformers model of this shape, on torch's default device; raises LabError."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = dict(SHAPES[name])
    if layers is not None and not 1 <= layers <= shape["num_hidden_layers"]:
        raise LabError(f"{name} has {shape['num_hidden_layers']} layers, not {layers}.", "Choose from 1 to that number.")
    shape["num_hidden_layers"] = layers or shape["num_hidden_layers"]
    config = AutoConfig.for_model(shape.pop("model_type"), **shape)
    return AutoModelForCausalLM.from_config(config, dtype=getattr(torch, precision))
