"""A user's first days with real clicks and keys on the real window, against a live engine and a peer.

It takes a few minutes: python -m pytest -m slow tests/end_to_end/test_driven.py
"""

import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from end_to_end.programs import ENVIRONMENT, Engine, running, virtual_screen
from end_to_end.test_invite import CHOSEN, SETTINGS, go_there
from waggle.models.storage import checkpoint
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import InviteWritten, SwarmCreated

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a virtual screen is X11's"),
    pytest.mark.skipif(not (shutil.which("Xvfb") and shutil.which("xdotool")), reason="Xvfb or xdotool is not installed"),
]  # fmt: skip
TESTS = Path(__file__).resolve().parents[1]
STEPS = (
    "first reward", "paused for an hour and resumed", "another profile", "talked", "joined by a link", "exported", "muted a peer",
    "backed up, became somebody else, and restored", "dark, and in German", "to the tray, and back", "leaving in round",
)  # fmt: skip


@pytest.mark.timeout(3600)
def test_a_person_does_it_all_by_mouse_and_keyboard_and_leaves_in_the_middle_of_a_round(tmp_path):
    home = tmp_path / "home"
    with running(Engine(tmp_path / "other", *SETTINGS)) as other, virtual_screen() as there:
        other.wait(events.Ready, 600)
        other.command(commands.CreateSwarm, 300, name="Two laptops", specialties=CHOSEN)
        go_there(other, other.wait(SwarmCreated).swarm.charter)
        other.command(commands.WriteInvite)
        link = other.wait(InviteWritten).link
        environment = {**there, "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{TESTS}", "LANG": "C.UTF-8"}
        tray = subprocess.Popen(
            [sys.executable, str(TESTS / "end_to_end/tray_host.py"), "1350", "850"], env=environment, stdout=subprocess.PIPE
        )
        try:
            tray.stdout.readline()
            command = [sys.executable, "-m", "end_to_end.driven", str(home), link, str(tmp_path)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=3300)
        finally:
            tray.kill()
            tray.wait()
        steps = done.stdout.splitlines()
        assert [step for step, beginning in zip(steps, STEPS, strict=False) if step.startswith(beginning)] == steps, steps
        assert (len(steps), done.returncode) == (len(STEPS), 0)
        leftovers = [
            process for process in psutil.process_iter(["cmdline"]) if str(home) in " ".join(process.info["cmdline"] or ())
        ]
        assert leftovers == [], "no engine is left behind"
        assert checkpoint.rounds(home / "checkpoints") >= int(steps[-1].split()[-1]), "no finished round was lost"
        assert other.end() == 0
