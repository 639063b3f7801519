"""The measuring script's end of a process of `nodes.py`."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from transport_gates.namespaces import Leaves

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent


class Side:
    def __init__(
        self,
        spaces: Leaves,
        leaf: int,
        kind: str,
        count: int,
        *,
        first: int = 4001,
        memory: int = 0,
        strace: str = "",
        host: str = "",
    ) -> None:
        self.leaf = leaf
        watched = ["strace", "-f", "-qq", "-s", "0", "-e", "trace=%network", "-o", strace] if strace else []
        arguments = [str(HERE / "nodes.py"), kind, host or spaces.address(leaf), str(first), str(count), str(memory)]
        self.process = subprocess.Popen(
            spaces.command(leaf, *watched, sys.executable, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=str(ROOT / "app")), start_new_session=True,
        )  # fmt: skip
        self.start_s = self._read()
        self.ids: list[list[str]] = self.ask("ids")

    @property
    def peer_id(self) -> str:
        return self.ids[0][0]

    @property
    def address(self) -> str:
        return self.ids[0][1]

    def send(self, name: str, *arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()

    def ask(self, name: str, *arguments: Any) -> Any:
        self.send(name, *arguments)
        return self._read()

    def receive(self) -> Any:
        return self._read()

    def kill(self) -> None:
        """Kill the process and its network processes, as a power cut does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())
