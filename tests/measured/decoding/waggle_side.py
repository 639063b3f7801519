"""Decode with Waggle's fast path: waggle_side.py FOLDER PRECISION THREADS; requests and answers as in llama_cpp_side.py."""

import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waggle.models.shared.training_mode import TrainingMode
from waggle.models.torch.policy import TorchPolicy
from waggle.rl.batch import SamplingParams
from waggle.rl.random_streams import uniforms


def main(folder: Path, precision: Any, threads: int) -> None:
    torch.set_num_threads(threads)
    policy = TorchPolicy(folder, training=TrainingMode("lean", precision))
    say({"versions": {"torch": importlib.metadata.version("torch")}})
    for line in sys.stdin:
        request = json.loads(line)
        prompts = [np.array(prompt, np.int32) for prompt in request["prompts"]]
        noise = uniforms(0, "sample", 0, len(prompts), 1, request["tokens"])
        began = time.perf_counter()
        rows = policy.sample(prompts, noise, SamplingParams(max_new=request["tokens"], stops=(-1,)))
        seconds = time.perf_counter() - began
        if {len(row[0].tokens) for row in rows} != {request["tokens"]}:
            raise SystemExit("Waggle wrote other lengths")
        say({"seconds": seconds})


def say(values: dict[str, object]) -> None:
    sys.__stdout__.write(json.dumps(values) + "\n")
    sys.__stdout__.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
