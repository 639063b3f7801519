"""The app for Macs has mlx-lm's model modules and nothing that needs transformers."""

import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import app_contents
import pytest

import waggle

SOURCE = Path(waggle.__file__).parents[1]
HOOKS = Path(app_contents.__file__).parent / "hooks"
PROGRAM = """
import importlib, sys
import check_exclusions
from waggle.models.shared.mlx_lm import modules as mlx_lm_modules

check_exclusions.leave_out("torch", *sys.argv[1].split(","))
for name in sys.argv[2].split(","):
    assert mlx_lm_modules.is_known(name), name
    module = mlx_lm_modules.model_module(name)
    assert hasattr(module, "Model") and hasattr(module, "ModelArgs"), name
mlx_lm_modules.part("tuner.lora").LoRALinear
print(*(name for name in ("torch", "transformers", "mlx_lm.utils", "mlx_lm.generate") if name in sys.modules))
"""


@pytest.fixture
def hidden() -> list[str]:
    pytest.importorskip("PyInstaller")
    if find_spec("mlx_lm") is None:
        pytest.skip("mlx-lm is not installed")
    return list(runpy.run_path(str(HOOKS / "hook-mlx_lm.py"))["hiddenimports"])


def test_every_model_module_that_the_hook_adds_works_without_the_rest(hidden):
    from waggle.models.shared.mlx_lm.modules import NO_MODELS

    models = [name.rpartition(".")[2] for name in hidden if name.startswith("mlx_lm.models.")]
    kinds = sorted(set(models) - NO_MODELS)
    assert len(kinds) > 100
    excluded = (*app_contents.GENERIC, *app_contents.MLX_LM_PROGRAMS)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(excluded), ",".join(kinds)],
        env={"PYTHONPATH": f"{SOURCE}:{HOOKS.parent}", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout == "\n"


def test_the_parts_that_waggle_uses_are_added_and_none_of_them_is_excluded(hidden):
    assert {"mlx_lm.models", "mlx_lm.models.cache", "mlx_lm.models.base", "mlx_lm.tuner.lora"} <= set(hidden)
    assert set(hidden) & set(app_contents.MLX_LM_PROGRAMS) == {"mlx_lm.models.olmo"}  # it would end the program


def test_only_the_app_for_macs_has_mlx_lm():
    on_a_mac = sys.platform == "darwin"
    assert ("mlx_lm" in app_contents.BY_NAME) == on_a_mac
    assert ("mlx_lm" in app_contents.NOT_IN_THE_APP) != on_a_mac
    assert "mlx_lm" in app_contents.NOT_IN_THE_VERIFIER
