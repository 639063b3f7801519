"""The invite in a picture with a QR code. A picture comes from a stranger, so a process of its own with bounds reads it."""

import subprocess
import sys
from pathlib import Path

from waggle.cli.shared.printing import say
from waggle.core import paths
from waggle.core.errors import SwarmError
from waggle.core.system.os_faults import fault_of
from waggle.tasks.sandbox import hardening

SECONDS = 30.0
GROWTH_BYTES = 1 << 30  # beyond what the libraries take: a picture of 100 million pixels takes half of that


def invite_in(path: Path) -> str:
    """The invite in a picture. Raises SwarmError."""
    command = [*paths.module_command("waggle"), "invite", "--bounded", "--in", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=2 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise SwarmError("Reading the picture takes too long.", "Take a screenshot of the code.") from None
    if done.returncode:
        title, _, advice = done.stderr.strip().removeprefix("waggle: ").partition("\n")
        raise SwarmError(title or "The picture cannot be read.", advice.strip() or "Take a screenshot of the code.")
    return done.stdout.strip()


def print_invite_in(path: Path) -> int:
    """Print the invite in a picture to a pipe, in a process that gives up first what it does not need. Raises SwarmError."""
    from waggle.gui.state.inputs import invite_picture

    hardening.be_killed_first()
    hardening.set_deadline(SECONDS)
    hardening.limit_growth(GROWTH_BYTES)
    if sys.platform == "win32":
        hardening.limit_memory()
    hardening.write_no_files()  # and not more: Qt converts a picture in several threads
    try:
        return say(invite_picture.invite_in_picture(path))
    except OSError as error:
        raise SwarmError("The picture cannot be read.", f"{fault_of(error).reason}.") from error
    except MemoryError:
        raise SwarmError("The picture takes too much memory to read.", "Take a screenshot of the code.") from None
