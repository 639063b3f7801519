"""Gateways against those they serve: what one of them makes up is nobody's fault but its own, and keeps no payload away."""

import hashlib
import time
from contextlib import AsyncExitStack
from pathlib import Path

from swarm.live import Start, answered, fresh_identity, options, question_ids
from swarm.test_marking import exam, of, truths
from waggle.swarm import announcement as announcements
from waggle.swarm import directory, record, sheet
from waggle.swarm.announcement import Announcement
from waggle.swarm.dht import open_dht
from waggle.swarm.news import GroupsArrived, RecordDropped, SheetsMarked
from waggle.swarm.record import Record
from waggle.swarm.services import Services
from waggle.swarm.sheet import Sheet
from waggle.tasks.charter import Charter
from waggle.tasks.exam import Exam
from waggle.tasks.verifier import Verifier

__all__ = ["exam"]


async def test_what_a_gateway_makes_up_is_passed_over_and_the_next_one_asked(
    start: Start, seed_address: str, charter: Charter, verifier: Verifier, exam: Exam, tmp_path: Path
) -> None:
    client, liar, true = (fresh_identity(tmp_path, name) for name in ("client", "liar", "true"))
    groups = answered(charter, verifier, client.peer_id, question_ids(charter, verifier, client.peer_id, 1))
    made = Record(origin=client.peer_id, round=1, epoch=groups[0].id.epoch, model="starter", groups=tuple(groups))
    answers = Sheet(
        origin=client.peer_id, epoch=exam.epoch, exam=exam.digest, round=40, learned=3, model="starter",
        answers=tuple(truths(verifier, exam, 7)),
    )  # fmt: skip
    given = {
        hashlib.sha256(each).digest(): each for each in (record.encode(made, charter), sheet.signed(answers, charter, client))
    }
    blob, named = given
    announced = Announcement(
        charter=charter.digest, sha256=blob, size=len(given[blob]), round=1, epoch=made.epoch, model="starter", sheet=named,
        specialties=record.specialties_of(groups, charter), expires=int((time.time() + 200) * 1000),
        via=(liar.peer_id, true.peer_id),
    )  # fmt: skip
    asked: list[bytes] = []

    async def lie(_peer_id: bytes, sha256: bytes) -> bytes:
        asked.append(sha256)
        return b"made up"

    async def give(_peer_id: bytes, sha256: bytes) -> bytes:
        return given.get(sha256, b"")

    reader = await start("reader", seeds=(seed_address,), leaderboard=True)
    async with AsyncExitStack() as stack:
        for who, services in ((liar, Services(payload=lie)), (true, Services(payload=give))):
            dht = await open_dht(options(), who, services, port=0)
            stack.push_async_callback(dht.close)
            await dht.connect(seed_address)
            await dht.settle()
            key = directory.key_of(charter.digest, 0, 0)
        await dht.announce(key, client.peer_id, announcements.signed(announced, client), announced.expires_at)
        arrived = await reader.ear.hear(GroupsArrived)
        told = await reader.ear.hear(SheetsMarked, lambda news: of(news.comparison, client) is not None)

    assert (arrived.origin, [each.group for each in arrived.groups]) == (client.peer_id, groups)
    assert of(told.comparison, client).right == 7
    assert set(asked) == set(given), "it was asked first, and each of both once"
    assert reader.ear.all(RecordDropped) == []
    assert reader.node._trust.of(client.peer_id).rejected == 0
