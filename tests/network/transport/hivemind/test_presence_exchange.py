"""Two computers with one identity are told so, through a peer that takes them for one; nobody else can cause that."""

import asyncio
import secrets

import pytest

from network.loopback import SOON, Start, free_port, fresh_identity, options, serving
from waggle.core.peer_id import text_of
from waggle.network import seed
from waggle.network.identity.keys import Identity
from waggle.network.limits.rate_limits import RateLimit
from waggle.network.messages import presence
from waggle.network.messages.events import DuplicateIdentity, OwnSeed, ReachChanged
from waggle.network.transport.hivemind.call_limits import CallRefused
from waggle.network.transport.hivemind.presence_exchange import BURST, MOST_PROCESSES, PresenceExchange, StoredStatements
from waggle.network.transport.interface import PeerAway
from waggle.tasks.charter import Charter

NEXT = 60.0  # seconds between two statements, by the clock of a test


class Clock:
    """The clock of all nodes of a test."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def statement_of(identity: Identity) -> bytes:
    return presence.write(identity, presence.new_process(), 1e9)


async def ask(node: PresenceExchange, witness: StoredStatements, identity: Identity, clock: Clock) -> bool:
    async def exchange(peer_id: bytes, statement: bytes) -> bytes:
        return witness.exchange(identity.peer_id, statement)

    clock.now += NEXT
    return await node.ask(str(id(witness)).encode(), exchange)


async def test_both_of_two_are_told_once(identity: Identity, clock: Clock) -> None:
    witness = StoredStatements(clock)
    first = PresenceExchange(identity, clock)
    results = [await ask(first, witness, identity, clock)]
    second = PresenceExchange(identity, clock)
    for _ in range(6):
        results += [await ask(second, witness, identity, clock), await ask(first, witness, identity, clock)]
    assert results.count(True) == 2
    assert True in results[1::2], "the copy"
    assert True in results[::2], "the other"


@pytest.mark.parametrize("ahead", [-7200.0, -1.0, 7200.0])
async def test_both_copies_of_a_home_are_told_once_whatever_their_clocks_say(
    identity: Identity, clock: Clock, ahead: float
) -> None:
    """The copy's clock is off by so many seconds. By the clocks alone, one of two was told hours later, or never."""
    witness = StoredStatements(clock)
    first = PresenceExchange(identity, clock, b"the original")
    results = [await ask(first, witness, identity, clock)]
    second = PresenceExchange(identity, lambda: clock() + ahead, b"its copy")
    for _ in range(4):
        results += [await ask(second, witness, identity, clock), await ask(first, witness, identity, clock)]
    assert (results[1::2].count(True), results[::2].count(True)) == (1, 1)


async def test_the_last_words_of_the_computer_that_an_identity_moved_from_are_no_copy(identity: Identity, clock: Clock) -> None:
    """Two witnesses have statements of different times, both of a process that has ended."""
    witnesses = StoredStatements(clock), StoredStatements(clock)
    before = PresenceExchange(identity, lambda: clock() + 7200.0, b"the old computer")
    for witness in (*witnesses, witnesses[1]):
        await ask(before, witness, identity, clock)
    clock.now += 7200.0 + NEXT
    after = PresenceExchange(identity, clock, b"the new one")
    assert not any([await ask(after, witness, identity, clock) for witness in witnesses * 3])


async def test_a_run_of_this_home_from_before_is_no_copy_whatever_a_witness_plays_again(identity: Identity, clock: Clock) -> None:
    earlier, later = presence.new_process(b"this home"), PresenceExchange(identity, clock, b"this home")
    recorded = [presence.write(identity, earlier, clock.now - 3600.0 + second) for second in range(4)]

    async def plays_again(_peer_id: bytes, _statement: bytes) -> bytes:
        return recorded.pop(0)

    assert not any([await later.ask(b"witness", plays_again) for _ in range(4)])


async def test_a_restart_is_no_copy_also_if_the_clock_was_set_back(identity: Identity, clock: Clock) -> None:
    witness = StoredStatements(clock)
    before = PresenceExchange(identity, clock)
    for _ in range(3):
        await ask(before, witness, identity, clock)
    clock.now -= 3600.0
    witness._quota = RateLimit(BURST, BURST)  # by a clock that goes on
    after = PresenceExchange(identity, clock)
    assert not any([await ask(after, witness, identity, clock) for _ in range(6)])


async def test_a_peer_that_invents_statements_or_knows_no_such_question_changes_nothing(identity: Identity, clock: Clock) -> None:
    node = PresenceExchange(identity, clock)

    async def invents(_peer_id: bytes, statement: bytes) -> bytes:
        return secrets.token_bytes(len(statement))

    async def mirrors(_peer_id: bytes, statement: bytes) -> bytes:
        return statement

    async def is_old(_peer_id: bytes, _statement: bytes) -> bytes:
        raise PeerAway("no such handler")

    for peer in (invents, mirrors, is_old):
        for _ in range(3):
            clock.now += NEXT
            assert not await node.ask(b"peer", peer)


def test_a_peer_fills_its_own_place_only_and_no_more_of_it(identity: Identity, clock: Clock) -> None:
    stored = StoredStatements(clock)
    for _ in range(5 * MOST_PROCESSES):
        clock.now += NEXT
        stored.exchange(b"flood", statement_of(identity))
    assert len(stored._by_peer[b"flood"]) == MOST_PROCESSES
    assert stored.exchange(b"other", statement_of(identity)) == b""


def test_a_flood_and_other_sizes_are_refused(identity: Identity, clock: Clock) -> None:
    stored, statement = StoredStatements(clock), statement_of(identity)
    for _ in range(int(BURST)):
        stored.exchange(b"flood", statement)
    for refused in (statement, statement + b"x", b""):
        with pytest.raises(CallRefused):
            stored.exchange(b"flood", refused)


async def test_a_seed_and_its_running_copy_learn_of_each_other_through_a_third(
    seed_address: str, charter: Charter, tmp_path, identity: Identity
) -> None:
    """The third node takes the two for one; both say it, and how to get an identity of its own."""
    shared, stop = fresh_identity(tmp_path, "copied"), asyncio.Event()
    lines: dict[str, list[str]] = {"original": [], "copy": []}
    runs = [
        asyncio.create_task(seed.run(options(seeds=(seed_address,)), shared, charter, lines[name].append, stop)) for name in lines
    ]
    try:
        async with asyncio.timeout(SOON):
            while not all(any("waggle identity renew" in line for line in each) for each in lines.values()):
                await asyncio.sleep(0.1)
                assert not any(run.done() for run in runs)
    finally:
        stop.set()
        await asyncio.gather(*runs)


async def test_a_node_and_its_running_copy_learn_of_each_other(start: Start, seed_address: str) -> None:
    original = await start("copied", seeds=(seed_address,))
    copy = await start("copied", seeds=(seed_address,))
    await original.ear.hear(DuplicateIdentity)
    await copy.ear.hear(DuplicateIdentity)
    await asyncio.sleep(0)
    assert len(original.ear.all(DuplicateIdentity)) == 1


async def test_a_copy_that_knows_its_twin_alone_says_so(start: Start, charter: Charter, tmp_path) -> None:
    twin = fresh_identity(tmp_path, "copied")
    async with serving(twin, charter) as address:
        copy = await start("copied", seeds=(address,))
        assert (await copy.ear.hear(OwnSeed)).address == address


async def test_a_seed_that_names_its_own_address_is_no_copy(start: Start, tmp_path, charter: Charter) -> None:
    port, me = free_port(), fresh_identity(tmp_path, "myself")
    node = await start("myself", port=port, seeds=(f"/ip4/127.0.0.1/tcp/{port}/p2p/{text_of(me.peer_id)}",))
    await node.ear.hear(ReachChanged, lambda news: news.reach == "alone")
    assert node.ear.all(OwnSeed) == []
