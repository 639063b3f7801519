"""mlx-lm's model modules and LoRA layers, without its package: that would import transformers, and lower the limit of open files.

Importing this file imports neither MLX nor mlx-lm. A model is computed by a module of mlx-lm or not at all: a `model_file` in a
stranger's config.json is never read.
"""

import importlib
import importlib.util
import re
import sys
import types
from typing import Any

PACKAGES = ("mlx_lm", "mlx_lm.models", "mlx_lm.tuner")
NAME = re.compile(r"^[A-Za-z0-9_.-]{1,64}\Z")
# Kinds that a module of another name computes: first as in mlx_lm.utils, then the text models of transformers 5.
MODULES = {
    "mistral": "llama",
    "llava": "mistral3",
    "phi-msft": "phixtral",
    "falcon_mamba": "mamba",
    "joyai_llm_flash": "deepseek_v3",
    "kimi_k2": "deepseek_v3",
    "qwen2_5_vl": "qwen2_vl",
    "minimax_m2": "minimax",
    "iquestcoder": "llama",
    "xverse": "llama",
    "gemma4_unified": "gemma4",
    "deepseek_v41_text": "deepseek_v41",
    "ministral": "llama",
    "qwen3_5_text": "qwen3_5",
    "qwen3_5_moe_text": "qwen3_5_moe",
    "gemma3n_text": "gemma3n",
}
NO_MODELS = frozenset(  # parts of models, and one that ends the program where a library is missing
    ("activations", "base", "bitlinear_layers", "cache", "gated_delta", "mla", "olmo", "pipeline", "rope_utils", "ssm",
     "switch_layers")
)  # fmt: skip


def is_known(kind: object) -> bool:
    """Whether mlx-lm, if it is installed, has a module for models of a kind."""
    name = MODULES.get(kind, kind) if isinstance(kind, str) else ""
    if not NAME.match(name) or "." in name or name in NO_MODELS or not _install_packages():
        return False
    return importlib.util.find_spec(f"mlx_lm.models.{name}") is not None


def model_module(kind: str) -> Any:
    """The module with `Model` and `ModelArgs` of a kind for which `is_known`. Imports MLX. Raises ImportError."""
    _install_packages()
    return importlib.import_module(f"mlx_lm.models.{MODULES.get(kind, kind)}")


def part(name: str) -> Any:
    """A module of mlx-lm that holds parts of models, such as `models.cache` or `tuner.lora`. Raises ImportError."""
    _install_packages()
    return importlib.import_module(f"mlx_lm.{name}")


def _install_packages() -> bool:
    """Put empty packages in the place of mlx-lm's own, unless those are imported already. False if it is not installed."""
    for name in PACKAGES:
        if name in sys.modules:
            continue
        try:
            spec = importlib.util.find_spec(name)  # does not run it; its parent is in place already
        except (ImportError, ValueError):
            return False
        if spec is None or spec.submodule_search_locations is None:
            return False
        package = types.ModuleType(name)
        package.__path__ = list(spec.submodule_search_locations)
        package.__spec__ = spec
        sys.modules[name] = package
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, package)
    return True
