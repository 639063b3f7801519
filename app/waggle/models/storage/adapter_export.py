"""Export of adapters alone, in peft's form: `PeftModel.from_pretrained(base, folder)` reads them."""

import json
from pathlib import Path

from waggle.models.shared import lora, weight_files

FOLDER = "adapter"  # within an exported model
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
PREFIX = "base_model.model."  # which peft puts before each name


def write(adapters: Path, base_name: str, folder: Path) -> None:
    """Write the adapters of a checkpoint's file to a new folder. Raises OSError and SafetensorError."""
    arrays = weight_files.load(adapters)
    modules = sorted({name.removesuffix(".weight").rpartition(".")[0] for name in arrays})
    table = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_name,
        "r": lora.RANK,
        "lora_alpha": int(lora.SCALE * lora.RANK),
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": modules,  # by their whole names
        "inference_mode": True,
    }
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(table, indent=2), encoding="utf-8")
    weight_files.save({PREFIX + name: array for name, array in arrays.items()}, folder / WEIGHTS)
