"""Pieces of people's own questions travel between peers on loopback; what has another hash is refused."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from network.loopback import SOON, Ear, fresh_identity, options, serving
from tasks.question_file.questions import packed_sums
from waggle.core.errors import SwarmError
from waggle.core.peer_id import text_of
from waggle.network import seed
from waggle.network.identity import membership
from waggle.network.messages.addresses import peer_of
from waggle.network.open_node import open_node
from waggle.network.questions_download import PieceDownload, download_questions
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import Services
from waggle.tasks.charter import Charter
from waggle.tasks.new_charter import new_charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.question_file.preview import packed_file
from waggle.tasks.question_file.reader import read_questions
from waggle.tasks.sandbox.verifier import Verifier

SUMS, OTHER = packed_sums(60), packed_sums(61)
CHARTER = new_charter("Sums", {}, files=[("Sums", SUMS.file), ("More sums", OTHER.file)])


def filled(folder: Path, charter: Charter = CHARTER) -> Path:
    store = PieceStore(folder, charter)
    assert all(store.add(piece) for piece in (*SUMS.pieces, *OTHER.pieces))
    return folder


@asynccontextmanager
async def giving(name: str, tmp_path: Path, give: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    """A peer that gives what a test wants; yields its address."""

    async def payload(peer_id: bytes, request: bytes) -> bytes:
        return give(request[:32])

    identity = fresh_identity(tmp_path, name)
    network = await open_network(options(), identity, Services(payload=payload, digest=CHARTER.digest), port=0)
    try:
        yield (await network.addresses())[0]
    finally:
        await network.close()


async def test_a_seed_gives_the_pieces_and_they_are_not_asked_for_twice(tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    own, folder = fresh_identity(tmp_path, "own"), tmp_path / "questions"
    giver = filled(tmp_path / "seed")
    async with serving(fresh_identity(tmp_path, "seed"), CHARTER, questions_folder=giver) as address:
        here = options(seeds=(address,), questions_folder=folder)
        await download_questions(here, own, CHARTER, report=lambda done, total: reports.append((done, total)))
    assert PieceStore(folder, CHARTER).files() == {SUMS.file.dataset: SUMS.pieces, OTHER.file.dataset: OTHER.pieces}
    assert (reports[0], reports[-1]) == ((0, 2), (2, 2))
    await download_questions(here, own, CHARTER, patience=0.0)  # all are here: nobody is called


async def test_another_content_is_refused_and_the_next_peer_is_asked(tmp_path: Path) -> None:
    requests: list[bytes] = []

    def something_else(sha256: bytes) -> bytes:
        requests.append(sha256)
        return b"something else"

    folder = tmp_path / "questions"
    giver = filled(tmp_path / "seed")
    async with giving("liar", tmp_path, something_else) as liar:
        alone = options(seeds=(liar,), questions_folder=folder)
        while not requests:  # again where a busy computer was too late
            with pytest.raises(SwarmError) as refused:
                await download_questions(alone, fresh_identity(tmp_path, "own"), CHARTER, patience=4.0)
        assert "was something else, and was refused" in refused.value.title
        assert len(requests) == 1  # a liar is not asked again
        assert PieceStore(folder, CHARTER).files() == {}
        async with serving(fresh_identity(tmp_path, "seed"), CHARTER, questions_folder=giver) as address:
            both = replace(alone, seeds=(liar, address))
            await download_questions(both, fresh_identity(tmp_path, "own"), CHARTER)
    assert PieceStore(folder, CHARTER).missing() == ()


async def test_a_piece_that_nobody_has_is_an_error_in_words(tmp_path: Path) -> None:
    async with serving(fresh_identity(tmp_path, "seed"), CHARTER) as address:
        here = options(seeds=(address,), questions_folder=tmp_path / "questions")
        with pytest.raises(SwarmError, match="2 of 2 parts are missing") as refused:
            await download_questions(here, fresh_identity(tmp_path, "own"), CHARTER, patience=2.0)
    assert "Try again later" in refused.value.advice


async def test_only_members_get_the_pieces_of_a_private_swarm(tmp_path: Path) -> None:
    key = membership.new_key()
    files = [("Sums", SUMS.file), ("More sums", OTHER.file)]
    private = new_charter("Private", {}, files=files, admission=membership.public_key_of(key))
    giver, folder = filled(tmp_path / "seed", private), tmp_path / "questions"
    own = fresh_identity(tmp_path, "own")
    async with serving(fresh_identity(tmp_path, "seed"), private, questions_folder=giver) as address:
        with pytest.raises(SwarmError, match="its key is not here"):
            await download_questions(options(seeds=(address,), questions_folder=folder), own, private)
        visitor = await open_network(options(), own, Services(digest=private.digest), port=0)
        try:
            pong = await visitor.connect(address)
            assert pong.delay_ms > 0
            refused = await visitor.pull(peer_of(address), bytes.fromhex(SUMS.file.pieces[0]), 10.0)
        finally:
            await visitor.close()
        assert refused == b""
        await download_questions(options(seeds=(address,), questions_folder=folder, key=key), own, private)
    assert PieceStore(folder, private).missing() == ()


async def test_a_seed_gets_the_pieces_from_a_member_that_joins_through_it(tmp_path: Path) -> None:
    giver, folder = filled(tmp_path / "member"), tmp_path / "seed"
    own = fresh_identity(tmp_path, "own")
    async with serving(fresh_identity(tmp_path, "seed"), CHARTER, questions_folder=folder) as address:
        async with serving(own, CHARTER, questions_folder=giver, seeds=(address,)), asyncio.timeout(SOON):
            while PieceStore(folder, CHARTER).missing():
                await asyncio.sleep(0.1)
        newcomer = options(seeds=(address,), questions_folder=tmp_path / "newcomer")
        await download_questions(newcomer, fresh_identity(tmp_path, "newcomer"), CHARTER)


async def test_a_seed_with_a_page_serves_plainly_until_it_has_the_pieces_it_judges_with(tmp_path: Path) -> None:
    lines: list[str] = []
    here = options(questions_folder=tmp_path / "seed")
    own = fresh_identity(tmp_path, "seed")
    first = asyncio.create_task(seed.run(here, own, CHARTER, lines.append, asyncio.Event(), only_until_complete=True))
    async with asyncio.timeout(SOON):
        while not (address := next((line for line in lines if line.startswith("/")), "")):
            await asyncio.sleep(0.05)
        giver = options(questions_folder=filled(tmp_path / "member"), seeds=(address,))
        stop = asyncio.Event()
        member = asyncio.create_task(seed.run(giver, fresh_identity(tmp_path, "member"), CHARTER, lambda line: None, stop))
        await first
        stop.set()
        await member
    assert PieceStore(tmp_path / "seed", CHARTER).missing() == ()
    assert "The swarm's questions: 2 of 2 parts are here" in lines


async def test_a_gateway_gives_the_pieces_to_its_members_alone(tmp_path: Path) -> None:
    key = membership.new_key()
    private = new_charter("Private", {}, files=[("Sums", SUMS.file)], admission=membership.public_key_of(key))
    store = PieceStore(tmp_path / "lender", private)
    assert store.add(SUMS.pieces[0])
    own, newcomer = fresh_identity(tmp_path, "lender"), fresh_identity(tmp_path, "newcomer")
    here = options(web_port=0, gateway=True, key=key, questions_folder=tmp_path / "lender")
    with closing(Verifier(private, files=store.files())) as verifier:
        lender = open_node(here, private, own, verifier, Ear())
        try:
            await lender.start()
            gateway = f"ws://127.0.0.1:{lender.web.port}/gateway#{text_of(own.peer_id)}"
            light = options(light=True, gateways=(gateway,), questions_folder=tmp_path / "newcomer")
            other_key = replace(light, key=membership.new_key())
            with pytest.raises(SwarmError, match="does not open"):
                await download_questions(other_key, newcomer, private, patience=2.0)
            await download_questions(replace(light, key=key), newcomer, private)
        finally:
            await lender.close()
    assert PieceStore(tmp_path / "newcomer", private).files() == store.files()


async def test_without_a_gateway_a_light_client_is_refused_in_words(tmp_path: Path) -> None:
    here = options(light=True, questions_folder=tmp_path / "questions")
    with pytest.raises(SwarmError, match="through gateways alone"):
        await download_questions(here, fresh_identity(tmp_path, "own"), CHARTER)


async def test_a_file_of_several_pieces_arrives_whole_and_what_came_before_is_kept(tmp_path: Path) -> None:
    lines = (json.dumps({"question": f"{i}: {os.urandom(700).hex()}?", "answer": i}) for i in range(3500))
    large = packed_file(read_questions("large.jsonl", "\n".join(lines).encode()))
    assert len(large.pieces) >= 3
    charter = new_charter("Large", {}, files=[("Large", large.file)])
    giver, folder = PieceStore(tmp_path / "seed", charter), tmp_path / "questions"
    assert giver.add(large.pieces[0])
    async with serving(fresh_identity(tmp_path, "seed"), charter, questions_folder=tmp_path / "seed") as address:
        here, own = options(seeds=(address,), questions_folder=folder), fresh_identity(tmp_path, "own")
        while len(PieceStore(folder, charter).missing()) == len(large.pieces):  # again where a busy computer was too late
            with pytest.raises(SwarmError, match="parts are missing"):
                await download_questions(here, own, charter, patience=2.0)
        assert all(giver.add(piece) for piece in large.pieces)
        reports: list[tuple[int, int]] = []
        await download_questions(here, own, charter, report=lambda done, total: reports.append((done, total)))
    assert reports[-1] == (len(large.pieces) - 1, len(large.pieces) - 1)
    with closing(Verifier(charter, files=PieceStore(folder, charter).files())) as verifier:
        assert len(verifier.held_out(large.file.dataset, "dev", 5)) == 5


class Listing:
    """A transport whose directory lists these peers; every call but a look there would fail."""

    def __init__(self, *peers: bytes) -> None:
        self.network, self._peers = self, peers

    async def read_directory(self, _key: str) -> dict[bytes, bytes]:
        return dict.fromkeys(self._peers, b"")


async def test_strangers_that_gave_nothing_or_false_pieces_are_forgotten_when_they_leave(tmp_path: Path) -> None:
    download = PieceDownload(options(questions_folder=tmp_path), fresh_identity(tmp_path, "own"), CHARTER, None)
    here, away = bytes([1] * 38), [bytes([2, *number.to_bytes(37, "big")]) for number in range(500)]
    for known in (download._false, download._silent, download._givers):
        known |= {here, *away}
    await download._read_directory(Listing(here))  # type: ignore[arg-type]
    assert download._false == download._silent == download._givers == {here}
