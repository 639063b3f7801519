"""Training in a real process whose memory is limited."""

import json
import os
import subprocess
import sys

import pytest

from models.noise import group
from models.tiny_models import make_model
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams

MEGABYTES = 112  # that the process may still allocate; a group needs more, a completion less
PROGRAM = """
import json, resource, sys
from pathlib import Path
import numpy as np
import torch
torch.set_num_threads(1)
from models.noise import group
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import SamplingParams, StepParams

heard = []
policy = TorchPolicy(Path(sys.argv[1]), short=heard.append)
policy.step([group(2, 5)], StepParams(learning_rate=0.0))  # whatever is loaded at the first step is here before memory is short
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 2**20,) * 2)
found = policy.sample([group(2, 5).prompt] * 64, np.zeros((2048, 8), np.float32), SamplingParams(max_new=8, stops=(-1,)))
metrics = policy.step([group(8, 90)], StepParams(learning_rate=1e-4))
print(json.dumps({"heard": heard, "prompts": len(found), "steps": policy.steps, "norm": metrics.gradient_norm}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to a limit of its memory")
def test_work_goes_on_in_smaller_parts_with_the_same_gradient_and_says_so(tmp_path):
    folder = make_model("llama", tmp_path, inner=6000)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(MEGABYTES)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    report = json.loads(done.stdout)
    plenty = TorchPolicy(folder).step([group(8, 90)], StepParams(learning_rate=1e-4))
    assert (report["prompts"], report["steps"]) == (64, 2)
    assert "answers are written at a time from now on" in report["heard"][0]
    assert "tokens are learned from at a time from now on" in report["heard"][-1]
    assert report["norm"] == pytest.approx(plenty.gradient_norm, rel=1e-4)


AT_THE_END = """
import resource, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from models.noise import group
from waggle.core.errors import MemoryShort
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import StepParams

paused = 0

def limit():
    global paused
    paused += 1
    if paused == 2:  # the gradient is there, the optimiser has nothing yet
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used, used))

policy = TorchPolicy(Path(sys.argv[1]))
try:
    policy.step([group(2, 5)], StepParams(learning_rate=1e-4, pause_point=limit))
except MemoryShort as error:
    print(error.title)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to a limit of its memory")
def test_an_optimiser_that_finds_no_memory_says_so(tmp_path):
    folder = make_model("llama", tmp_path, inner=60_000)
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "The model ran out of memory.\n"


LOADING = """
import resource, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from waggle.core.errors import MemoryShort
from waggle.models.torch.policy import TorchPolicy

small, large = map(Path, sys.argv[1:3])
TorchPolicy(small)  # whatever is loaded at the first time is here before memory is short
size = sum(path.stat().st_size for path in large.glob("*.safetensors"))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(size * float(sys.argv[3])),) * 2)
try:
    TorchPolicy(large)
except MemoryShort as error:
    print(error.title)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to a limit of its memory")
@pytest.mark.parametrize("room", [0.3, 1.2])
def test_a_model_that_finds_no_memory_to_be_loaded_says_so(tmp_path, room):
    small, large = make_model("llama", tmp_path / "small"), make_model("llama", tmp_path / "large", inner=60_000)
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(small), str(large), str(room)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "The model ran out of memory.\n"
