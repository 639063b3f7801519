#!/usr/bin/env python3
"""Measure which models can be trained, and whether they are computed as transformers computes them; write models.json.

    python3 tests/measured/models.py kinds
    python3 tests/measured/models.py mlx_kinds
    python3 tests/measured/models.py tokenizers
    python3 tests/measured/models.py trl --model FOLDER
    python3 tests/measured/models.py decoding --model FOLDER [--threads 2]
    python3 tests/measured/models.py speed [--hidden 576 --layers 30 --vocabulary 49152]

Each part replaces its own figures in models.json and keeps those of the others, with the commit that each was measured at.

kinds   52 tiny random checkpoints of the kinds that people have, opened as the product opens them: `kinds_trained`, those that
        take a step with finite figures and change; `kinds_equal_logp`, those whose log-probs, from groups and from decoding,
        are those of transformers within 1e-4, beyond their sliding windows; with the names of the others, and why; and by kind
        how groups run and how prompts are cached
mlx_kinds  the same checkpoints through mlx-lm, as on Apple Silicon, here on the processor: `mlx_kinds_trained` and
        `mlx_kinds_equal_logp`, with the same names, reasons and ways
speed   one round of the same random Llama (the shape of SmolLM2-135M unless said otherwise) on the fast path and on the
        generic one, in one thread, alternating: `generic_over_fast`, the ratio of their medians
tokenizers  the shelf of tokenizers of the tests, each with every way to begin a text and two chat templates: `tokenizers_equal`,
        those whose ids of hard prompts, of answers after them and of conversations are all those of transformers
trl     the cell `smollm2` of `waggle-lab bench` with the model of a folder: CPU seconds of a round on the fast path and in TRL
decoding  tokens a second on the fast path and in llama.cpp, which is installed into the cache, of 1, 16 and 32 rows at once, in
        the precision of the model's files, which gguf_export writes for llama.cpp
memory  the peak of a process that opens a model and plays a round (4 x 8 answers of 32 tokens after 150), against what is
        foretold for it, in 8 cases (random models of the shape of SmolLM2-135M and of Qwen2.5-0.5B), and in 2 cases of rounds
        beside which the model chats with an earlier version of itself or answers under Try it: `foretold_error_max`
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import compared
import figures_file

sys.path[:1] = [
    str(figures_file.ROOT / "app"),
    str(figures_file.ROOT / "tests"),
]  # not this folder, whose models.py is no package
FILE = Path(__file__).with_suffix(".json")
EQUAL = 1e-4  # of a log-prob
LLAMA = {
    "model_type": "llama", "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True, "eos_token_id": 0,
}  # fmt: skip
QWEN = {
    "model_type": "qwen2", "vocab_size": 151_936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True, "eos_token_id": 0,
}  # fmt: skip
SHAPES = {"135M": LLAMA, "0.5B": QWEN}
CASES = {  # path, shape, what is trained, precision, whether activations are computed again, and what answers beside the rounds
    "135M full": ("fast", "135M", "full", "float32", False),
    "135M lean": ("fast", "135M", "lean", "bfloat16", True),
    "135M lora": ("fast", "135M", "lora", "bfloat16", False),
    "135M full, generic": ("generic", "135M", "full", "float32", False),
    "135M lora, generic": ("generic", "135M", "lora", "bfloat16", False),
    "135M 4 bits": ("generic", "135M", "qlora", "bfloat16", False),
    "0.5B lora": ("fast", "0.5B", "lora", "bfloat16", True),
    "0.5B lean": ("fast", "0.5B", "lean", "bfloat16", True),
    "135M lean, chat": ("fast", "135M", "lean", "bfloat16", True, "chat"),
    "135M lora, Try it": ("fast", "135M", "lora", "bfloat16", False, "Try it"),
}
CHAT_TOKENS, TRY_TOKENS, TRY_ROWS = 128, 64, 7  # of an answer in chat and under Try it, with so many answers to share
QUESTIONS, GROUP, TOKENS, PROMPT, REPEATS = 4, 8, 16, 40, 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=("kinds", "mlx_kinds", "speed", "memory", "tokenizers", "trl", "decoding"))
    parser.add_argument("--model", type=Path, help="the folder of a model, for `trl` and `decoding`")
    parser.add_argument("--threads", type=int, default=2, help="of each side of `decoding`")
    parser.add_argument("--case", help="measure one case of `memory` in this process")
    parser.add_argument("--hidden", type=int, default=576)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--vocabulary", type=int, default=49_152)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure_peak(*CASES[options.case])))
        return 0
    if options.part in ("trl", "decoding") and not options.model:
        parser.error(f"{options.part} needs --model FOLDER.")
    figures_file.require_clean_tree()
    parts: dict[str, Callable[[], dict[str, object]]] = {
        "kinds": measure_kinds, "mlx_kinds": measure_mlx_kinds, "memory": measure_memory, "tokenizers": measure_tokenizers,
        "speed": lambda: measure_speed(options), "trl": lambda: compared.measure_trl(options.model.resolve()),
        "decoding": lambda: compared.measure_decoding(options.model.resolve(), options.threads),
    }  # fmt: skip
    measured = parts[options.part]()
    figures = json.loads(FILE.read_text())["figures"] if FILE.exists() else {}
    figures[options.part] = measured | {"commit": figures_file.source_commit()}
    figures_file.write(Path(__file__).resolve(), figures)
    return 0


def measure_memory() -> dict[str, object]:
    def measure(case: str) -> dict[str, float]:
        command = [sys.executable, str(Path(__file__).resolve()), "memory", "--case", case]
        line = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
        print(case, line, flush=True)
        result: dict[str, float] = json.loads(line)
        return result

    with ThreadPoolExecutor(2) as pool:  # what a process takes does not depend on the other's
        cases = dict(zip(CASES, pool.map(measure, CASES), strict=True))
    return {"foretold_error_max": max(abs(float(each["error"])) for each in cases.values()), "cases": cases}


def measure_peak(path: str, shape: str, method: str, precision: str, recompute: bool, beside: str = "") -> dict[str, float]:
    """What is foretold for a round, and the peak of this process after it, in GB."""
    import resource
    import shutil

    import numpy as np
    import torch
    from safetensors.torch import save_file

    import waggle.engine.main  # noqa: F401 - what is foretold includes the engine's libraries
    from waggle.core import paths
    from waggle.engine.runtime.pause_gate import PauseGate
    from waggle.models import backend, memory_fit
    from waggle.models.memory_fit import DeviceCapacity, Workload
    from waggle.models.shared import generic_config
    from waggle.models.shared.configuration import model_config
    from waggle.models.shared.training_mode import TrainingMode
    from waggle.network.transport.hivemind.patches import load_hivemind
    from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup, nothing
    from waggle.rl.random_streams import uniforms

    load_hivemind()
    work = Workload(questions=4, groups=4, group_size=8, longest=32)
    with tempfile.TemporaryDirectory() as temporary:
        folder, noise = Path(temporary) / "model", np.random.default_rng(0)
        folder.mkdir()
        for name in ("tokenizer.json", "tokenizer_config.json"):  # any will do: only memory is measured
            shutil.copy(paths.starter() / name, folder)
        (folder / "config.json").write_text(json.dumps(SHAPES[shape]))
        weights = model_config.read(folder).weights()
        save_file(
            {name: torch.zeros(size, dtype=torch.bfloat16) + 0.01 for name, size in weights.items()}, folder / "model.safetensors"
        )
        configuration = generic_config.read(folder) if path == "generic" else model_config.read(folder)
        training = TrainingMode(method, precision, recompute)
        machine = DeviceCapacity(1 << 40, {"float32": 1e11, "bfloat16": 1e11})
        foretold = memory_fit._bytes(configuration, machine, work, training)
        open_here = backend.open_generic if path == "generic" else backend.open_fast
        policy, gate = open_here(folder, backend.DeviceChoice("torch", "cpu", ""), 1, training, nothing), PauseGate(lambda: None)
        for weight in policy._parameters.values():  # or all answers would be alike, and the loss 0
            weight.data.add_(torch.randn_like(weight.data[:1]) * 0.01)
        prompts = [noise.integers(2, 40_000, work.prompt).astype(np.int32) for _ in range(work.questions)]
        params = SamplingParams(max_new=work.longest, stops=(-1,), pause_point=gate)

        def play(steps: int) -> None:
            rows = policy.sample(prompts, uniforms(0, "sample", 0, work.questions, work.group_size, work.longest), params)
            groups = []
            for prompt, row in zip(prompts, rows, strict=True):
                completions = tuple(each.tokens for each in row)
                count = sum(map(len, completions))
                advantage = np.linspace(-1, 1, count).astype(np.float32)
                groups.append(TrainingGroup(prompt, completions, advantage, np.full(count, 0.25 / count, np.float32)))
            for _ in range(steps):
                assert policy.step(groups, StepParams(learning_rate=1e-6, pause_point=gate)).applied

        play(2)  # the first step creates the moments, which the second one finds there
        if beside:
            with ThreadPoolExecutor(1) as pool:
                answering = pool.submit(_answer_beside, beside, Path(temporary), folder, policy, gate, foretold)
                while not answering.done():
                    play(1)
                foretold += answering.result()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"foretold_gb": round(foretold / 1e9, 2), "peak_gb": round(peak / 1e9, 2), "error": round(foretold / peak - 1, 3)}


def _answer_beside(beside: str, root: Path, folder: Path, policy: Any, gate: Any, peak: int) -> int:
    """Chat with the model, or answer as under Try it, while it is trained; the bytes that are foretold for that."""
    import asyncio

    import numpy as np

    from waggle.core import paths
    from waggle.engine.services.chat import ChatService
    from waggle.engine.services.models.current_weights import CurrentWeights
    from waggle.engine.services.models.snapshots import Snapshots
    from waggle.models.memory_fit import Workload
    from waggle.models.shared.training_mode import TrainingMode
    from waggle.models.storage.checkpoint import CheckpointState
    from waggle.models.tokenizer import load as load_tokenizer
    from waggle.protocol import commands
    from waggle.rl.batch import SamplingParams, nothing
    from waggle.rl.random_streams import uniforms

    def newest() -> CheckpointState:
        return CheckpointState(round=1, step=policy.steps, epoch=1, charter="ab" * 32, base="b", method=policy.training.method)

    trained = policy.training
    way = trained if trained.is_adapted else TrainingMode("lean", trained.precision)  # as in engine/startup/model.py
    current = CurrentWeights(gate, policy, newest, peak)
    snapshots = Snapshots(paths.Home(root / "home").prepare(), folder, "cpu", trainings=(way,), current=current)
    copied = sum(weight.nbytes for weight in policy.weights().values())
    words = "What is the answer? " * 40
    tokens = len(load_tokenizer(folder).prompt(words).ids)
    if beside == "chat":
        answers = Workload(1, 0, 1, CHAT_TOKENS, tokens)
        chat = ChatService(snapshots, "{}".format, CHAT_TOKENS, nothing)
        asyncio.run(chat.obey(commands.SendMessage(id="1", words=words, number=0, earlier=(), before=0)))
        return copied + snapshots.foretold(2, answers)[way]
    answers = Workload(1, 0, TRY_ROWS, TRY_TOKENS, tokens)
    prompt = np.arange(2, 2 + tokens, dtype=np.int32)
    for snapshot in (answering := snapshots.answering(1, answers)).snapshots:
        with snapshots.open(snapshot, answering.training) as opened:
            noise = uniforms(0, "held_out", 0, 1, TRY_ROWS, TRY_TOKENS)
            opened.policy.sample([prompt], noise, SamplingParams(max_new=TRY_TOKENS, stops=(-1,)))
    return copied + snapshots.foretold(1, answers)[way]


def measure_kinds() -> dict[str, object]:
    import torch

    from models.tiny_kinds import KINDS

    torch.set_num_threads(1)
    untrained: dict[str, str] = {}
    unequal: dict[str, str] = {}
    ways: dict[str, str] = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            ways[kind] = _measure_kind(kind, Path(folder), untrained, unequal)
        print(kind, ways[kind], untrained.get(kind, "trained"), unequal.get(kind, "equal"), flush=True)
    return {
        "kinds": len(KINDS),
        "kinds_trained": len(KINDS) - len(untrained),
        "kinds_equal_logp": len(KINDS) - len(unequal),
        "untrained": untrained,
        "unequal": unequal,
        "ways": ways,
    }


def measure_mlx_kinds() -> dict[str, object]:
    import mlx.core as mx
    import torch

    from models.tiny_kinds import KINDS, make_kind
    from waggle.models.mlx_generic.policy import MlxLmPolicy

    torch.set_num_threads(1)
    mx.set_default_device(mx.cpu)
    untrained: dict[str, str] = {}
    unequal: dict[str, str] = {}
    ways: dict[str, str] = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as name:
            make_kind(kind, folder := Path(name))
            policy = _try(kind, lambda folder=folder: MlxLmPolicy(folder), folder, untrained, unequal)
        ways[kind] = "not opened" if policy is None else f"{policy.ways.layout}, cache {policy.ways.caching}"
        print(kind, ways[kind], untrained.get(kind, "trained"), unequal.get(kind, "equal"), flush=True)
    return {
        "kinds": len(KINDS),
        "mlx_kinds_trained": len(KINDS) - len(untrained),
        "mlx_kinds_equal_logp": len(KINDS) - len(unequal),
        "untrained": untrained,
        "unequal": unequal,
        "ways": ways,
    }


def _measure_kind(kind: str, folder: Path, untrained: dict[str, str], unequal: dict[str, str]) -> str:
    """Add to the two tables why a kind failed, and return how it is computed."""
    from models.tiny_kinds import make_kind
    from waggle.models import backend
    from waggle.models.shared import generic_config
    from waggle.models.shared.generic_config import GenericConfig
    from waggle.models.shared.training_mode import TrainingMode
    from waggle.rl.batch import nothing

    make_kind(kind, folder)
    is_generic = isinstance(generic_config.read_any(folder), GenericConfig)
    open_here = backend.open_generic if is_generic else backend.open_fast
    place = backend.DeviceChoice("torch", "cpu", "")
    policy = _try(kind, lambda: open_here(folder, place, 1, TrainingMode(), nothing), folder, untrained, unequal)
    if policy is None:
        return "not opened"
    return f"{policy.ways.layout}, cache {policy.ways.caching}" if is_generic else "fast path"


def _try(kind: str, open_here: Callable[[], Any], folder: Path, untrained: dict[str, str], unequal: dict[str, str]) -> Any:
    """Add to the two tables why a kind failed, and return its policy, None if it is not opened."""
    import numpy as np
    import torch

    from models.contract.groups import batches, prompts, reference, sample, true_logprobs
    from waggle.core.errors import WaggleError
    from waggle.rl.batch import StepParams, TokenizedGroup

    try:
        policy = open_here()
        groups, questions = batches(), prompts(4)
        rows = sample(policy, questions, group_size=4)
        texts = [TokenizedGroup(text, tuple(each.tokens for each in row)) for text, row in zip(questions, rows, strict=True)]
        ours = [*policy.logprobs(groups, 1.0), *(np.concatenate([each.logp for each in row]) for row in rows)]
        model = reference(folder)
        with torch.no_grad():
            theirs = [true_logprobs(model, text).numpy() for text in (*groups, *texts)]
        error = max(float(np.abs(mine - other).max()) for mine, other in zip(ours, theirs, strict=True))
        if not error <= EQUAL:
            unequal[kind] = f"log-probs differ by {error:.1g}"
        before = {name: weight.copy() for name, weight in policy.state()[0].items()}
        if not policy.step(groups, StepParams(learning_rate=1e-3)).applied:
            untrained[kind] = "the gradient is not finite"
        elif all(np.array_equal(before[name], weight) for name, weight in policy.state()[0].items()):
            untrained[kind] = "no weight changed"
    except (WaggleError, RuntimeError, ValueError, TypeError) as error:
        untrained[kind] = unequal[kind] = f"{type(error).__name__}: {error}".replace(str(folder), "its folder")
        return None
    return policy


def measure_tokenizers() -> dict[str, object]:
    from models.tokenizer_shelf import KINDS

    unequal = {kind: why for kind in KINDS if (why := _unequal_tokenizer(kind))}
    return {"tokenizers": len(KINDS), "tokenizers_equal": len(KINDS) - len(unequal), "unequal": unequal}


def _unequal_tokenizer(kind: str) -> str:
    """Where the ids of a tokenizer differ from those of transformers; empty if they do not."""
    from models.test_tokenizer_shelf import HARD, is_plain, pair, require_same
    from models.tokenizer_shelf import BEGINNINGS, BRACKETS, CHAT

    text = ""
    try:
        for beginning in BEGINNINGS:
            mine, theirs = pair(kind, beginning)
            for text, _ in HARD:
                expected = theirs(text, split_special_tokens=True)["input_ids"]
                if beginning == "BOS and EOS":  # which a prompt does not end with
                    expected.pop()
                assert mine.prompt(text).ids.tolist() == expected
        for template in ("", CHAT, BRACKETS):
            mine, theirs = pair(kind, template=template)
            for text, answer in HARD:
                if not template:
                    require_same(mine.prompt(text), answer, theirs(text + answer, split_special_tokens=True)["input_ids"], theirs)
                elif is_plain(text, answer):
                    turns = [{"role": "user", "content": text.strip()}]
                    whole = theirs.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
                    prompt = mine.conversation([text])
                    assert prompt.ids.tolist() == theirs(whole, add_special_tokens=False)["input_ids"]
                    require_same(prompt, answer, theirs(whole + answer, add_special_tokens=False)["input_ids"], theirs)
    except AssertionError:
        return f"other ids than transformers for {text!r}"
    return ""


def measure_speed(options: argparse.Namespace) -> dict[str, object]:
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    from waggle.models.generic.policy import GenericPolicy
    from waggle.models.torch.policy import TorchPolicy

    torch.set_num_threads(1)
    heads = options.hidden // 64
    config = LlamaConfig(
        vocab_size=options.vocabulary, hidden_size=options.hidden, intermediate_size=options.hidden * 8 // 3,
        num_hidden_layers=options.layers, num_attention_heads=heads, num_key_value_heads=max(1, heads // 3),
        tie_word_embeddings=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        policies = {"fast": TorchPolicy(Path(folder)), "generic": GenericPolicy(Path(folder))}
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
        for _ in range(1 + REPEATS):
            for name, policy in policies.items():
                seconds[name].append(_round_seconds(policy, options.vocabulary))
    figures: dict[str, object] = {"shape": f"{options.layers} x {options.hidden}, {options.vocabulary} tokens"}
    for name, rounds in seconds.items():
        figures[f"sampling_s_{name}"], figures[f"learning_s_{name}"] = (
            round(median(part), 2) for part in zip(*rounds[1:], strict=True)
        )
    whole = {name: median(sum(each) for each in rounds[1:]) for name, rounds in seconds.items()}
    return figures | {"generic_over_fast": round(whole["generic"] / whole["fast"], 3)}


def _round_seconds(policy: object, vocabulary: int) -> tuple[float, float]:
    """The CPU seconds of sampling and of learning in one round."""
    import numpy as np

    from waggle.rl.batch import SamplingParams, StepParams, TrainingGroup

    noise = np.random.default_rng(0)
    prompts = [noise.integers(0, vocabulary, PROMPT - 5 * i).astype(np.int32) for i in range(QUESTIONS)]
    uniforms = noise.random((QUESTIONS * GROUP, TOKENS), dtype=np.float32)
    clock: Callable[[], float] = time.process_time
    began = clock()
    rows = policy.sample(prompts, uniforms, SamplingParams(max_new=TOKENS, stops=(-1,)))
    sampled = clock()
    groups = [
        TrainingGroup(prompt, tuple(each.tokens for each in row), *noise.random((2, GROUP * TOKENS), dtype=np.float32))
        for prompt, row in zip(prompts, rows, strict=True)
    ]
    policy.step(groups, StepParams(learning_rate=1e-6))
    return sampled - began, clock() - sampled


if __name__ == "__main__":
    raise SystemExit(main())
