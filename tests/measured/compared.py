"""The parts `decoding` and `trl` of models.py: the fast path beside llama.cpp and beside TRL, with a model in a folder."""

import json
import os
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from statistics import median
from typing import Any

import figures_file

XLLAMACPP = "xllamacpp==2026.10.11549"  # llama.cpp's server as a library, with wheels
SIDES = Path(__file__).with_name("decoding")
ROWS, PROMPT, ANSWER, REPEATS = (1, 16, 32), 64, 128, 3
TRL_CELL, TRL_REPEATS = "smollm2", 3


def measure_decoding(model: Path, threads: int) -> dict[str, object]:
    """Tokens a second of decoding on both sides, in the precision of the files, in turns."""
    from waggle.core import paths
    from waggle.models.shared.configuration import model_config
    from waggle.models.storage import gguf_export

    configuration = model_config.read(model)
    cache = paths.cache() / "llama-cpp"
    with tempfile.TemporaryDirectory() as temporary:
        gguf = Path(temporary) / "model.gguf"
        gguf_export.write(model, gguf, "model")
        python = _environment(cache)
        commands = {
            "waggle": [sys.executable, "-P", SIDES / "waggle_side.py", model, configuration.dtype, threads],
            "llama_cpp": [python, "-P", SIDES / "llama_cpp_side.py", gguf, max(ROWS), PROMPT + ANSWER + 8, threads],
        }
        sides = {name: _Side([str(part) for part in command]) for name, command in commands.items()}
        try:
            versions = {package: number for side in sides.values() for package, number in side.line()["versions"].items()}
            by_rows = {str(rows): _rates(sides, rows, configuration.vocab_size) for rows in ROWS}
        finally:
            for side in sides.values():
                side.close()
    work = f"{PROMPT} tokens of prompt, {ANSWER} of answer, {configuration.dtype}, {threads} threads"
    return {"work": work, "versions": versions, "rows": by_rows}


class _Side:
    """A process that answers one line of JSON with another."""

    def __init__(self, command: list[str]) -> None:
        path = os.pathsep.join([str(figures_file.ROOT / "app"), os.environ.get("PYTHONPATH", "")])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process: Any = subprocess.Popen(command, text=True, env=os.environ | {"PYTHONPATH": path}, **pipes)  # type: ignore[call-overload]

    def line(self) -> dict[str, Any]:
        while not (text := self._process.stdout.readline()).startswith("{"):  # libraries may print, too
            if not text:
                raise SystemExit("One side ended.")
        values: dict[str, Any] = json.loads(text)
        return values

    def seconds(self, prompts: list[list[int]], tokens: int) -> float:
        self._process.stdin.write(json.dumps({"prompts": prompts, "tokens": tokens}) + "\n")
        self._process.stdin.flush()
        return float(self.line()["seconds"])

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def _rates(sides: dict[str, _Side], rows: int, vocabulary: int) -> dict[str, float]:
    """The median tokens a second of each side: from the second token on, so that running the prompts does not count."""
    noise = random.Random(rows)
    prompts = [[noise.randrange(3, vocabulary) for _ in range(PROMPT)] for _ in range(rows)]
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side.seconds(prompts, 2)  # which pays for what is allocated once
    for _ in range(REPEATS):
        for name, side in sides.items():
            first = side.seconds(prompts, 1)
            rates[name].append(rows * (ANSWER - 1) / (side.seconds(prompts, ANSWER) - first))
    values = {f"{name}_tokens_a_second": round(median(several), 1) for name, several in rates.items()}
    ratio = median(ours / theirs for ours, theirs in zip(rates["waggle"], rates["llama_cpp"], strict=True))
    return values | {"waggle_over_llama_cpp": round(ratio, 3)}


def _environment(folder: Path) -> Path:
    """The Python of an environment with llama.cpp, created if necessary."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    mark = folder / "installed.txt"
    if not mark.exists() or mark.read_text() != XLLAMACPP:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", XLLAMACPP], check=True)
        mark.write_text(XLLAMACPP)
    return python


def measure_trl(model: Path) -> dict[str, object]:
    """CPU seconds of a round on the fast path and in TRL, each in processes of its own, in turns; see `dev.py bench`."""
    sys.path.append(str(figures_file.ROOT / "packaging"))
    import dev

    dev.set_up_bench()
    environment = os.environ | {
        "PYTHONPATH": str(figures_file.ROOT / "app"), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    seconds: dict[str, list[float]] = {"waggle": [], "trl": []}
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = _with_other_stops(model, Path(temporary))
        for _ in range(TRL_REPEATS):
            for side, rounds in seconds.items():
                command = [str(dev.BENCH_PYTHON), "-m", "waggle_lab.benchmark.child", TRL_CELL, side, str(folder)]
                huge_pages = {} if side == "waggle" else {"THP_MEM_ALLOC_ENABLE": "0"}  # a setting of Waggle's
                done = subprocess.run(command, env=environment | huge_pages, stdout=subprocess.PIPE, text=True, check=True)
                line = json.loads(done.stdout.splitlines()[-1])
                rounds.append(min(each["round"] for each in line["rounds"]))
                figures |= {f"{side}_gib": round(line["gib"], 2), "versions": line["versions"]}
                print(side, rounds[-1], flush=True)
    for side, rounds in seconds.items():
        figures[f"{side}_s"] = round(median(rounds), 2)
    ratio = median(theirs / ours for ours, theirs in zip(seconds["waggle"], seconds["trl"], strict=True))
    from waggle_lab.benchmark.cells import CELLS

    return {"work": CELLS[TRL_CELL].description, **figures, "trl_over_fast": round(ratio, 2)}


def _with_other_stops(model: Path, folder: Path) -> Path:
    """The model with the stop tokens of the benchmark, whose tokenizer needs different ones for the end and for padding."""
    table = json.loads((model / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(table | {"eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}))
    for weights in model.glob("*.safetensors*"):
        (folder / weights.name).symlink_to(weights.resolve())
    return folder
