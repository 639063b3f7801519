"""`waggle doctor`: checks everything that a node needs, and prints a report without names of people, keys or addresses."""

import argparse
import contextlib
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import waggle
from waggle.cli.control.status import MARKS, describe
from waggle.cli.shared import engine
from waggle.cli.shared.options import add_home
from waggle.cli.shared.printing import add_json, say_json
from waggle.core import log, paths, settings
from waggle.core.errors import WaggleError
from waggle.core.message import Message
from waggle.core.system.machine import (
    available_memory,
    disk_faults,
    free_disk,
    shared_memory_fault,
    total_memory,
    usable_cores,
    user_faults,
)
from waggle.core.text.redaction import THIS_NODE, redact
from waggle.engine.control import server
from waggle.engine.runtime import model_source
from waggle.engine.storage import history
from waggle.engine.system.sensors import SensorReader
from waggle.models.storage import checkpoint, ownership, training_journal
from waggle.network.identity import keys
from waggle.protocol.schedule import Wishes, decide
from waggle.tasks import charter, shipped_swarms
from waggle.tasks.audit_results import shipped_audit
from waggle.tasks.sandbox.hardening import Sandbox
from waggle.tasks.sandbox.verifier import Verifier

NEEDED = ("tokenizers", "reasoning_gym", "PySide6", "msgspec", "safetensors", "psutil")
LITTLE_ROOM = 1e9  # bytes
ENFORCEMENT: dict[Sandbox, str] = {
    "filtered": "the system's resource limits and a filter of system calls",
    "limited": "the system's resource limits only",
    "tripwire": "a tripwire only",
}


@dataclass(frozen=True)
class Finding:
    """The result of a check. `well` is None if it is neither good nor bad, but worth knowing."""

    what: str
    well: bool | None
    says: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Returns 1 if something is wrong."""
    home = paths.home_in(arguments.home)
    findings = [_safely(check, home) for check in CHECKS]
    if arguments.json:
        names = placeholders(home)
        say_json([replace(finding, says=redact(finding.says, home.root, names=names)) for finding in findings])
    else:
        sys.stdout.write(report(findings, home))
    return 1 if any(finding.well is False for finding in findings) else 0


def report(findings: list[Finding], home: paths.Home) -> str:
    """The findings and the last warnings, redacted."""
    marks = {True: "ok ", False: "BAD", None: "   "}
    lines = [f"{marks[finding.well]}  {finding.what}: {finding.says}" for finding in findings]
    warned: list[str] = []
    with contextlib.suppress(OSError):  # a finding says what cannot be read
        warned = list(log.lines(home.logs, level="WARNING"))[-20:]
    text = "\n".join([*lines, *(["", "Last warnings:"] if warned else []), *warned]) + "\n"
    return redact(text, home.root, names=placeholders(home))


def placeholders(home: paths.Home) -> dict[str, str]:
    """Placeholders for this node's friendly name, and for the names of swarms, because people chose these."""
    by_name: dict[str, str] = {}
    charter_paths = [*home.charters.glob("*.json")]
    with contextlib.suppress(WaggleError, OSError):  # unreadable settings name no charter
        if named := settings.read(home.settings).swarm.charter:
            charter_paths.append(paths.expand_user(named))
    for path in charter_paths:
        with contextlib.suppress(WaggleError):
            by_name[charter.read(path).name] = "a swarm"
    for shipped in shipped_swarms.shipped_swarms():
        by_name.pop(shipped.name, None)
    with contextlib.suppress(WaggleError, OSError):  # an unreadable key has no name
        if home.identity.exists():
            by_name[keys.name_of(keys.load_or_create(home.identity).peer_id)] = THIS_NODE
    return by_name


def required_packages(system: str, machine: str, *, frozen: bool) -> tuple[str, ...]:
    """The packages that Waggle needs on this system. None for an installed app, which contains them."""
    if frozen:
        return ()
    learns_with = "mlx" if (system, machine) == ("darwin", "arm64") else "torch"
    return (*NEEDED, learns_with, *(() if system == "win32" else ("hivemind",)))


def _safely(check: "Check", home: paths.Home) -> Finding:
    try:
        return check(home)
    except WaggleError as error:
        is_to_come = isinstance(error, model_source.NotHereYetError)
        return Finding(_name(check), None if is_to_come else False, f"{error.title} {error.advice}".strip())
    except OSError as error:  # trouble with the folder is a finding, too
        return Finding(_name(check), False, str(error))


def _name(check: "Check") -> str:
    return getattr(check, "__name__", "check").strip("_").replace("_", " ")


def _program(_home: paths.Home) -> Finding:
    says = f"Waggle {waggle.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    packages = required_packages(sys.platform, platform.machine(), frozen=getattr(sys, "frozen", False))
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    says += f", {usable_cores()} cores" + (f"; not installed: {', '.join(missing)}" if missing else "")
    if "reasoning_gym" in missing:  # on Windows, pip leaves it out, because it would compile a package that is not needed
        says += f" (pip install --no-deps reasoning-gym=={shipped_audit().heading.reasoning_gym})"
    return Finding("program", not missing, says)


def _computer(_home: paths.Home) -> Finding:
    """What this process may use of the computer, in a container for example."""
    cores = Message("%1 of %2 cores", usable_cores(), os.cpu_count())
    memory = f"{available_memory() / 1e9:.1f} GB of {total_memory() / 1e9:.1f} GB of memory are free"
    fault = shared_memory_fault()
    shared = f"; its shared memory, /dev/shm, cannot be used: {fault}" if fault else ""
    return Finding("computer", not fault, f"{cores} may be used, {memory}{shared}")


def _surroundings(_home: paths.Home) -> Finding:
    """What a container may lack."""
    faults = user_faults()
    return Finding("user", not faults, "; ".join(faults) or "has a home folder, a name and a working directory")


def _folder(home: paths.Home) -> Finding:
    if not home.root.exists():
        return Finding("folder", None, f"{home.root} does not exist yet: the engine makes it")
    free, faults = free_disk(home.root), disk_faults(home.root)
    link = f", a link to {home.root.resolve()}," if home.root.is_symlink() else ""
    if faults:
        return Finding("folder", False, f"{home.root}{link} {'; '.join(faults)}. Choose a folder on a local disk with --home.")
    says = f"{home.root}{link} can be written, flushed and locked, {free / 1e9:.1f} GB are free"
    return Finding("folder", free > LITTLE_ROOM, says)


def _settings(home: paths.Home) -> Finding:
    chosen = settings.read(home.settings)
    if unusable := settings.unusable(home.settings):
        return Finding("settings", False, " ".join(f"{reason.title} {reason.advice}" for reason in unusable))
    return Finding("settings", True, f"profile {settings.profile_of(chosen, usable_cores())}")


def _identity(home: paths.Home) -> Finding:
    if not home.identity.exists():
        return Finding("identity", None, "none yet: the engine makes one")
    keys.load_or_create(home.identity)
    return Finding("identity", True, "exists")


def _model(home: paths.Home) -> Finding:
    return Finding("model", True, model_source.folder_of(settings.read(home.settings).model).name)


def _charter(_home: paths.Home) -> Finding:
    swarms = [f"{charter.name} with {len(charter.specialties)}" for charter in shipped_swarms.shipped_swarms()]
    return Finding("charter", True, f"{' and '.join(swarms)} specialties ship with it")


def _judging(_home: paths.Home) -> Finding:
    with contextlib.closing(Verifier(shipped_swarms.first_swarm())) as judging:
        return Finding("judging", True, f"in a separate process, limited by {ENFORCEMENT[judging.sandbox]}")


def _saved_state(home: paths.Home) -> Finding:
    home = _of_the_model(home)
    if not checkpoint.folders(home.model.checkpoints):
        return Finding("saved state", None, "none yet")
    model = model_source.folder_of(settings.read(home.settings).model, home.model.checkpoints)
    base = ownership.base_of(home.model.checkpoints, model)
    _, saved = checkpoint.newest(home.model.checkpoints, base)
    later = sum(1 for _ in training_journal.entries(home.model.checkpoints, saved.round, base))
    damaged = len(list(home.model.checkpoints.glob("damaged-r*")))
    says = f"{saved.round} rounds in a whole checkpoint, {later} more in the journal"
    return Finding("saved state", True, says + (f"; {damaged} damaged and set aside" if damaged else ""))


def _history(home: paths.Home) -> Finding:
    home = _of_the_model(home)
    if not home.model.history.exists():
        return Finding("history", None, "none yet")
    try:
        with history.open_read_only(home.model.history) as database:
            (verdict,) = database.execute("pragma quick_check(1)").fetchone()
            (count,) = database.execute("select count(*) from rounds").fetchone()
    except history.DAMAGED as error:
        if not history.is_damage(error):
            return Finding("history", False, f"it cannot be read ({error})")
        return Finding("history", False, f"damaged ({error}): the engine sets it aside and rebuilds it from its record")
    return Finding("history", verdict == "ok", f"{count} rounds, {verdict}")


def _of_the_model(home: paths.Home) -> paths.Home:
    """The home with the files of the model that is chosen now."""
    return model_source.home_of(home, settings.read(home.settings).model)


def _rules(home: paths.Home) -> Finding:
    rules = settings.read(home.settings).when
    decision = decide(rules, SensorReader()(rules), Wishes(), time.time())
    ticks = " ".join(f"[{MARKS[tick.passes]}] {tick.says}" for tick in decision.why)
    return Finding("rules", None, f"{decision.reason or 'nothing holds contribution back.'} {ticks}".strip())


def _engine(home: paths.Home) -> Finding:
    if server.is_running(home):
        return Finding("engine", True, describe(engine.status(home), time.time()).replace("\n", " "))
    return Finding("engine", None, "not running")


Check = Callable[[paths.Home], Finding]
CHECKS: tuple[Check, ...] = (
    _program, _computer, _surroundings,
    _folder, _settings, _identity, _model, _charter, _judging, _saved_state, _history, _rules, _engine,
)  # fmt: skip
