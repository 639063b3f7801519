"""`waggle-lab fuzz`: coverage-guided fuzzing of every decoder of bytes from the network, links and files.

Each decoder runs under libFuzzer (atheris) in a process of its own, a few minutes at a time. Corpora and the log only grow, so
the command can be stopped and called again at any time. An input that a decoder neither reads nor refuses is recorded in the log.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.practice import json_lines_file
from waggle_lab import provenance
from waggle_lab.argument_types import real
from waggle_lab.security import decoders

RUN_S = 300  # of one process, which a kill loses
MAX_INPUT = 1 << 16  # bytes; more than any decoder accepts, except payloads, which are repetitive
MEMORY_MB = 2048
CORPUS_INPUTS = 30  # of one decoder, that --keep writes
CORPUS_INPUT_BYTES = 700  # of each at most
LOGGED_BYTES = 1 << 16  # the log has no larger inputs
ARTIFACT_PATTERNS = ("crash-*", "timeout-*", "oom-*")  # files of libFuzzer with the inputs that stopped it


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An input that was neither read nor refused; `input` is in hex, and empty if it is too long for a log."""

    kind: str  # crash, timeout, oom
    says: str
    input: str


class FuzzRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one process. `coverage` counts the branches of Python code that the corpus reaches."""

    decoder: str
    ended: str  # UTC
    seconds: float
    cpu_seconds: float = 0.0  # less than `seconds` on a busy computer
    executions: int
    coverage: int
    corpus: int  # inputs
    findings: tuple[Finding, ...] = ()
    commit: str
    machine: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("decoder", choices=(*decoders.NAMES, "all"), metavar="DECODER", help=f"all, {', '.join(decoders.NAMES)}")
    parser.add_argument("--minutes", type=real(0), default=5.0, help="how long to fuzz each decoder (default: 5)")
    parser.add_argument("--corpus", type=Path, default=paths.cache() / "fuzz", help="folder of the inputs so far, which grows")
    parser.add_argument("--seeds", type=Path, help="folder of more inputs to begin with, written by --keep")
    parser.add_argument("--keep", type=Path, help="folder to write some small inputs of the corpora to, at the end")
    parser.add_argument("--log", type=Path, help="file to add a line to for each run (default: in the corpus folder)")


def run(arguments: argparse.Namespace) -> int:
    """Fuzz, then print how long each decoder has been fuzzed without a finding; the exit code is 1 after a finding."""
    if importlib.util.find_spec("atheris") is None:
        raise LabError("Fuzzing needs atheris, which is not installed here.", "On Linux `packaging/dev.py setup` installs it.")
    log = arguments.log or arguments.corpus / "log.jsonl"
    read(log)  # refuse a file that is not a log before fuzzing
    json_lines_file.begin(log)
    if arguments.seeds and not arguments.seeds.is_dir():
        raise LabError(f"{arguments.seeds} is not a folder.", "Choose another --seeds.")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    names = decoders.NAMES if arguments.decoder == "all" else (arguments.decoder,)
    finding_count = 0
    try:
        for seconds in _run_lengths(arguments.minutes * 60):
            for name in names:
                result = fuzz(name, seconds, arguments.corpus, arguments.seeds)
                json_lines_file.append(log, result)
                finding_count += len(result.findings)
                sys.stderr.write(_run_line(result))
    finally:
        sys.stderr.write(summary(read(log)))
    if arguments.keep:
        write_corpus(names, arguments.corpus, arguments.keep)
    return 1 if finding_count else 0


def read(log: Path) -> list[FuzzRun]:
    """The runs in a log, oldest first; raises LabError."""
    return json_lines_file.read(log, FuzzRun, "a run of fuzzing", "--log")


def clean_seconds(runs: Sequence[FuzzRun]) -> dict[str, float]:
    """For each decoder, the seconds of fuzzing since its last finding."""
    clean = dict.fromkeys(decoders.NAMES, 0.0)
    for run in runs:
        clean[run.decoder] = 0.0 if run.findings else clean.get(run.decoder, 0.0) + run.seconds
    return clean


def summary(runs: Sequence[FuzzRun]) -> str:
    """A line for each decoder with its time without a finding, and a line with the total."""
    clean = [f"{name:<14}{seconds / 60:8.1f} minutes without a finding\n" for name, seconds in clean_seconds(runs).items()]
    hours = sum(run.seconds for run in runs) / 3600
    cpu = sum(run.cpu_seconds for run in runs) / 3600
    return "".join(clean) + f"{hours:.1f} hours ({cpu:.1f} of a core), {sum(run.executions for run in runs):,} inputs in all\n"


def write_corpus(names: Sequence[str], corpus: Path, folder: Path) -> None:
    """Write up to CORPUS_INPUTS short inputs of each corpus to a file, of all sizes, each a line in hex."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        inputs = {path.read_bytes() for path in (corpus / name).glob("*") if 0 < path.stat().st_size <= CORPUS_INPUT_BYTES}
        sizes = sorted(inputs, key=lambda data: (len(data), data))
        chosen = sizes[:: -(-len(sizes) // CORPUS_INPUTS) or 1]
        (folder / f"{name}.hex").write_text("".join(f"{data.hex()}\n" for data in chosen), encoding="ascii")


def fuzz(name: str, seconds: float, corpus: Path, seeds: Path | None = None) -> FuzzRun:
    """Fuzz one decoder in a process of its own; raises LabError if the process cannot start."""
    inputs = corpus / name
    inputs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="waggle-fuzz-", dir=_memory_folder()) as folder:
        scratch, began, cpu_before = Path(folder), time.monotonic(), _cpu_of_children()
        initial_inputs = (*decoders.load_decoder(name, scratch).seeds, *(decoders.read_corpus(seeds, name) if seeds else ()))
        for i, seed in enumerate(initial_inputs):
            (inputs / f"seed-{i}").write_bytes(seed)
        (scratch / "found").mkdir()
        flags = [
            str(inputs),
            *libfuzzer_limits(),
            f"-max_total_time={max(1, round(seconds))}",
            f"-artifact_prefix={scratch}/found/",
        ]
        output, code = _run_to_end([sys.executable, "-m", "waggle_lab.security.fuzz_child", name, folder, *flags])
        findings = tuple(
            read_finding(path, output) for kind in ARTIFACT_PATTERNS for path in sorted((scratch / "found").glob(kind))
        )
    executions = _last_number(r"^stat::number_of_executed_units:\s*(\d+)", output)
    if not findings and not executions:
        raise LabError(f"The fuzzer of {name} ended with code {code}.", output[-600:])
    return FuzzRun(
        decoder=name,
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(min(seconds, time.monotonic() - began), 1),  # without the time to start
        cpu_seconds=round(_cpu_of_children() - cpu_before, 1),
        executions=executions,
        coverage=_last_number(r"cov: (\d+)", output),
        corpus=len(list(inputs.iterdir())),
        findings=findings,
        commit=provenance.commit(),
        machine=provenance.machine(),
    )


def libfuzzer_limits() -> tuple[str, ...]:
    """Options of libFuzzer. On Linux a process inherits the peak memory of its parent, so ours is added to the limit."""
    import resource

    own_peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    memory = f"-rss_limit_mb={MEMORY_MB + own_peak_mb}", f"-malloc_limit_mb={MEMORY_MB}"
    return "-timeout=10", *memory, f"-max_len={MAX_INPUT}", "-print_final_stats=1"


def _run_to_end(command: list[str]) -> tuple[str, int]:
    """Run a process to its end; returns its output and exit code. Ctrl-C reaches it too and loses this run, not its inputs."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        output = child.stdout.read()
    return output.decode(errors="replace"), child.returncode


def read_finding(path: Path, output: str) -> Finding:
    """Read an input that stopped libFuzzer, and the reason from its output."""
    trace = re.search(r"=== Uncaught Python exception: ===\n(.*?)\n={2}\d+", output, re.DOTALL)
    message = trace[1] if trace else "".join(re.findall(r"^==\d+== .*$", output, re.MULTILINE))
    data = path.read_bytes()
    kind = path.name.partition("-")[0]
    return Finding(kind=kind, says=message[-2000:], input=data.hex() if len(data) <= LOGGED_BYTES else "")


def _cpu_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


def _run_line(result: FuzzRun) -> str:
    findings = "".join(f"\n{finding.kind}: {finding.says}" for finding in result.findings) or "nothing found"
    return (
        f"{result.decoder:<14}{result.seconds:6.0f} s {result.executions:>11,} inputs, coverage {result.coverage}: {findings}\n"
    )


def _run_lengths(seconds: float) -> list[float]:
    full_runs, rest = divmod(seconds, RUN_S)
    return [RUN_S] * int(full_runs) + ([rest] if rest >= 1 else [])


def _last_number(pattern: str, output: str) -> int:
    numbers = re.findall(pattern, output, re.MULTILINE)
    return int(numbers[-1]) if numbers else 0


def _memory_folder() -> str | None:
    """A folder in memory, if the system has one, because decoders of files write each input to a file."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
