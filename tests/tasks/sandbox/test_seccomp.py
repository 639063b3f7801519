"""The seccomp filter, interpreted as a kernel does, for both machines; test_verifier_hardening.py installs it."""

import re
import struct
from pathlib import Path

import pytest

from waggle.tasks.sandbox import seccomp as refusals
from waggle.tasks.sandbox.seccomp import ALLOW, MACHINES, REFUSE, REFUSED

NEEDED = {"read": (0, 63), "write": (1, 64), "mmap": (9, 222), "munmap": (11, 215), "futex": (202, 98), "exit_group": (231, 94)}
# On Debian, and elsewhere; every system has the generic ones.
HEADERS = {"x86_64": ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h"), "aarch64": ("asm-generic/unistd.h",)}


def answer(program: bytes, abi: int, number: int) -> int:
    """The filter's result for a system call."""
    steps, place, accumulator = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        kind, on_true, on_false, value = steps[place]
        place += 1
        match kind:
            case refusals.LOAD:
                accumulator = abi if value == refusals.ABI_AT else number
            case refusals.EQUAL:
                place += on_true if accumulator == value else on_false
            case refusals.AT_LEAST:
                place += on_true if accumulator >= value else on_false
            case _:
                return value


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_named_is_refused_and_so_is_what_is_newer_or_of_another_abi(machine):
    column, abi, _ = MACHINES[machine]
    named = {numbers[column] for numbers in REFUSED.values() if len(numbers) > column}
    program = refusals.program(abi, sorted(named))
    for number in range(refusals.NEWER):
        assert answer(program, abi, number) == (REFUSE if number in named else ALLOW)
    for number in (refusals.NEWER, 435, 1 << 30, (1 << 32) - 1):
        assert answer(program, abi, number) == REFUSE
    assert answer(program, abi ^ 1, NEEDED["read"][column]) == REFUSE
    assert not named & {numbers[column] for numbers in NEEDED.values()}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernels_own_headers(machine):
    headers = [path for path in (Path("/usr/include") / name for name in HEADERS[machine]) if path.exists()]
    if not headers:
        pytest.skip("the kernel's headers are not installed")
    text = headers[0].read_text()
    there = {name: int(number) for name, number in re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", text, re.MULTILINE)}
    column, _, seccomp = MACHINES[machine]
    assert {name: there.get(name) for name in REFUSED} == {
        name: numbers[column] if len(numbers) > column else None for name, numbers in REFUSED.items()
    }
    assert {name: there[name] for name in NEEDED} == {name: numbers[column] for name, numbers in NEEDED.items()}
    assert (there["seccomp"], there["pidfd_send_signal"]) == (seccomp, refusals.NEWER)
