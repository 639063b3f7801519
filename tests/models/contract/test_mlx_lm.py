"""mlx-lm as a second reference, in a process of its own."""

import subprocess
import sys

import numpy as np
import pytest

from waggle.rl.batch import TokenizedGroup

pytest.importorskip("mlx_lm")
from waggle.models.mlx.policy import MlxPolicy

KINDS = ("biases", "llama", "llama3 rope", "mistral", "qwen2", "qwen3", "untied", "wide heads")
PROGRAM = """
import json, sys
from pathlib import Path
import mlx.core as mx, mlx.nn as nn, numpy as np
from mlx_lm.utils import load_model

mx.set_default_device(mx.cpu)
tokens = mx.array(np.load(sys.argv[1]))
found = []
for folder in map(Path, sys.argv[3:]):
    rope = json.loads((folder / "config.json").read_text())["rope_parameters"]  # which its llama and qwen2 pass over
    model, _ = load_model(folder, model_config={"rope_theta": rope["rope_theta"], "rope_scaling": rope})
    found.append(np.array(-nn.losses.cross_entropy(model(tokens[None, :-1]), tokens[None, 1:]))[0])
np.save(sys.argv[2], np.stack(found))
"""


def test_every_model_means_what_it_means_in_mlx_lm(folders, tmp_path):
    tokens = np.random.default_rng(0).integers(0, 97, 40).astype(np.int32)
    np.save(tmp_path / "tokens.npy", tokens)
    arguments = (tmp_path / "tokens.npy", tmp_path / "found.npy", *[folders[kind] for kind in KINDS])
    subprocess.run([sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True)
    for kind, expected in zip(KINDS, np.load(tmp_path / "found.npy"), strict=True):
        (ours,) = MlxPolicy(folders[kind]).logprobs([TokenizedGroup(tokens[:5], (tokens[5:],))], 1.0)
        np.testing.assert_allclose(ours, expected[4:], atol=2e-5, err_msg=kind)
