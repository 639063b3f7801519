"""The filter of system calls, as a kernel runs it, on both kinds of machine; `test_verifier_armour.py` tries it for real."""

import struct

import pytest

from waggle.tasks import refusals
from waggle.tasks.refusals import ALLOW, MACHINES, REFUSE, REFUSED

NEEDED = {"read": (0, 63), "write": (1, 64), "mmap": (9, 222), "munmap": (11, 215), "futex": (202, 98), "exit_group": (231, 94)}


def answer(program: bytes, abi: int, number: int) -> int:
    """What the kernel makes of a call."""
    steps, place, held = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        kind, on_true, on_false, value = steps[place]
        place += 1
        match kind:
            case refusals.LOAD:
                held = abi if value == refusals.ABI_AT else number
            case refusals.EQUAL:
                place += on_true if held == value else on_false
            case refusals.AT_LEAST:
                place += on_true if held >= value else on_false
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
