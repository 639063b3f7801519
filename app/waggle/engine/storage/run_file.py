"""A run as one file, from which it can be repeated: settings with the seed, versions, every round, digests of the weights.

A round of a node that trains alone is a function of its number, the model, the charter, the settings and the seed: with
`learning.seed`, neither the node's key nor the clock takes part. So there is no key in the file.
"""

import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

import waggle
from waggle.core import paths
from waggle.core import settings as known_settings
from waggle.core.errors import UNREADABLE, EngineError, HistoryError
from waggle.core.message import Message
from waggle.core.settings import Settings, Value
from waggle.core.system.os_faults import fault_of
from waggle.engine.runtime import model_source
from waggle.engine.runtime.event_publisher import oldest_first
from waggle.engine.storage import history
from waggle.models.storage import checkpoint
from waggle.protocol import events, json_lines
from waggle.protocol.events import HeldOutScore, RoundSummary
from waggle.protocol.state import Snapshot
from waggle.tasks.shipped_swarms import first_swarm

MAX_BYTES = 128 * 1024 * 1024
LIBRARIES = ("torch", "mlx", "mlx-lm", "transformers", "peft", "tokenizers", "numpy", "reasoning-gym")
SECTIONS = ("model", "learning")  # all their settings decide a round
OTHERS = ("swarm.solo", "swarm.charter", "computer.threads", "computer.device")
TELLING = (b'{"type":"Ready"', b'{"type":"SettingsChanged"', b'{"type":"Snapshot"')  # beginnings of lines of a record


class RunFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`settings` are those that decide a round and differ from their defaults. Rounds are without what passes, such as times."""

    format: Literal[1] = 1
    waggle: str
    python: str
    libraries: dict[str, str]
    machine: str
    device: str
    swarm: str
    charter: str  # hex
    model: str
    base: str  # identifies the files that training began from
    settings: dict[str, Value]
    rounds: tuple[RoundSummary, ...]
    held_out: tuple[HeldOutScore, ...]
    weights: dict[str, str]  # SHA-256 of the files of the checkpoint after the last round, in hex


def run_of(home: paths.Home) -> RunFile:
    """The run of this home up to its newest checkpoint, also beside a running engine. Raises HistoryError."""
    ready, chosen = _last_start(home)
    if not (chosen.swarm.solo and chosen.learning.seed):
        raise HistoryError(
            "This run cannot be repeated.",
            "Only a node that trains alone with a seed can: begin a new one with swarm.solo=true and learning.seed=1.",
        )
    place = model_source.home_of(home, chosen.model)
    rounds, scores = read_rounds(place)
    saved, weights = weights_of(place)
    rounds = [summary for summary in rounds if summary.round < saved]
    if [summary.round for summary in rounds] != list(range(saved)) or any(summary.recipe != ready.recipe for summary in rounds):
        raise HistoryError("This run cannot be repeated.", "Its settings changed in between, or the history lacks rounds of it.")
    return RunFile(
        waggle=waggle.__version__, python=platform.python_version(), libraries=versions(), machine=machine(), device=ready.device,
        swarm=ready.swarm, charter=ready.charter, model=ready.model, base=ready.base, settings=_settings_of(ready, chosen),
        rounds=tuple(map(lasting, rounds)), held_out=tuple(lasting_score(score) for score in scores if score.round <= saved),
        weights=weights,
    )  # fmt: skip


def read(path: Path) -> RunFile:
    """Read a file that `write` wrote, also one of a stranger. Raises HistoryError, and SettingsError for values of no setting."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise HistoryError(Message("%1 is too long for a run.", path))
        run = msgspec.json.decode(content, type=RunFile)
    except OSError as error:
        raise HistoryError(Message("%1 cannot be read: %2.", path, fault_of(error).reason), fault_of(error).advice) from error
    except UNREADABLE as error:
        raise HistoryError(
            Message("%1 is no file of a run: %2.", path, error), "`waggle repeat --write FILE` writes one."
        ) from error
    if strange := [key for key in run.settings if key.partition(".")[0] not in SECTIONS and key not in OTHERS]:
        raise HistoryError(Message("%1 sets %2, which decides no round.", path, ", ".join(strange)), "So it is not used.")
    if run.settings.get("swarm.solo") is not True:
        raise HistoryError(Message("%1 is of a run with peers, which cannot be repeated.", path))
    return run


def write(path: Path, run: RunFile) -> None:
    """Write a new file. Raises OSError, and FileExistsError if there is one of this name."""
    paths.write_new(path, msgspec.json.format(msgspec.json.encode(run)) + b"\n")


def read_rounds(place: paths.Home) -> tuple[list[RoundSummary], list[HeldOutScore]]:
    """All rounds and scores of a model, oldest first, also beside a running engine. Raises HistoryError."""
    path = place.model.history
    if not path.exists():
        raise HistoryError("No round has been played here yet.", "The engine writes the history: `waggle engine` starts it.")
    try:
        return history.read_all(path)
    except history.DAMAGED as error:
        raise HistoryError(
            Message("The history %1 cannot be read: %2.", path, error), "The engine repairs it when it starts."
        ) from error


def weights_of(place: paths.Home) -> tuple[int, dict[str, str]]:
    """The rounds that the newest checkpoint has learned from, and the SHA-256 of its arrays. Raises HistoryError."""
    for folder in checkpoint.folders(place.model.checkpoints):
        with suppress(OSError, UnicodeDecodeError):
            sums = (line.split("  ", 1) for line in (folder / checkpoint.SUMS).read_text().splitlines())
            return int(folder.name[1:]), {name: digest for digest, name in sums if name != checkpoint.STATE}
    raise HistoryError("No state of this model has been saved yet.", "The engine saves one when it stops.")


def lasting(summary: RoundSummary) -> RoundSummary:
    """A round without its name and what passes: when it was, how long it took, in how much memory."""
    return replace(summary, at=0.0, seconds=0.0, memory=0, run="")


def lasting_score(score: HeldOutScore) -> HeldOutScore:
    return replace(score, at=0.0, seconds=0.0)


def differences(before: RoundSummary, now: RoundSummary) -> list[str]:
    """What differs between two plays of a round, in words."""
    was, is_now = _figures(lasting(before)), _figures(lasting(now))
    return [f"{name} {is_now.get(name)} instead of {was.get(name)}" for name in was | is_now if was.get(name) != is_now.get(name)]


def versions() -> dict[str, str]:
    """The versions of the libraries that compute a round, of those that are here."""
    known = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            known[name] = metadata.version(name)
    return known


def machine() -> str:
    return f"{platform.system()} {platform.machine()}"


def _figures(summary: RoundSummary) -> dict[str, object]:
    fields: dict[str, Any] = msgspec.to_builtins(summary)
    return {**fields, **fields.pop("metrics")}


def _settings_of(ready: events.Ready, chosen: Settings) -> dict[str, Value]:
    keys = [f"{section}.{name}" for section in SECTIONS for name in getattr(chosen, section).__struct_fields__]
    values = {key: known_settings.value_of(chosen, key) for key in (*keys, "computer.device")}
    usual = Settings()
    decided = {key: value for key, value in values.items() if value != known_settings.value_of(usual, key)}
    charter = {} if ready.charter == first_swarm().digest.hex() else {"swarm.charter": ready.charter}
    return {"swarm.solo": True, **charter, **decided, "computer.threads": ready.threads}


def _last_start(home: paths.Home) -> tuple[events.Ready, Settings]:
    """The last time that the engine was ready here, and its settings then. Raises HistoryError."""
    ready: events.Ready | None = None
    chosen: Settings | None = None
    for path in reversed(oldest_first(home.events, float("inf"))):
        later_ready, later_chosen = ready, chosen
        with suppress(OSError), path.open("rb") as lines:
            for line in lines:
                if line.startswith(TELLING):
                    with suppress(EngineError):
                        match json_lines.event(line):
                            case events.Ready() as ready:
                                pass
                            case events.SettingsChanged(settings=chosen):
                                pass
                            case Snapshot(state=state):
                                ready, chosen = state.ready or ready, state.settings or chosen
        ready, chosen = later_ready or ready, later_chosen or chosen
        if ready is not None and chosen is not None:
            return ready, chosen
    raise HistoryError("No round has been played here yet.", "The engine writes the history: `waggle engine` starts it.")
