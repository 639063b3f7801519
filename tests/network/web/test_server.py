"""The web port of a running seed: read-only, with nothing but its pages."""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from network.loopback import SOON, answered, free_port, fresh_identity, options, question_ids, share
from waggle.core.errors import SwarmError
from waggle.network import seed
from waggle.network.open_node import open_node
from waggle.network.web.server import WebServer
from waggle.network.web.statistics import SwarmStatistics
from waggle.tasks.charter import Charter
from waggle.tasks.sandbox.verifier import Verifier


async def test_a_seed_with_a_page_shows_what_its_members_share(tmp_path: Path, charter: Charter, verifier: Verifier) -> None:
    stop, messages, port = asyncio.Event(), asyncio.Queue[str](), free_port()
    keeper, member = fresh_identity(tmp_path, "seed"), fresh_identity(tmp_path, "member")
    running = asyncio.create_task(
        seed.run_with_page(options(web_port=port), keeper, charter, verifier, messages.put_nowait, stop)
    )
    try:
        async with asyncio.timeout(SOON):
            lines = [await messages.get()]
            while not lines[-1].startswith("Status page"):
                lines.append(await messages.get())
            address = next(line for line in lines if line.startswith("/"))
            assert lines[-1] == f"Status page: http://127.0.0.1:{port}/"
            node = open_node(options(seeds=(address,)), charter, member, verifier, lambda news: None)
            try:
                await node.start()
                share(node, answered(charter, verifier, member.peer_id, question_ids(charter, verifier, member.peer_id, 2)))
                result = await page_with_members(f"http://127.0.0.1:{port}")
            finally:
                await node.close()
    finally:
        stop.set()
        await running
    assert result["groups"] == 2
    assert [entry["model"] for entry in result["members"]] == [""], "it is not trusted yet"
    assert result["addresses"][0] == address


async def page_with_members(base: str) -> dict[str, object]:
    async with httpx2.AsyncClient() as client, asyncio.timeout(SOON):
        while True:
            result = json.loads((await client.get(f"{base}/status.json")).text)
            if result["members"]:
                assert "<h2>Members</h2>" in (await client.get(f"{base}/")).text
                assert "waggle_members 1" in (await client.get(f"{base}/metrics")).text
                return dict(result)
            await asyncio.sleep(0.2)


async def test_the_web_port_answers_reading_alone_and_forbids_scripts(charter: Charter) -> None:
    web = WebServer(lambda: SwarmStatistics(charter).status(()))
    await web.start("127.0.0.1", 0)
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{web.port}") as client:
            page = await client.get("/?anything")
            assert page.status_code == 200
            assert "default-src 'none'" in page.headers["Content-Security-Policy"]
            assert "script-src" not in page.headers["Content-Security-Policy"]
            for host, status in ((f"localhost:{web.port}", 200), ("example.org", 200), (f"example.org:{web.port}", 403)):
                assert (await client.get("/", headers={"Host": host})).status_code == status  # 403: a name made to lead here
            for path in ("/gateway", "/../etc/passwd", "/settings"):
                assert (await client.get(path)).status_code == 404
            with pytest.raises(httpx2.HTTPError):
                (await client.post("/", content=b"x")).raise_for_status()
        reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
        writer.write(b"\xff" * 70_000 + b"\r\n\r\n")
        assert b"200" not in await reader.read()  # an answer of refusal, or nothing, and then its end
        writer.close()
        with pytest.raises(SwarmError, match="web port"):
            await WebServer(lambda: SwarmStatistics(charter).status(())).start("127.0.0.1", web.port)
    finally:
        await web.close()


async def test_who_holds_every_connection_gets_no_more_and_who_leaves_makes_room(
    charter: Charter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.network.web.server.MOST", 5)
    monkeypatch.setattr("waggle.network.web.server.OPEN_S", 10 * SOON)  # nobody is given up for asking nothing
    web = WebServer(lambda: SwarmStatistics(charter).status(()))
    await web.start("127.0.0.1", 0)
    try:
        resting = [await asyncio.open_connection("127.0.0.1", web.port) for _ in range(5)]
        async with asyncio.timeout(SOON):
            assert await refused(web.port)
            for _, writer in resting:
                writer.close()
                await writer.wait_closed()
            while await refused(web.port):
                await asyncio.sleep(0.01)
    finally:
        await web.close()


async def test_one_address_range_cannot_hold_every_connection(charter: Charter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waggle.network.web.server.MOST_FROM_ONE", 2)
    monkeypatch.setattr(
        "waggle.network.web.server.source_of", lambda address, *, relayed: "" if address == "/ip/127.0.0.2" else "crowd"
    )
    web = WebServer(lambda: SwarmStatistics(charter).status(()))
    await web.start("127.0.0.1", 0)
    try:
        resting = [await asyncio.open_connection("127.0.0.1", web.port) for _ in range(2)]
        assert await refused(web.port)
        assert not await refused(web.port, "127.0.0.2")
        for _, writer in resting:
            writer.close()
    finally:
        await web.close()


async def refused(port: int, own: str = "127.0.0.1") -> bool:
    """Whether a request for the page is cut off."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(own, 0))
        writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
    except ConnectionError:
        return True
    return not answer.startswith(b"HTTP/1.1 200")
