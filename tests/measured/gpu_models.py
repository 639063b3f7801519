#!/usr/bin/env python3
"""Compare a round on a graphics card in Waggle's two paths and in TRL, measure the peak of adapters; write gpu_models.json.

    python3 tests/measured/gpu_models.py --out FILE     on the computer with the card, in an environment with torch for CUDA,
                                                        trl, peft and bitsandbytes; needs no git
    python3 tests/measured/gpu_models.py --from FILE --commit COMMIT --machine MACHINE

The second command writes what the first one measured, of a checkout of COMMIT.

round   the cell `cuda` of `waggle-lab bench` (a 0.5B shape, 64 answers of 256 tokens), each side in its own process, in turns
peak    a 1.5B shape (that of Qwen2.5-1.5B, random): memory of the card after a round of 4 x 8 answers of 160 tokens with LoRA in
        bfloat16, and with LoRA over layers in 4 bits; `foretold_gib` is what memory_fit says, without the program's own memory
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import figures_file

APP = figures_file.ROOT / "app"
sys.path[:1] = [str(APP)]  # not this folder, whose packaging.py would hide the package of that name
REPETITIONS = 2
SHAPE = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151_936, "hidden_size": 1536,
    "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
    "max_position_embeddings": 32_768, "tie_word_embeddings": True, "rms_norm_eps": 1e-6, "hidden_act": "silu",
    "rope_theta": 1_000_000.0, "bos_token_id": None, "eos_token_id": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
QUESTIONS, GROUP, TOKENS, PROMPT = 4, 8, 160, 150


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--from", type=Path, dest="measured")
    parser.add_argument("--commit", default="")
    parser.add_argument("--machine", default="")
    parser.add_argument("--peak", help="measure one method in this process")
    options = parser.parse_args()
    if options.peak:
        print(json.dumps(measure_peak(options.peak)))
        return 0
    if options.out:
        options.out.write_text(json.dumps(measure(), indent=2) + "\n")
        print(options.out.read_text())
        return 0
    figures = json.loads(options.measured.read_text())
    figures_file.write(Path(__file__).resolve(), figures, commit=options.commit, machine=options.machine)
    return 0


def measure() -> dict[str, object]:
    peaks = {}
    for method in ("lora", "qlora"):
        line = run("tests/measured/gpu_models.py", "--peak", method).splitlines()[-1]
        peaks[method] = json.loads(line)
        print(method, line, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        run("-m", "waggle_lab", "bench", "--cells", "cuda", "--repetitions", str(REPETITIONS), "--out", folder)
        runs = [json.loads(line) for line in (Path(folder) / "runs.jsonl").read_text().splitlines()]
    return {"round": rounds(runs), "peak": peaks}


def rounds(runs: list[dict[str, object]]) -> dict[str, object]:
    """The seconds of a round on each side, the fastest of its processes, with the peak of the card, and the ratios."""
    sides: dict[str, dict[str, object]] = {}
    for each in runs:
        seconds = min(phases["round"] for phases in each["rounds"])
        known = sides.setdefault(str(each["side"]), {"seconds": seconds, "gib": round(float(each["gib"]), 2)})
        known["seconds"] = round(min(float(known["seconds"]), seconds), 2)
        known["phases"] = {name: round(value, 2) for name, value in each["rounds"][-1].items()}
    ours = float(sides["waggle"]["seconds"])
    ratios = {f"{side}_over_fast": round(float(known["seconds"]) / ours, 2) for side, known in sides.items() if side != "waggle"}
    return {"card": runs[0]["card"], "versions": runs[-1]["versions"], "sides": sides, **ratios}


def run(*arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(APP), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=figures_file.ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def measure_peak(method: str) -> dict[str, object]:
    import time

    import numpy as np
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from waggle.models import backend, memory_fit
    from waggle.models.memory_fit import DeviceCapacity, Workload
    from waggle.models.shared import generic_config
    from waggle.models.shared.training_mode import TrainingMode
    from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup, nothing
    from waggle.rl.random_streams import uniforms

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "config.json").write_text(json.dumps(SHAPE))
        config = AutoConfig.from_pretrained(folder)
        with torch.device("cuda"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        model.to("cpu").save_pretrained(folder)
        del model
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        training = TrainingMode(method, "bfloat16", recompute=True)
        shape = generic_config.read_any(folder)
        work = Workload(QUESTIONS, QUESTIONS, GROUP, TOKENS)
        machine = DeviceCapacity(80 << 30, {"float32": 1e13, "bfloat16": 1e14}, "torch", "cuda")
        foretold = memory_fit._bytes(shape, machine, work, training) - memory_fit.PROGRAM_BYTES
        place = backend.DeviceChoice("torch", "cuda", "")
        open_here = backend.open_generic if method == "qlora" else backend.open_fast
        policy = open_here(folder, place, 1, training, nothing)
        opened = torch.cuda.memory_allocated()
        noise = np.random.default_rng(0)
        prompts = [noise.integers(2, 50_000, PROMPT).astype(np.int32) for _ in range(QUESTIONS)]
        began = time.perf_counter()
        params = SamplingParams(max_new=TOKENS, stops=(1,))
        rows = policy.sample(prompts, uniforms(0, "sample", 0, QUESTIONS, GROUP, TOKENS), params)
        sampled = time.perf_counter()
        groups = []
        for prompt, row in zip(prompts, rows, strict=True):
            completions = tuple(each.tokens for each in row)
            count = sum(map(len, completions))
            advantage = np.linspace(-1, 1, count).astype(np.float32)
            groups.append(TrainingGroup(prompt, completions, advantage, np.full(count, 1 / (4 * count), np.float32)))
        applied = policy.step(groups, StepParams(learning_rate=1e-5)).applied
        ended = time.perf_counter()
    return {
        "opened_gib": round(opened / 2**30, 2),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
        "foretold_gib": round(foretold / 2**30, 2),
        "sampling_s": round(sampled - began, 1),
        "learning_s": round(ended - sampled, 1),
        "step_applied": applied,
        "ways": str(getattr(policy, "ways", "fast path")),
    }


if __name__ == "__main__":
    raise SystemExit(main())
