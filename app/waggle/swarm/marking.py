"""Marking: asks peers for their answer sheets, reads them strictly, marks them here, and gives out one's own. In the background.

Off unless a person chose it: then nothing is published and nothing asked. A sheet never comes near the pool of groups.
"""

import asyncio
import hashlib
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from waggle.errors import BadRecord, CharterError, VerifierError, VerifierKilled
from waggle.swarm import greeting, sheet
from waggle.swarm.admission import Admission
from waggle.swarm.dht import PeerAway
from waggle.swarm.door import Door
from waggle.swarm.identity import Identity
from waggle.swarm.marks import Mark, Marks
from waggle.swarm.news import News, RecordDropped, SheetsMarked
from waggle.swarm.options import SwarmOptions
from waggle.swarm.sheet import Sheet
from waggle.swarm.traffic import Traffic
from waggle.swarm.trust import Trust
from waggle.tasks.charter import Charter
from waggle.tasks.exam import Exam, Exams
from waggle.tasks.group import RIGHT, Completion
from waggle.tasks.questions import epoch_at
from waggle.tasks.verifier import Verifier

SLOWER = 10.0  # times the tempo, between two looks: an exam stands for ten minutes
ASKED = 8  # peers at one look
SLOWEST = 60.0  # times the tempo, before a peer that has no new one is asked again


class Marking:
    """Fills `marks`. Belongs to the loop's thread; marking itself runs in a thread of its own."""

    def __init__(
        self,
        options: SwarmOptions,
        charter: Charter,
        identity: Identity,
        admission: Admission,
        verifier: Verifier,
        tell: Callable[[News], None],
        clock: Callable[[], float],
        *,
        trust: Trust,
        traffic: Traffic,
    ) -> None:
        self.on = options.leaderboard
        self.exams = Exams(verifier, charter)
        self.marks = Marks(ranked=charter.is_private, clock=clock)
        self._options, self._charter, self._identity, self._admission = options, charter, identity, admission
        self._verifier, self._tell, self._clock = verifier, tell, clock
        self._trust, self._traffic = trust, traffic
        self._news = False  # something was marked that nobody was told of
        self._own = b"", b""  # our newest sheet and its sha256; empty: there is none to give
        self._resting: dict[bytes, float] = {}  # peer id -> not asked until, monotonic
        self._read: dict[bytes, bytes] = {}  # peer id -> sha256 of the sheet that was read last
        self._judging: asyncio.Future[int] | None = None

    async def run(self, connection: Door) -> None:
        """Look, ask, mark, wait; for ever."""
        while True:
            if self.on:
                with suppress(PeerAway):  # the network starts again: the next look finds it
                    await self._look(connection)
            await asyncio.sleep(self._options.tempo * SLOWER)

    async def finish(self) -> None:
        """Wait for the marking under way: a verifier closed in the middle of it would start again."""
        if self._judging is not None:
            await asyncio.gather(self._judging, return_exceptions=True)  # a refusal no longer interests anybody

    def turn(self, *, on: bool) -> None:
        """Take part from now on, or no more: then one's own sheet is given to nobody any more."""
        self.on = on
        if not on:
            self._own = b"", b""

    def signed(self, epoch: int, round_number: int, learned: int, model: str, answers: Sequence[Completion]) -> bytes:
        """Our own sheet, ready to be published. From any thread."""
        made = Sheet(
            origin=self._identity.peer_id, epoch=epoch, exam=self.exams.of(epoch).digest, round=round_number, learned=learned,
            model=model, answers=tuple(answers), certificate=self._admission.certificate(),
        )  # fmt: skip
        return sheet.signed(made, self._charter, self._identity)

    def publish(self, blob: bytes, right: int) -> None:
        """Give this sheet of ours to whoever asks. `right` is what our own verifier says of it."""
        if not self.on or not blob:
            return
        self._own = blob, hashlib.sha256(blob).digest()
        with suppress(BadRecord):  # made an epoch or more ago: the computer slept over it
            own = sheet.read(blob, self._charter, origin=self._identity.peer_id, now=self._clock())
            self._count(own, right)
        self._say()

    @property
    def named(self) -> bytes:
        """The sha256 of the sheet that is given out; empty where there is none."""
        return self._own[1]

    def get(self, sha256: bytes) -> bytes:
        """The sheet of this hash, while it is given out."""
        return self._own[0] if sha256 and sha256 == self._own[1] else b""

    async def _look(self, connection: Door) -> None:
        now, epoch, welcome = time.monotonic(), epoch_at(self._clock()), self._trust.welcome()
        self._resting = {peer_id: until for peer_id, until in self._resting.items() if until > now}
        self._read = {peer_id: sha256 for peer_id, sha256 in self._read.items() if peer_id in welcome}
        here = sorted(one for one in welcome - set(self._resting) if self.marks.epoch_of(one) < epoch)
        for peer_id in random.sample(here, min(len(here), ASKED)):
            self._resting[peer_id] = now + self._options.tempo * SLOWEST
            try:
                await self._ask(connection, peer_id)
            except PeerAway:  # it has just left, or gives nothing now
                continue
            except BadRecord as bad:  # counted and told; the others are heard
                self._trust.rejected(peer_id, bad.title)
                self._tell(RecordDropped(origin=peer_id, reason=bad.title))
        self._say()

    async def _ask(self, connection: Door, peer_id: bytes) -> None:
        said = greeting.read(await connection.dht.greet(peer_id))
        if said.charter != self._charter.digest or said.sheet in (b"", self._read.get(peer_id)):
            return
        if not self._traffic.may_receive(sheet.MAX_BYTES):  # a limit that the person set
            return
        blob = await connection.dht.pull(peer_id, said.sheet, self._options.patience, self._admission.certificate())
        self._traffic.received(len(blob))
        if not blob:  # it gives no more for now
            return
        self._read[peer_id] = said.sheet
        if hashlib.sha256(blob).digest() != said.sheet:
            raise BadRecord("not the answer sheet that was named")
        found = sheet.read(blob, self._charter, origin=peer_id, now=self._clock())
        if not self._admission.admits(peer_id, found.certificate):
            raise BadRecord("no member of this private swarm")
        if self.marks.epoch_of(peer_id) < found.epoch:
            await self._mark(found)

    async def _mark(self, found: Sheet) -> None:
        self._judging = asyncio.ensure_future(asyncio.to_thread(self._right, found))
        try:
            self._count(found, await asyncio.shield(self._judging))
        except VerifierKilled:  # our own trouble, which the verifier has told: nobody is to blame
            return
        except (CharterError, VerifierError) as error:
            raise BadRecord("cannot be judged") from error

    def _right(self, found: Sheet) -> int:
        """How many answers are right; in a thread of its own. Raises BadRecord, VerifierError and CharterError."""
        return right_of(found, self.exams.of(found.epoch), self._verifier)

    def _count(self, found: Sheet, right: int) -> None:
        mark = Mark(
            origin=found.origin, epoch=found.epoch, round=found.round, learned=found.learned, model=found.model, right=right,
            total=len(found.answers),
        )  # fmt: skip
        self._news = self.marks.add(mark) or self._news

    def _say(self) -> None:
        if self._news:
            self._news = False
            self._tell(SheetsMarked(comparison=self.marks.comparison()))


def right_of(found: Sheet, exam: Exam, verifier: Verifier) -> int:
    """What a sheet is worth, by this computer's own verifier: anybody comes to the same. Raises as `judge_strangers` does."""
    sheet.require_exam(found, exam)
    verdicts = verifier.judge_strangers(zip(exam.questions, found.answers, strict=True))
    return sum(verdict.reward >= RIGHT for verdict in verdicts)
