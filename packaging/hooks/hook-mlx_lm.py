"""Adds mlx-lm's model modules and LoRA layers, which Waggle imports by name (models/shared/mlx_lm/modules.py).

What the package itself imports is excluded (app_contents.MLX_LM_PROGRAMS): Waggle never runs its `__init__`.
"""

from pathlib import Path

from PyInstaller.utils.hooks import get_package_paths

_MODELS = Path(get_package_paths("mlx_lm")[1]) / "models"

hiddenimports = [
    "mlx_lm.models",
    "mlx_lm.tuner",
    "mlx_lm.tuner.lora",
    *(f"mlx_lm.models.{path.stem}" for path in sorted(_MODELS.glob("*.py")) if path.stem != "__init__"),
]
