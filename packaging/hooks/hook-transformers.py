"""Adds the models of transformers, which it imports by name, and their sources, from which it lists them when it is imported.

The hook of pyinstaller-hooks-contrib, in whose place this one runs, adds metadata of packages and the sources.
"""

import language_models
from PyInstaller.utils.hooks import copy_metadata

module_collection_mode = "pyz+py"
# When it is imported, it looks up the versions of packages that it needs, and of some that those need.
datas = copy_metadata("transformers", recursive=True)
for _package in ("torch", "peft", "accelerate"):
    datas += copy_metadata(_package)
hiddenimports = [
    "transformers.models",
    "transformers.core_model_loading",
    "transformers.pytorch_utils",
    *language_models.imported_by_name(),
]
