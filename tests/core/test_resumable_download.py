"""A download continues where it broke, gives up after three tries without a byte, and does not fill the disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx2
import pytest

from waggle.cli import update
from waggle.core import cuda_download, resumable_download
from waggle.core.errors import CudaError, ModelError, UpdateError
from waggle.core.resumable_download import PIECE
from waggle.models.storage import hub_download

CONTENT = os.urandom(5 * PIECE)
Requests = list[dict[str, str]]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumable_download.time, "sleep", lambda _seconds: None)


def server(
    requests: Requests, *, breaks_after: int, knows_range: bool = True
) -> Callable[[dict[str, str]], AbstractContextManager[httpx2.Response]]:
    """A server that breaks each connection after so many bytes."""

    @contextmanager
    def ask(headers: dict[str, str]) -> Iterator[httpx2.Response]:
        requests.append(headers)
        offset = int(headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        first = offset if knows_range else 0

        def pieces() -> Iterator[bytes]:
            for begin in range(first, len(CONTENT), PIECE):
                if begin - first >= breaks_after:
                    raise httpx2.ReadError("broken")
                yield CONTENT[begin : begin + PIECE]

        yield httpx2.Response(206 if "Range" in headers and knows_range else 200, content=pieces())

    return ask


def test_every_try_that_brings_something_allows_another(tmp_path: Path) -> None:
    requests: Requests = []
    progress: list[int] = []
    resumable_download.fetch(tmp_path / "part", len(CONTENT), server(requests, breaks_after=PIECE), progress.append)
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert [request.get("Range") for request in requests] == [None, *(f"bytes={PIECE * i}-" for i in range(1, 5))]
    assert progress == [PIECE * i for i in range(1, 6)]


def test_three_tries_in_a_row_that_bring_nothing_are_the_end_and_what_came_stays(tmp_path: Path) -> None:
    part, requests = tmp_path / "part", list[dict[str, str]]()
    part.write_bytes(CONTENT[:PIECE])
    with pytest.raises(httpx2.ReadError):
        resumable_download.fetch(part, len(CONTENT), server(requests, breaks_after=0), lambda _: None)
    assert len(requests) == resumable_download.TRIES
    assert part.read_bytes() == CONTENT[:PIECE]


def test_without_ranges_it_begins_again_and_what_came_is_not_there_twice(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.write_bytes(CONTENT[:PIECE])
    resumable_download.fetch(part, len(CONTENT), server([], breaks_after=len(CONTENT), knows_range=False), lambda _: None)
    assert part.read_bytes() == CONTENT


def test_what_never_ends_is_left_soon(tmp_path: Path) -> None:
    part = tmp_path / "part"
    resumable_download.fetch(part, PIECE, server([], breaks_after=len(CONTENT)), lambda _: None)
    assert PIECE < part.stat().st_size <= 2 * PIECE


def test_what_is_shorter_than_said_is_left_to_its_sum(tmp_path: Path) -> None:
    part, requests = tmp_path / "part", list[dict[str, str]]()
    resumable_download.fetch(part, len(CONTENT) + 1, server(requests, breaks_after=len(CONTENT) + 1), lambda _: None)
    assert part.stat().st_size == len(CONTENT)
    assert len(requests) == 1


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:9", "socks4://127.0.0.1:9", "socks://127.0.0.1:9", "nonsense://127.0.0.1:9"]
)
def test_a_proxy_that_nobody_here_can_go_through_is_said_whatever_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    wheel = cuda_download.Wheel(url="https://example.org/torch.whl", size=1, sha256="0" * 64)
    with pytest.raises(ModelError, match="proxy cannot be used"):
        hub_download.fetch("owner/name", tmp_path, lambda here, total: None, warn=print)
    with pytest.raises(CudaError, match="proxy cannot be used"):
        cuda_download._get(wheel, tmp_path / "part", lambda came: None)
    with pytest.raises(UpdateError, match="proxy cannot be used"):
        update.fetch("https://example.org/feed.json")
