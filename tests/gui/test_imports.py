"""The window knows Qt and the protocol: importing it loads no model, no network and no chart."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import waggle.gui

MODULES = sorted(module.name for module in pkgutil.walk_packages(waggle.gui.__path__, "waggle.gui."))
HEAVY = ("torch", "transformers", "hivemind", "mlx", "reasoning_gym", "safetensors", "tokenizers")
LOWER = ("waggle.engine", "waggle.tasks", "waggle.network", "waggle.models", "waggle.sapo", "waggle.rl", "waggle_lab")


def loaded_by(modules: list[str]) -> set[str]:
    lines = "\n".join(f"import {name}" for name in modules)
    code = f"import sys\n{lines}\nprint(chr(10).join(sys.modules))"
    environment = {"PYTHONPATH": str(Path(waggle.__file__).parents[1]), "QT_QPA_PLATFORM": "offscreen", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_no_module_of_the_window_loads_a_model_or_a_network() -> None:
    loaded = loaded_by(MODULES)
    assert not loaded & {*HEAVY, *LOWER}


def test_the_door_does_not_load_the_charts() -> None:
    assert not {"pyqtgraph", "numpy"} & loaded_by(["waggle.gui.application.main"])


def test_the_state_of_the_window_knows_no_widget() -> None:
    state = [name for name in MODULES if name.startswith("waggle.gui.state.")]
    assert "waggle.gui.state.store" in state
    assert "PySide6.QtWidgets" not in loaded_by(state)
