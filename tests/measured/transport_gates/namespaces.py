"""A router and some leaves, each a network namespace: packets can be dropped, and what iroh sends to everybody stays inside."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PREFIX = f"wg{os.getpid() % 10000}"


def run(*command: str, check: bool = True) -> None:
    subprocess.run(command, check=check, stderr=None if check else subprocess.DEVNULL)


class Leaves:
    """Leaf `i` has the address 10.99.i.2."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.router = f"{PREFIX}r"

    def name(self, leaf: int) -> str:
        return f"{PREFIX}n{leaf}"

    def address(self, leaf: int) -> str:
        return f"10.99.{leaf}.2"

    def command(self, leaf: int, *command: str) -> list[str]:
        """The command that runs another one in a leaf."""
        return ["ip", "netns", "exec", self.name(leaf), *command]

    def python(self, leaf: int, *arguments: str) -> list[str]:
        return self.command(leaf, sys.executable, *arguments)

    def drop(self, leaf: int, what: str = "") -> None:
        """Drop packets (of a protocol, such as "udp") from and to a leaf, without a word to anybody."""
        protocol = ["meta", "l4proto", what] if what else []
        for side in ("iifname", "oifname"):
            self._nft("add", "rule", "ip", "w", "forward", side, f"l{leaf}", *protocol, "drop")

    def drop_nothing(self) -> None:
        self._nft("flush", "chain", "ip", "w", "forward")

    def build(self) -> None:
        run("ip", "netns", "add", self.router)
        run("ip", "-n", self.router, "link", "set", "lo", "up")
        run("ip", "netns", "exec", self.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self._nft("add", "table", "ip", "w")
        self._nft("add", "chain", "ip", "w", "forward", "{ type filter hook forward priority 0 ; }")
        for leaf in range(self.count):
            name, mine, other = self.name(leaf), "w", f"l{leaf}"
            run("ip", "netns", "add", name)
            run("ip", "link", "add", mine, "netns", name, "type", "veth", "peer", "name", other, "netns", self.router)
            run("ip", "-n", name, "addr", "add", f"{self.address(leaf)}/24", "dev", mine)
            run("ip", "-n", self.router, "addr", "add", f"10.99.{leaf}.1/24", "dev", other)
            for space, link in ((name, "lo"), (name, mine), (self.router, other)):
                run("ip", "-n", space, "link", "set", link, "up")
            run("ip", "-n", name, "route", "add", "default", "via", f"10.99.{leaf}.1")

    def remove(self) -> None:
        for name in (self.router, *map(self.name, range(self.count))):
            run("ip", "netns", "del", name, check=False)

    def _nft(self, *words: str) -> None:
        run("ip", "netns", "exec", self.router, "nft", *words)


@contextmanager
def leaves(count: int) -> Iterator[Leaves]:
    """Namespaces that are removed at the end."""
    spaces = Leaves(count)
    try:
        spaces.build()
        yield spaces
    finally:
        spaces.remove()
