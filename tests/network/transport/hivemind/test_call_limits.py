"""Calls of newcomers wait until it is known where they come from; few of them, so that they fill no memory."""

import asyncio

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from waggle.core.peer_id import PEER_ID_PREFIX
from waggle.network.transport.hivemind import call_limits
from waggle.network.transport.hivemind.call_limits import WAITING, WAITING_OF_ONE, CallLimits, CallRefused
from waggle.network.transport.interface import Services


class Call:
    """A call of a few bytes."""

    def ByteSize(self) -> int:
        return 40


def newcomer(number: int) -> bytes:
    """A peer id that nobody has met."""
    return PEER_ID_PREFIX + Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big")).public_key().public_bytes_raw()


async def test_calls_of_newcomers_wait_in_bounded_numbers_of_one_and_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_limits, "WAITING", 3 * WAITING_OF_ONE)
    polled, sources = asyncio.Event(), dict[bytes, str]()

    async def poll() -> None:
        await polled.wait()
        sources.update((newcomer(number), "") for number in range(8))

    limits = CallLimits(Services(source=sources.get, refresh_peers=poll))
    flood = [
        asyncio.create_task(limits.admit(newcomer(number), Call())) for number in range(4) for _ in range(2 * WAITING_OF_ONE)
    ]
    while sum(task.done() for task in flood) < len(flood) - 3 * WAITING_OF_ONE:
        await asyncio.sleep(0)
    assert limits._waiting.total() == 3 * WAITING_OF_ONE
    assert max(limits._waiting.values()) <= WAITING_OF_ONE
    refused = [task for task in flood if task.done()]
    assert len(refused) == len(flood) - 3 * WAITING_OF_ONE
    assert all(isinstance(task.exception(), CallRefused) for task in refused)
    polled.set()
    answered = await asyncio.gather(*flood, return_exceptions=True)
    assert answered.count("") == 3 * WAITING_OF_ONE
    assert not limits._waiting
    assert await limits.admit(newcomer(7), Call()) == ""


def test_all_of_them_together_take_little_memory() -> None:
    assert WAITING * 4096 <= 8 << 20
