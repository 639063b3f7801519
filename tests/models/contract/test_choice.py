"""MLX is chosen where it works, with a reason, and no backend imports what only the other needs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import waggle
from waggle.core import paths
from waggle.core.errors import ModelError
from waggle.models import backend as choosing
from waggle.models.backend import choose_device

mx = pytest.importorskip("mlx.core")
AT_WORK = """
import resource, sys
before = resource.getrlimit(resource.RLIMIT_NOFILE)
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
from waggle.models.storage import checkpoint, export
from waggle.models.backend import open_policy
from waggle.models.shared.training_mode import TrainingMode
from waggle.rl.batch import TrainingGroup, SamplingParams, StepParams

device, training = sys.argv[3], TrainingMode(recompute=sys.argv[4] == "again")

def work(folder, out):
    opened = open_policy(folder, device=device, threads=1, training=training)
    policy, prompt = opened.policy, opened.tokenizer.encode("What is 1 + 1?")
    (row,) = policy.sample([prompt], np.full((2, 4), 0.5, np.float32), SamplingParams(max_new=4, stops=opened.tokenizer.stops))
    tokens = tuple(completion.tokens for completion in row)
    count = sum(map(len, tokens))
    batch = TrainingGroup(prompt, tokens, np.ones(count, np.float32), np.full(count, 0.1, np.float32))
    policy.step([batch], StepParams(learning_rate=1e-4))
    base = checkpoint.base_of(folder)
    saved = checkpoint.CheckpointState(round=1, step=policy.steps, epoch=1, charter="c", base=base)
    checkpoint.save(out / "saved", policy, saved)
    assert checkpoint.load_newest(out / "saved", policy, base)[0] == saved
    export.write(export.ExportSource(*checkpoint.newest(out / "saved", base), folder, "starter"), out / "exported")
    assert open_policy(out / "exported", device=device, threads=1).policy.parameters == policy.parameters
    return opened

opened = ThreadPoolExecutor(1).submit(work, Path(sys.argv[1]), Path(sys.argv[2])).result()
assert opened.threads == 1, opened
assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
print(opened.backend, *(name for name in ("torch", "torch._dynamo", "transformers", "mlx", "mlx_lm") if name in sys.modules))
"""


@pytest.fixture
def smollm3(tmp_path) -> Path:
    """The starter as a model of another kind, which the fast path does not compute."""
    folder = Path(shutil.copytree(paths.starter(), tmp_path / "smollm3"))
    table = json.loads((folder / "config.json").read_text()) | {"model_type": "smollm3"}
    (folder / "config.json").write_text(json.dumps(table))
    return folder


def run(program: str, *arguments: Path | str) -> str:
    environment = {"PYTHONPATH": str(Path(waggle.__file__).parents[1]), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run([sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


@pytest.mark.parametrize(
    ("device", "way", "loaded"), [("mlx", "kept", "MLX mlx"), ("cpu", "kept", "torch torch"), ("cpu", "again", "torch torch")]
)
def test_each_way_loads_its_own_library_and_none_of_the_slow_ones_and_leaves_the_limits_alone(tmp_path, device, way, loaded):
    assert run(AT_WORK, paths.starter(), tmp_path, device, way) == f"{loaded}\n"


@pytest.mark.parametrize("way", ["kept", "again"])
def test_a_model_that_only_mlx_lm_computes_loads_neither_torch_nor_transformers(tmp_path, smollm3, way):
    pytest.importorskip("mlx_lm")
    on_a_mac = "import waggle.models.shared.generic_config as config; config.is_apple_silicon = lambda: True\n"
    assert run(on_a_mac + AT_WORK, smollm3, tmp_path, "mlx", way) == "MLX mlx mlx_lm\n"


def test_torch_is_chosen_where_there_is_no_apple_silicon(monkeypatch):
    monkeypatch.setattr(choosing, "is_apple_silicon", lambda: False)
    assert choose_device("auto").backend == "torch"
    assert choose_device("cpu") == choosing.DeviceChoice("torch", "cpu", "chosen in the settings")


def test_mlx_is_chosen_on_apple_silicon_and_by_wish(monkeypatch):
    monkeypatch.setattr(choosing, "is_apple_silicon", lambda: True)
    device = "metal" if mx.metal.is_available() else "cpu"
    assert choose_device("auto") == choosing.DeviceChoice("MLX", device, "this Mac's graphics processor was found")
    assert choose_device("mlx") == choosing.DeviceChoice("MLX", device, "chosen in the settings")
    assert choose_device("cpu").backend == "torch"


def test_mlx_that_does_not_work_gives_way_to_torch_and_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(choosing, "is_apple_silicon", lambda: True)
    monkeypatch.setitem(sys.modules, "mlx.core", None)  # as where it is not installed
    assert choose_device("auto") == choosing.DeviceChoice(
        "torch", choose_device("auto").device, "MLX cannot be used: it is not installed"
    )
    with pytest.raises(ModelError, match="MLX cannot be used: it is not installed"):
        choose_device("mlx")


def test_a_computer_with_neither_says_so(monkeypatch):
    monkeypatch.setattr(choosing, "is_apple_silicon", lambda: True)
    for name in ("mlx.core", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError, match="torch is not installed, and MLX cannot be used"):
        choose_device("auto")
    with pytest.raises(ModelError, match="No model can be run: torch is not installed"):
        choose_device("cpu")
