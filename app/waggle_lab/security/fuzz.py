"""`waggle-lab fuzz`: coverage-guided fuzzing of every decoder that takes bytes from the network, from links or from files.

Each decoder runs in a process of its own, a few minutes at a time, under libFuzzer (atheris). Corpora and the log only grow, so
the command can be stopped and called again at any time; an input that was neither read nor refused is kept in the log.
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

SLICE_S = 300  # of one process: what a kill may cost
MAX_INPUT = 1 << 16  # bytes: beyond the limits of all but payloads, which repeat themselves
MEMORY_MB = 2048
KEPT = 30  # inputs of one decoder
KEPT_BYTES = 700  # of each
SHOWN = 1 << 16  # bytes of an input that is written into the log whole
FOUND = ("crash-*", "timeout-*", "oom-*")  # as libFuzzer names the inputs that it stopped at


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An input that was neither read nor refused; `input` in hex, empty when it is too long for a log."""

    kind: str  # crash, timeout, oom
    says: str
    input: str


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """What one process did. `coverage` counts the branches of Python code that the corpus reaches."""

    decoder: str
    ended: str  # UTC
    seconds: float
    cpu_seconds: float = 0.0  # which is less where others use the computer as well
    executions: int
    coverage: int
    corpus: int  # inputs
    findings: tuple[Finding, ...] = ()
    commit: str
    machine: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("decoder", choices=(*decoders.NAMES, "all"), metavar="DECODER", help=f"all, {', '.join(decoders.NAMES)}")
    parser.add_argument("--minutes", type=real(0), default=5.0, help="for each decoder (default: 5)")
    parser.add_argument("--corpus", type=Path, default=paths.cache() / "fuzz", help="folder of the inputs found so far")
    parser.add_argument("--seeds", type=Path, help="folder of kept inputs to begin with as well, where the corpus folder is new")
    parser.add_argument("--keep", type=Path, help="folder that some small inputs of the corpora are written to in the end")
    parser.add_argument("--log", type=Path, help="file that a line is added to for each slice (default: in the corpus folder)")


def run(arguments: argparse.Namespace) -> int:
    """Fuzz, then say how long each decoder has been fuzzed; the exit code is 1 when something was found."""
    if importlib.util.find_spec("atheris") is None:
        raise LabError("Fuzzing needs atheris, which is not installed here.", "On Linux `packaging/dev.py setup` installs it.")
    log = arguments.log or arguments.corpus / "log.jsonl"
    read(log)  # a file that is no log is refused before anything else
    json_lines_file.begin(log)
    if arguments.seeds and not arguments.seeds.is_dir():
        raise LabError(f"{arguments.seeds} is no folder.", "Choose another --seeds.")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    names = decoders.NAMES if arguments.decoder == "all" else (arguments.decoder,)
    found = 0
    try:
        for seconds in _slices(arguments.minutes * 60):
            for name in names:
                slice_ = fuzz(name, seconds, arguments.corpus, arguments.seeds)
                json_lines_file.append(log, slice_)
                found += len(slice_.findings)
                sys.stderr.write(_line(slice_))
    finally:
        sys.stderr.write(summary(read(log)))
    if arguments.keep:
        keep(names, arguments.corpus, arguments.keep)
    return 1 if found else 0


def read(log: Path) -> list[Slice]:
    """The slices in a log, oldest first; raises LabError."""
    return json_lines_file.read(log, Slice, "a slice of fuzzing", "--log")


def clean_seconds(slices: Sequence[Slice]) -> dict[str, float]:
    """For each decoder, how long it has been fuzzed since something was last found in it."""
    clean = dict.fromkeys(decoders.NAMES, 0.0)
    for each in slices:
        clean[each.decoder] = 0.0 if each.findings else clean.get(each.decoder, 0.0) + each.seconds
    return clean


def summary(slices: Sequence[Slice]) -> str:
    """A line for each decoder, and how much of it is clean."""
    clean = [f"{name:<14}{seconds / 60:8.1f} minutes without a finding\n" for name, seconds in clean_seconds(slices).items()]
    hours = sum(each.seconds for each in slices) / 3600
    cpu = sum(each.cpu_seconds for each in slices) / 3600
    return (
        "".join(clean) + f"{hours:.1f} hours ({cpu:.1f} of a core), {sum(each.executions for each in slices):,} inputs in all\n"
    )


def keep(names: Sequence[str], corpus: Path, folder: Path) -> None:
    """Write up to 30 inputs of each corpus down, a line in hex each: those that are short enough, of all sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        inputs = {path.read_bytes() for path in (corpus / name).glob("*") if 0 < path.stat().st_size <= KEPT_BYTES}
        sizes = sorted(inputs, key=lambda data: (len(data), data))
        chosen = sizes[:: -(-len(sizes) // KEPT) or 1]
        (folder / f"{name}.hex").write_text("".join(f"{data.hex()}\n" for data in chosen), encoding="ascii")


def fuzz(name: str, seconds: float, corpus: Path, seeds: Path | None = None) -> Slice:
    """Fuzz one decoder in a process of its own; raises LabError when that cannot start."""
    inputs = corpus / name
    inputs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="waggle-fuzz-", dir=_memory()) as folder:
        scratch, begun, used = Path(folder), time.monotonic(), _cpu_of_children()
        begin_with = (*decoders.decoder(name, scratch).seeds, *(decoders.kept(seeds, name) if seeds else ()))
        for i, seed in enumerate(begin_with):
            (inputs / f"seed-{i}").write_bytes(seed)
        (scratch / "found").mkdir()
        flags = [str(inputs), *limits(), f"-max_total_time={max(1, round(seconds))}", f"-artifact_prefix={scratch}/found/"]
        said, code = _play([sys.executable, "-m", "waggle_lab.security.fuzz_child", name, folder, *flags])
        findings = tuple(finding(path, said) for kind in FOUND for path in sorted((scratch / "found").glob(kind)))
    executions = _last(r"^stat::number_of_executed_units:\s*(\d+)", said)
    if not findings and not executions:
        raise LabError(f"The fuzzer of {name} ended with code {code}.", said[-600:])
    return Slice(
        decoder=name,
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(min(seconds, time.monotonic() - begun), 1),  # starting is no fuzzing
        cpu_seconds=round(_cpu_of_children() - used, 1),
        executions=executions,
        coverage=_last(r"cov: (\d+)", said),
        corpus=len(list(inputs.iterdir())),
        findings=findings,
        commit=provenance.commit(),
        machine=provenance.machine(),
    )


def limits() -> tuple[str, ...]:
    """As libFuzzer takes them. A process begins with the peak of whoever started it, as Linux counts: what it needs is on top."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    memory = f"-rss_limit_mb={MEMORY_MB + before}", f"-malloc_limit_mb={MEMORY_MB}"
    return "-timeout=10", *memory, f"-max_len={MAX_INPUT}", "-print_final_stats=1"


def _play(command: list[str]) -> tuple[str, int]:
    """What a process says until it ends, and its code. Ctrl-C reaches it as well and costs this slice, not its inputs."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        said = child.stdout.read()
    return said.decode(errors="replace"), child.returncode


def finding(path: Path, said: str) -> Finding:
    """The input in a file that libFuzzer left, and why it left it, out of all that it said."""
    trace = re.search(r"=== Uncaught Python exception: ===\n(.*?)\n={2}\d+", said, re.DOTALL)
    says = trace[1] if trace else "".join(re.findall(r"^==\d+== .*$", said, re.MULTILINE))
    data = path.read_bytes()
    kind = path.name.partition("-")[0]
    return Finding(kind=kind, says=says[-2000:], input=data.hex() if len(data) <= SHOWN else "")


def _cpu_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


def _line(slice_: Slice) -> str:
    what = "".join(f"\n{finding.kind}: {finding.says}" for finding in slice_.findings) or "nothing found"
    return f"{slice_.decoder:<14}{slice_.seconds:6.0f} s {slice_.executions:>11,} inputs, coverage {slice_.coverage}: {what}\n"


def _slices(seconds: float) -> list[float]:
    whole, rest = divmod(seconds, SLICE_S)
    return [SLICE_S] * int(whole) + ([rest] if rest >= 1 else [])


def _last(pattern: str, said: str) -> int:
    found = re.findall(pattern, said, re.MULTILINE)
    return int(found[-1]) if found else 0


def _memory() -> str | None:
    """A folder in memory, where the system has one: decoders of files write each input."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
