"""`waggle doctor`: looks at everything a node needs and has, and prints a report that names no person, key or address."""

import argparse
import contextlib
import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import waggle
from waggle.cli import ctl
from waggle.cli.options import add_home
from waggle.core import log, paths, settings
from waggle.core.errors import WaggleError
from waggle.core.redaction import THIS_NODE, redacted
from waggle.engine.control import server
from waggle.engine.runtime import model_source
from waggle.engine.storage import history
from waggle.engine.system.sensors import SensorReader
from waggle.models.storage import checkpoint, training_journal
from waggle.network.identity import keys
from waggle.protocol.schedule import Wishes, decide
from waggle.tasks import charter
from waggle.tasks.sandbox.hardening import Sandbox
from waggle.tasks.sandbox.verifier import Verifier

NEEDED = ("tokenizers", "reasoning_gym", "PySide6", "msgspec", "safetensors", "psutil")
LITTLE_ROOM = 1e9  # bytes
ENFORCEMENT: dict[Sandbox, str] = {
    "filtered": "the limits of the system and a filter of its calls",
    "limited": "the limits of the system alone",
    "tripwire": "a tripwire alone",
}


@dataclass(frozen=True)
class Finding:
    """`well` None: neither good nor bad, but worth knowing."""

    what: str
    well: bool | None
    says: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the report; 1 where something is wrong."""
    home = paths.home_in(arguments.home)
    findings = [_safely(check, home) for check in CHECKS]
    sys.stdout.write(report(findings, home))
    return 1 if any(finding.well is False for finding in findings) else 0


def report(findings: list[Finding], home: paths.Home) -> str:
    """The findings, then the last warnings, with everything left out that says who and where."""
    marks = {True: "ok ", False: "BAD", None: "   "}
    lines = [f"{marks[finding.well]}  {finding.what}: {finding.says}" for finding in findings]
    warned: list[str] = []
    with contextlib.suppress(OSError):  # what cannot be read has its finding
        warned = list(log.lines(home.logs, level="WARNING"))[-20:]
    text = "\n".join([*lines, *(["", "Last warnings:"] if warned else []), *warned]) + "\n"
    return redacted(text, home.root, names=names(home))


def names(home: paths.Home) -> dict[str, str]:
    """What stands for the two words that a swarm knows this node by, and for the names of swarms, which persons typed."""
    placeholders: dict[str, str] = {}
    charter_paths = [*home.charters.glob("*.json")]
    with contextlib.suppress(WaggleError, OSError):  # settings that cannot be read name none
        if named := settings.read(home.settings).swarm.charter:
            charter_paths.append(paths.expanded(named))
    for path in charter_paths:
        with contextlib.suppress(WaggleError):
            placeholders[charter.read(path).name] = "a swarm"
    placeholders.pop(charter.first_swarm().name, None)
    with contextlib.suppress(WaggleError, OSError):  # nor does a key
        if home.identity.exists():
            placeholders[keys.name_of(keys.load_or_create(home.identity).peer_id)] = THIS_NODE
    return placeholders


def needed(system: str, machine: str, *, frozen: bool) -> tuple[str, ...]:
    """The packages without which Waggle does not work there; an installed app was tried with what it brings along."""
    if frozen:
        return ()
    learns_with = "mlx" if (system, machine) == ("darwin", "arm64") else "torch"
    return (*NEEDED, learns_with, *(() if system == "win32" else ("hivemind",)))


def _safely(check: "Check", home: paths.Home) -> Finding:
    try:
        return check(home)
    except WaggleError as error:
        return Finding(_name(check), False, f"{error.title} {error.advice}".strip())
    except OSError as error:  # of the folder: that is a finding too
        return Finding(_name(check), False, str(error))


def _name(check: "Check") -> str:
    return getattr(check, "__name__", "check").strip("_").replace("_", " ")


def _program(_home: paths.Home) -> Finding:
    says = f"Waggle {waggle.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    packages = needed(sys.platform, platform.machine(), frozen=getattr(sys, "frozen", False))
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    says += f", {os.cpu_count()} cores" + (f"; not installed: {', '.join(missing)}" if missing else "")
    return Finding("program", not missing, says)


def _folder(home: paths.Home) -> Finding:
    if not home.root.exists():
        return Finding("folder", None, f"{home.root} is not there yet: the engine makes it")
    probe = home.root / ".doctor"
    probe.write_bytes(b"")
    probe.unlink()
    free = shutil.disk_usage(home.root).free
    return Finding("folder", free > LITTLE_ROOM, f"{home.root} can be written, {free / 1e9:.1f} GB are free")


def _settings(home: paths.Home) -> Finding:
    chosen = settings.read(home.settings)
    return Finding("settings", True, f"profile {settings.profile_of(chosen, os.cpu_count() or 1)}")


def _identity(home: paths.Home) -> Finding:
    if not home.identity.exists():
        return Finding("identity", None, "none yet: the engine makes one")
    keys.load_or_create(home.identity)
    return Finding("identity", True, "there")


def _model(home: paths.Home) -> Finding:
    return Finding("model", True, model_source.folder_of(settings.read(home.settings).model).name)


def _charter(_home: paths.Home) -> Finding:
    shipped = charter.first_swarm()
    return Finding("charter", True, f"{shipped.name} with {len(shipped.specialties)} specialties ships with it")


def _judging(_home: paths.Home) -> Finding:
    with contextlib.closing(Verifier(charter.first_swarm())) as judging:
        return Finding("judging", True, f"in a process of its own, which is held by {ENFORCEMENT[judging.sandbox]}")


def _saved_state(home: paths.Home) -> Finding:
    home = _of_the_model(home)
    base = checkpoint.base_of(model_source.folder_of(settings.read(home.settings).model))
    if not checkpoint.folders(home.model.checkpoints):
        return Finding("saved state", None, "none yet")
    _, saved = checkpoint.newest(home.model.checkpoints, base)
    later = sum(1 for _ in training_journal.entries(home.model.checkpoints, saved.round, base))
    damaged = len(list(home.model.checkpoints.glob("damaged-r*")))
    says = f"{saved.round} rounds in a whole checkpoint, {later} more in the journal"
    return Finding("saved state", True, says + (f"; {damaged} damaged ones lie beside it" if damaged else ""))


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
    """With the place where what is trained of the model that is chosen now is kept."""
    return model_source.home_of(home, settings.read(home.settings).model)


def _rules(home: paths.Home) -> Finding:
    rules = settings.read(home.settings).when
    decision = decide(rules, SensorReader()(rules), Wishes(), time.time())
    ticks = " ".join(f"[{ctl.MARKS[tick.passes]}] {tick.says}" for tick in decision.why)
    return Finding("rules", None, f"{decision.reason or 'nothing holds contribution back.'} {ticks}".strip())


def _engine(home: paths.Home) -> Finding:
    if server.is_running(home):
        return Finding("engine", True, ctl.describe(ctl.status(home), time.time()).replace("\n", " "))
    return Finding("engine", None, "not running")


Check = Callable[[paths.Home], Finding]
CHECKS: tuple[Check, ...] = (
    _program, _folder, _settings, _identity, _model, _charter, _judging, _saved_state, _history, _rules, _engine,
)  # fmt: skip
