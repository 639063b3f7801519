"""Adds the models of transformers, which it imports by name, and their sources, from which it lists them when it is imported.

The hook of pyinstaller-hooks-contrib, in whose place this one runs, adds metadata of packages and the sources.
"""

from pathlib import Path

from PyInstaller.utils.hooks import copy_metadata, get_package_paths

_MODELS = Path(get_package_paths("transformers")[1]) / "models"
_NEEDED = ("configuration_", "modeling_")

module_collection_mode = "pyz+py"
datas = [
    entry
    for name in (
        "transformers",
        "torch",
        "tokenizers",
        "safetensors",
        "huggingface_hub",
        "numpy",
        "packaging",
        "tqdm",
        "peft",
        "accelerate",
    )
    for entry in copy_metadata(name)
]
hiddenimports = ["transformers.models", "transformers.core_model_loading", "transformers.pytorch_utils"]
for _path in sorted(_MODELS.glob("*/*.py")):
    if _path.stem == "__init__":
        hiddenimports.append(f"transformers.models.{_path.parent.name}")
    elif _path.stem.startswith(_NEEDED):
        hiddenimports.append(f"transformers.models.{_path.parent.name}.{_path.stem}")
