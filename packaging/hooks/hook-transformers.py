"""transformers lists its model folders and reads the text of what is in them, so the families we train come as source."""

import sys
from pathlib import Path

from PyInstaller.utils.hooks import collect_submodules, copy_metadata, get_module_attribute, is_module_satisfies

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from needs import architectures

module_collection_mode = "pyz+py"
datas = copy_metadata("transformers")
for _name, _wanted in get_module_attribute("transformers.dependency_versions_table", "deps").items():
    try:
        if is_module_satisfies(_wanted):
            datas += copy_metadata(_name)
    except Exception:  # noqa: BLE001 - a library that is not here cannot be asked, and is not needed
        continue
hiddenimports = [
    module for family in ("auto", *architectures()) for module in collect_submodules(f"transformers.models.{family}")
]
