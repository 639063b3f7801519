"""Adds the models of transformers, which it imports by name, and their sources, from which it lists them when it is imported.

The hook of pyinstaller-hooks-contrib, in whose place this one runs, adds metadata of packages and the sources.
"""

import language_models
from PyInstaller.utils.hooks import copy_metadata

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
hiddenimports = [
    "transformers.models",
    "transformers.core_model_loading",
    "transformers.pytorch_utils",
    *language_models.imported_by_name(),
]
