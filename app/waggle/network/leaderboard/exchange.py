"""Marking: asks peers for their answer sheets, reads them strictly, marks them here, and gives out one's own. In the background.

Off unless a person chose it: then nothing is published and nothing asked. A sheet never comes near the pool of groups.
"""

import asyncio
import hashlib
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from waggle.core.errors import BadRecord, CharterError, VerifierError, VerifierGone
from waggle.core.peer_id import short_id
from waggle.network.exchange.verification import VerifierStopwatch
from waggle.network.identity.keys import Identity
from waggle.network.identity.membership import Membership
from waggle.network.leaderboard import scores_file
from waggle.network.leaderboard.scores import MAX_NODES, Scoreboard, SheetScore
from waggle.network.limits.bandwidth import BandwidthLimiter
from waggle.network.limits.rate_limits import Party, PeerRateLimits
from waggle.network.limits.reputation import ReputationTable
from waggle.network.messages import answer_sheet
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.events import LeaderboardChanged, NetworkEvent, RecordRejected
from waggle.network.messages.options import SwarmOptions
from waggle.network.transport.interface import PeerAway, Transport, fetch, standing_of
from waggle.tasks.charter import Charter
from waggle.tasks.questions import epoch_at
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.exam import Exam, Exams
from waggle.tasks.sandbox.verifier import Verifier

log = logging.getLogger(__name__)

SLOWER = 10.0  # times the tempo, between two looks: an exam stands for ten minutes
PEERS_PER_LOOK = 8  # peers at one look
SLOWEST = 60.0  # times the tempo, before a peer that did not give its sheet is asked again
KEEP_S = 60.0  # between two writings of the marks
NONE = b"", b""  # no sheet, and its sha256


class AnswerSheetExchange:
    """Fills `marks`. Belongs to the loop's thread; marking itself runs in a thread of its own."""

    def __init__(
        self,
        options: SwarmOptions,
        charter: Charter,
        identity: Identity,
        admission: Membership,
        verifier: Verifier,
        tell: Callable[[NetworkEvent], None],
        clock: Callable[[], float],
        *,
        trust: ReputationTable,
        traffic: BandwidthLimiter,
        accounts: PeerRateLimits,
        lodged: Callable[[bytes], bytes] = lambda sha256: b"",
    ) -> None:
        self.on = options.leaderboard
        self.exams = Exams(verifier, charter)
        self.marks = Scoreboard(ranked=charter.is_private, clock=clock, known=scores_file.read(options.marks, clock()))
        self._options, self._charter, self._identity, self._admission = options, charter, identity, admission
        self._verifier, self._tell, self._clock = verifier, tell, clock
        self._trust, self._traffic, self._accounts, self._lodged = trust, traffic, accounts, lodged
        self._own, self._own_epoch = NONE, 0
        self._news = self.marks.sheets > 0  # something was marked that nobody was told of
        self._last_saved = time.monotonic(), self.marks.sheets  # when they were written last, and how many they were
        self._named: dict[bytes, Announcement] = {}  # who named a sheet, at the last look into the directory
        self._resting: dict[bytes, float] = {}  # peer id -> not asked until, monotonic
        self._read: OrderedDict[bytes, bytes] = OrderedDict()  # peer id -> sha256 of the sheet that was read last
        self._judging: asyncio.Future[int] | None = None

    @property
    def own(self) -> tuple[bytes, bytes]:
        """Our newest sheet and its sha256; empty where there is none that others would mark now."""
        return self._own if answer_sheet.is_current(self._own_epoch, self._clock()) else NONE

    async def run(self, connection: Transport) -> None:
        """Look, ask, mark, wait; for ever."""
        while True:
            if self.on:
                with suppress(PeerAway):  # the network starts again: the next look finds it
                    await self._look(connection)
            await asyncio.sleep(self._options.tempo * SLOWER)

    async def finish(self) -> None:
        """Wait for the marking under way: closing the verifier would end it in the middle."""
        if self._judging is not None:
            await asyncio.gather(self._judging, return_exceptions=True)  # a refusal no longer interests anybody
        self._keep()

    def turn(self, *, on: bool) -> None:
        """Take part from now on, or no more: then one's own sheet is given to nobody any more."""
        self.on = on
        if not on:
            self._own = NONE

    def on_announcements(self, announced: Mapping[bytes, Announcement]) -> None:
        """These announcements were seen just now."""
        self._named = {origin: each for origin, each in announced.items() if each.sheet}

    def signed(self, epoch: int, round_number: int, learned: int, model: str, answers: Sequence[Completion]) -> bytes:
        """Our own sheet, ready to be published. From any thread."""
        sheet = AnswerSheet(
            origin=self._identity.peer_id, epoch=epoch, exam=self.exams.of(epoch).digest, round=round_number, learned=learned,
            model=model, answers=tuple(answers), certificate=self._admission.certificate(),
        )  # fmt: skip
        return answer_sheet.signed(sheet, self._charter, self._identity)

    def publish(self, blob: bytes, right: int) -> None:
        """Give this sheet of ours to whoever asks. `right` is what our own verifier says of it."""
        if not self.on or not blob:
            return
        with suppress(BadRecord):  # of an exam that has no questions under this charter
            own = answer_sheet.read(blob, self._charter, origin=self._identity.peer_id)
            self._own, self._own_epoch = (blob, hashlib.sha256(blob).digest()), own.epoch
            if self.own[0]:  # else the computer slept over it
                self._count(own, right, "")
        self._say()

    def get(self, sha256: bytes) -> bytes:
        """The sheet of this hash, while it is given out."""
        return self._own[0] if sha256 and sha256 == self._own[1] else b""

    async def _look(self, connection: Transport) -> None:
        now, epoch = time.monotonic(), epoch_at(self._clock())
        self._resting = {peer_id: until for peer_id, until in self._resting.items() if until > now}
        left_alone = {self._identity.peer_id, *self._resting, *self._trust.avoided()}
        new = [
            (peer_id, each)
            for peer_id, each in self._named.items()
            if peer_id not in left_alone
            and each.sheet != self._read.get(peer_id)
            and self.marks.epoch_of(peer_id) < epoch
            and not self._accounts.rest(self._trust.of(peer_id).payers)
        ]
        for peer_id, each in self._in_turn(new)[:PEERS_PER_LOOK]:
            if self._accounts.rest(self._trust.of(peer_id).payers):  # for one asked just now; asked at a later look
                continue
            self._resting[peer_id] = now + self._options.tempo * SLOWEST
            try:
                await self._ask(connection, peer_id, each)
            except BadRecord as bad:  # counted and told; the others are heard
                log.info("an answer sheet of peer %s is refused: %s", short_id(peer_id), bad.title)
                self._trust.rejected(peer_id, bad.title)
                self._tell(RecordRejected(origin=peer_id, reason=bad.title))
        self._say()
        if now - self._last_saved[0] > KEEP_S:
            self._keep()

    def _in_turn(self, new: Iterable[tuple[bytes, Announcement]]) -> list[tuple[bytes, Announcement]]:
        """One of each party first, trusted ones before others: a crowd of silent names keeps nobody else waiting."""
        trusted, turns = self._trust.trusted(), Counter[Party]()

        def turn(item: tuple[bytes, Announcement]) -> int:
            party = self._trust.of(item[0]).party or item[0]
            turns[party] += 1
            return turns[party]

        return sorted(sorted(new, key=lambda item: (item[0] not in trusted, random.random())), key=turn)

    async def _ask(self, connection: Transport, peer_id: bytes, announced: Announcement) -> None:
        if not self._traffic.may_receive():  # a limit that the person set
            return
        payers = self._trust.of(peer_id).payers
        blob = self._lodged(announced.sheet) or await fetch(
            connection, self._traffic, origin=peer_id, via=announced.via, sha256=announced.sheet,
            seconds=self._options.patience, certificate=self._admission.certificate(),
            paid=lambda size: self._accounts.pulls.charge(payers, size),
        )  # fmt: skip
        if not blob:  # it gives no more for now
            return
        self._remember(peer_id, announced.sheet)
        if hashlib.sha256(blob).digest() != announced.sheet:
            raise BadRecord("not the answer sheet that was named")
        sheet = answer_sheet.read(blob, self._charter, origin=peer_id)
        # Neither of these is an offence: what it names may be old by now, and its clock or ours may be wrong.
        holds = answer_sheet.is_current(sheet.epoch, self._clock()) and self._admission.admits(peer_id, sheet.certificate)
        if holds and self.marks.epoch_of(peer_id) < sheet.epoch:
            await self._mark(sheet, (await standing_of(peer_id, self._trust, connection)).party)

    def _remember(self, peer_id: bytes, sha256: bytes) -> None:
        self._read[peer_id] = sha256
        self._read.move_to_end(peer_id)
        if len(self._read) > MAX_NODES:
            self._read.popitem(last=False)

    def _keep(self) -> None:
        """Write the marks down where there are new ones."""
        if self.marks.sheets != self._last_saved[1]:
            scores_file.write(self._options.marks, self.marks.all())
        self._last_saved = time.monotonic(), self.marks.sheets

    async def _mark(self, sheet: AnswerSheet, party: str) -> None:
        watch = VerifierStopwatch()
        self._judging = asyncio.ensure_future(asyncio.to_thread(self._right, sheet, watch))
        try:
            self._count(sheet, await asyncio.shield(self._judging), party)
        except VerifierGone as error:  # our own trouble, which the verifier has told: nobody is to blame
            log.info("the answer sheet of peer %s was not marked: %s", short_id(sheet.origin), error.title)
            return
        except (CharterError, VerifierError) as error:
            raise BadRecord("cannot be judged") from error
        finally:
            self._accounts.work.charge(self._trust.of(sheet.origin).payers, watch.seconds)

    def _right(self, sheet: AnswerSheet, watch: VerifierStopwatch) -> int:
        """How many answers are right; in a thread of its own. Raises BadRecord, VerifierError and CharterError.

        VerifierGone is our own trouble: so it is where the exam cannot be made, which holds no word of a peer's.
        """
        try:
            exam = self.exams.of(sheet.epoch)
        except (CharterError, VerifierError) as error:
            raise VerifierGone(error.title, error.advice) from error
        with watch.turn(self._verifier):
            return count_right(sheet, exam, self._verifier)

    def _count(self, sheet: AnswerSheet, right: int, party: str) -> None:
        mark = SheetScore(
            origin=sheet.origin, epoch=sheet.epoch, round=sheet.round, learned=sheet.learned, model=sheet.model, right=right,
            total=len(sheet.answers), source=party,
        )  # fmt: skip
        self._news = self.marks.add(mark) or self._news

    def _say(self) -> None:
        if self._news:
            self._news = False
            self._tell(LeaderboardChanged(comparison=self.marks.comparison()))


def count_right(sheet: AnswerSheet, exam: Exam, verifier: Verifier) -> int:
    """What a sheet is worth, by this computer's own verifier: anybody comes to the same. Raises as `judge_strangers` does."""
    answer_sheet.require_exam(sheet, exam)
    verdicts = verifier.judge_strangers(zip(exam.questions, sheet.answers, strict=True))
    return sum(verdict.reward >= RIGHT for verdict in verdicts)
