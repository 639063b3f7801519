"""Pieces of people's own questions travel between peers on loopback; what has another hash is refused."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from network.loopback import fresh_identity, options, serving
from tasks.question_file.questions import packed_sums
from waggle.core.errors import SwarmError
from waggle.network.identity import membership
from waggle.network.messages.addresses import peer_of
from waggle.network.questions_download import download_questions
from waggle.network.transport.hivemind.network import open_network
from waggle.network.transport.interface import Services
from waggle.tasks.charter import Charter
from waggle.tasks.new_charter import new_charter
from waggle.tasks.piece_store import PieceStore

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
    asked: list[bytes] = []

    def something_else(sha256: bytes) -> bytes:
        asked.append(sha256)
        return b"something else"

    folder = tmp_path / "questions"
    giver = filled(tmp_path / "seed")
    async with giving("liar", tmp_path, something_else) as liar:
        alone = options(seeds=(liar,), questions_folder=folder)
        with pytest.raises(SwarmError, match="something else, and was refused"):
            await download_questions(alone, fresh_identity(tmp_path, "own"), CHARTER, patience=4.0)
        assert len(asked) == 1  # a liar is not asked again
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
