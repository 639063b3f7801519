"""What the frozen app excludes of transformers' models: what computes or prepares pictures, sound and video.

Waggle trains language models. Those of other kinds are most of transformers, which is found out here without importing it.
Configurations and tokenizers of all models stay, because a language model may use those of another one.
"""

import importlib.util
import re
from pathlib import Path

MAPPING = re.compile(r"^MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict\((.*?)^\)", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r'"(\w+)"\)')
DEFINED = re.compile(r"^class (\w+)", re.MULTILINE)
IMPORTED = re.compile(r"^\s*from \.\.(?:\.models\.)?(\w+)", re.MULTILINE)
OWN_KIND = re.compile(r'^    model_type = "([\w-]+)"', re.MULTILINE)
KIND_OF_PART = re.compile(r'\bmodel_type="([\w-]+)"')
OTHER_MEDIA = ("image_processing_", "video_processing_", "feature_extraction_", "processing_")


def computing() -> list[str]:
    """The modules that compute language models."""
    models = _models()
    return [_module(path) for folder in sorted(_folders(models)) for path in sorted(models.glob(f"{folder}/modeling_*.py"))]


def imported_by_name() -> list[str]:
    """What transformers imports by name: the package of each model, its configuration, and what computes language models."""
    packages = [f"transformers.models.{path.parent.name}" for path in sorted(_models().glob("*/__init__.py"))]
    return [*packages, *map(_module, sorted(_models().glob("*/configuration_*.py"))), *computing()]


def left_out() -> list[str]:
    """The modules that no language model needs; none where transformers is not installed, as on a Mac."""
    if importlib.util.find_spec("transformers") is None:
        return []
    models = _models()
    language = _folders(models)
    files = sorted(path for path in models.glob("*/*.py") if path.parent.name != "auto")
    return [
        _module(path)
        for path in files
        if path.name.startswith(OTHER_MEDIA) or (path.name.startswith("modeling_") and path.parent.name not in language)
    ]


def _folders(models: Path) -> set[str]:
    """The folders of the language models, and of those that they import or that their configurations name as parts."""
    computing, configuring = _sources(models, "modeling"), _sources(models, "configuration")
    folder_of = {kind: folder for folder, text in configuring.items() for kind in OWN_KIND.findall(text)}
    mapping = MAPPING.search(computing["auto"])
    assert mapping is not None
    classes = set(NAMED.findall(mapping[1]))
    waiting = {folder for folder, text in computing.items() if classes & set(DEFINED.findall(text))}
    folders = set[str]()
    while waiting:
        folders.add(folder := waiting.pop())
        parts = {folder_of[kind] for kind in KIND_OF_PART.findall(configuring.get(folder, "")) if kind in folder_of}
        imported = set(IMPORTED.findall(computing.get(folder, "") + configuring.get(folder, ""))) & computing.keys()
        waiting |= (parts | imported) - folders
    return folders


def _sources(models: Path, part: str) -> dict[str, str]:
    """The joined text of a part's files, by the model's folder."""
    texts = dict[str, str]()
    for path in sorted(models.glob(f"*/{part}_*.py")):
        texts[path.parent.name] = texts.get(path.parent.name, "") + path.read_text(encoding="utf-8")
    return texts


def _module(path: Path) -> str:
    return f"transformers.models.{path.parent.name}.{path.stem}"


def _models() -> Path:
    specification = importlib.util.find_spec("transformers")
    assert specification is not None
    assert specification.origin is not None
    return Path(specification.origin).parent / "models"
