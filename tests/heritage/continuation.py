"""A home of before, gone on with by an engine of now: the state it begins with, and one more round of it, as digests.

Everything in a round is a function of the node's key, of the number of the round, and of the clock; so the engine is given a
clock. The figures are then the same to the last bit on the same kind of processor with the same torch.
"""

import functools
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors import deserialize

from end_to_end.programs import SLOW, Engine, running
from waggle.cli.shared import engine as engine_answers
from waggle.core import paths, settings
from waggle.core.errors import EngineError
from waggle.core.message import english
from waggle.protocol import commands, events, json_lines
from waggle.protocol.state import AnyEvent
from waggle.tasks.shipped_swarms import first_swarm

TINY = "heritage/tiny"
WAYS = {  # settings by which each of the person's models is gone on with
    "starter": (), "hub": (f"model.name={TINY}",), "folder": ("model.folder=~/exported", "model.precision=bfloat16"),
}  # fmt: skip
OFFSCREEN = {"QT_QPA_PLATFORM": "offscreen"}
SOME_DAY = 32_000_000_000.0  # unix seconds: until then contribution is paused
PASSPHRASE = "four words nobody guesses"
CLOCK = """
import runpy, sys, time
now, began, real = float(sys.argv.pop(1)), time.time(), time.time
time.time = lambda: now + real() - began
runpy.run_module("waggle", run_name="__main__", alter_sys=True)
"""
ARITHMETIC = """
import hashlib, platform, torch
torch.set_num_threads(1)
noise = torch.Generator().manual_seed(0)
digest = hashlib.sha256(f"{torch.__version__} {platform.machine()}".encode())
for precision in (torch.float32, torch.bfloat16):
    for rows, inner, columns in ((7, 32, 64), (96, 128, 352), (300, 128, 583)):
        left, right = (torch.randn(size, generator=noise).to(precision) for size in ((rows, inner), (inner, columns)))
        product = torch.nn.functional.silu(left @ right).float().log_softmax(-1)
        digest.update((product.exp().rsqrt() + product.sum(0)).numpy().tobytes())
print(digest.hexdigest())
"""
STORED = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
PASSING = {"seq", "at", "seconds", "bytes"}  # of events: what differs each time, or with the version of a library
KINDS = ("QuestionsDrawn", "GroupsJudged", "GroupsShared", "GroupsGathered", "PolicyUpdated", "RoundCompleted")


@dataclass(frozen=True)
class Person:
    """Somebody's folders: all that Waggle writes for them is below `root`."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.root), "XDG_CACHE_HOME": str(self.root / ".cache"), "TZ": "UTC"}


def continued(person: Person, folder: Path, *chosen: str, clock: float) -> dict[str, Any]:
    """Start an engine in a copy of a home, at this moment of its clock, and let it play one round."""
    copy = Person(folder / "continued")
    shutil.rmtree(copy.root, ignore_errors=True)
    shutil.copytree(person.root, copy.root)
    (copy.home / "asked.json").write_text('{"paused": true, "after_round": true}', encoding="utf-8")
    command = (sys.executable, "-c", CLOCK, str(clock))
    with running(Engine(copy.home, *chosen, command=command, environment=copy.environment)) as engine:
        answer_ended_swarm(engine)
        ready = engine.wait(events.Ready, 120)
        engine.wait(events.PhaseChanged, 120, lambda event: event.phase == "paused")
        assert engine.end() == 0, engine.errors
        lines = [json.loads(line) for _, line in engine.lines]
    assert isinstance(ready, events.Ready)
    kinds = ("Warned", "CheckpointSetAside", "RecordRejected", "EngineFailed")
    warned = [fields_of(json_lines.event(line)) for _, line in engine.lines if json.loads(line)["type"] in kinds]
    return {
        "arithmetic": arithmetic(), "clock": clock, "round": ready.round, "model": ready.model, "base": ready.base,
        "completions": ready.completions, "warned": warned, "after": _state_in(_training_of(copy.home, ready.round + 1)),
        "events": [_lasting(line) for line in lines if line["type"] in KINDS],
    }  # fmt: skip


def answer_ended_swarm(engine: Engine) -> None:
    """Choose the shipped swarm where a private one has ended: nobody is moved to an open one unasked."""
    first = engine.wait_line(lambda line: b'"Ready"' in line or b'"SwarmUndecided"' in line, 120)
    if b'"SwarmUndecided"' in first:
        engine.command(commands.ChooseSwarm, charter=first_swarm().digest.hex())


@functools.cache
def arithmetic() -> str:
    """What this computer makes of the operations of a model: where that is the same, so is every figure of a round."""
    finished = subprocess.run([sys.executable, "-c", ARITHMETIC], capture_output=True, text=True, check=False)
    return finished.stdout.strip()  # empty without torch


def settings_of(person: Person) -> dict[str, Any]:
    builtins: dict[str, Any] = json.loads(msgspec.json.encode(settings.read(person.home / "settings.toml")))
    return builtins


def fields_of(event: AnyEvent) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(msgspec.json.encode(event, enc_hook=english))
    return fields


def has_engine(home: Path) -> bool:
    """Whether an engine has begun to play, or waits to, or asks for a choice in this home."""
    with suppress(EngineError, OSError):  # it does not listen yet
        state = engine_answers.status(paths.Home(home))
        return state.phase != "preparing" or state.waits_for_choice
    return False


def wait_until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds * SLOW
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds * SLOW} s")
        time.sleep(0.1)


def _training_of(home: Path, number: int) -> Path:
    """Where the checkpoints of the model are kept that has played so many rounds."""
    (place,) = {path.parent for path in home.rglob("checkpoints/r*") if int(path.name[1:]) == number}
    return place


def _state_in(checkpoints: Path) -> dict[str, Any]:
    """The newest checkpoint: what it says of itself, and its arrays by file."""
    newest = max(checkpoints.glob("r*"))
    contents: dict[str, Any] = {"state": json.loads((newest / "state.json").read_bytes())}
    for path in sorted(newest.glob("*.safetensors")):
        contents[path.name] = _arrays(path)
    return contents


def _arrays(path: Path) -> dict[str, Any]:
    """A digest of all arrays, and the length of each as a vector for computers that calculate a little differently."""
    digest, norms = hashlib.sha256(), {}
    for name, array in sorted(deserialize(path.read_bytes())):
        digest.update(f"{name} {array['dtype']} {array['shape']}".encode() + bytes(array["data"]))
        numbers = np.frombuffer(array["data"], STORED[array["dtype"]])
        if array["dtype"] == "BF16":
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        norms[name] = float(f"{np.linalg.norm(numbers.astype(np.float64)):.6g}")
    return {"digest": digest.hexdigest(), "norms": norms}


def _lasting(value: Any) -> Any:
    """Without what passes: moments, and how long something took."""
    if isinstance(value, dict):
        return {key: _lasting(inner) for key, inner in value.items() if key not in PASSING}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value
