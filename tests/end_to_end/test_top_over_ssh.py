"""`waggle top` through a real ssh, on the loopback: it shows the engine, obeys keys, and leaves the terminal as it was."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import parity
from end_to_end.programs import ENVIRONMENT, WAGGLE
from waggle.core import paths

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NEEDED = SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")
pytestmark = pytest.mark.skipif(sys.platform == "win32" or not NEEDED, reason="needs sshd and ssh")


@contextlib.contextmanager
def ssh_to_here(folder: Path) -> Iterator[list[str]]:
    """The command that runs another one through ssh, by a key and a server of its own."""
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/key.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
    )
    if os.geteuid() == 0:  # where sshd lowers its own rights
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stderr=subprocess.PIPE) as server:
        try:
            assert b"Server listening" in server.stderr.readline()
            options = ("StrictHostKeyChecking=no", f"UserKnownHostsFile={folder}/known", "LogLevel=ERROR", "BatchMode=yes")
            yield ["ssh", "-F", "none", "-p", str(port), "-i", str(folder / "key"), *(f"-o{each}" for each in options),
                   f"{getpass.getuser()}@127.0.0.1"]  # fmt: skip
        finally:
            server.terminate()


def test_top_works_through_ssh(tmp_path):
    from cli.terminal import Terminal  # which Windows has not

    home = paths.Home(tmp_path / "home").prepare()
    command = ["env", f"PYTHONPATH={ENVIRONMENT['PYTHONPATH']}", *WAGGLE, "top", "--home", str(home.root)]
    with ssh_to_here(tmp_path) as ssh, parity.recording_engine(home) as engine:
        with Terminal([*ssh, "-tt", *command], {**ENVIRONMENT, "TERM": "xterm-256color"}) as terminal:
            terminal.read_until_written(b"Maths swarm")
            terminal.read_until_written(socket.gethostname().encode()[:20])
            terminal.press(b"p")
            terminal.read_until_written(b"Until tomorrow morning")
            terminal.press(b"\r")
            terminal.read_until(lambda: "Pause" in engine.sent)
            terminal.press(b"q")
            assert terminal.exit_code() == 0
            assert terminal.is_as_before()
        bare = subprocess.run([*ssh, *command], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=100)
        assert bare.returncode == 1
        assert "Through ssh, write `ssh -t HOST waggle top`." in bare.stderr
