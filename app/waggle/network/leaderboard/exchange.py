"""The exchange of answer sheets: publishes our own, asks peers for theirs, reads them strictly, and scores them here.

It is off unless the person turned it on: then nothing is published and nobody is asked. No answer sheet reaches the pool.
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
from waggle.network.exchange.node_context import NodeContext, PeerAccounts, is_unmet
from waggle.network.exchange.verification import VerifierStopwatch
from waggle.network.leaderboard import scores_file
from waggle.network.leaderboard.scores import MAX_NODES, Scoreboard, SheetScore
from waggle.network.limits.named_calls import OWN
from waggle.network.limits.rate_limits import Party
from waggle.network.limits.reputation import trusted_peers
from waggle.network.messages import answer_sheet
from waggle.network.messages.announcement import Announcement
from waggle.network.messages.answer_sheet import AnswerSheet
from waggle.network.messages.events import LeaderboardChanged, RecordRejected
from waggle.network.messages.faults import Fault
from waggle.network.transport.interface import PeerAway, Transport, fetch, reputation_of
from waggle.tasks.questions import epoch_at
from waggle.tasks.rollout_group import RIGHT, Completion
from waggle.tasks.sandbox.exam import Exam, Exams
from waggle.tasks.sandbox.verifier import Verifier

log = logging.getLogger(__name__)

SLOWER = 10.0  # times the tempo, between two looks: an exam is valid for ten minutes
PEERS_PER_LOOK = 8
SLOWEST = 60.0  # times the tempo, before a peer that did not give its sheet is asked again
SAVE_EVERY_S = 60.0
NO_SHEET = b"", b""  # no sheet, and its sha256


class AnswerSheetExchange:
    """Fills `scores`. Belongs to the loop's thread; scoring runs in a thread of its own.

    `call_in_loop` runs a function on the loop's thread, and returns False if the node is closed. `on_published` is called when
    our own sheet has changed. `uploaded` gives the payload with a hash that a light client uploaded to this node, or b"".
    """

    def __init__(
        self,
        context: NodeContext,
        accounts: PeerAccounts,
        *,
        call_in_loop: Callable[[Callable[[], None]], bool],
        on_published: Callable[[], None],
        uploaded: Callable[[bytes], bytes] = lambda sha256: b"",
    ) -> None:
        self._context, self._options = context, context.options
        self._accounts = accounts
        self._reputations, self._bandwidth, self._rate_limits = accounts.reputations, accounts.bandwidth, accounts.rate_limits
        self._call_in_loop, self._on_published, self._uploaded = call_in_loop, on_published, uploaded
        self.enabled = context.options.leaderboard
        self.exams = Exams(context.verifier, context.charter)
        known = scores_file.read(context.options.scores_file, context.clock())
        self.scores = Scoreboard(ranked=context.charter.is_private, clock=context.clock, known=known)
        self._own, self._own_epoch = NO_SHEET, 0
        self._unreported = self.scores.sheets > 0
        self._last_saved = time.monotonic(), self.scores.sheets  # when, and how many sheets were scored by then
        self._named: dict[bytes, Announcement] = {}  # by origin: the announcements with a sheet, at the last look
        self._resting: dict[bytes, float] = {}  # peer id -> not asked until, monotonic
        self._read: OrderedDict[bytes, bytes] = OrderedDict()  # peer id -> sha256 of the sheet that was read last
        self._scoring: asyncio.Future[int] | None = None

    @property
    def own(self) -> tuple[bytes, bytes]:
        """Our newest sheet and its sha256; both empty if there is none that peers would score now."""
        return self._own if answer_sheet.is_current(self._own_epoch, self._context.clock()) else NO_SHEET

    async def run(self, transport: Transport) -> None:
        """Look, ask, score, wait, until cancelled."""
        while True:
            if self.enabled:
                try:
                    await self._look(transport)
                except PeerAway as away:  # the network restarts: the next look works again
                    log.debug("answer sheets were not looked for: %r", away)
            await asyncio.sleep(self._options.tempo * SLOWER)

    async def finish(self) -> None:
        """Wait for the scoring under way, since closing the verifier would break it off, and save the scores."""
        if self._scoring is not None:
            await asyncio.gather(self._scoring, return_exceptions=True)  # a refusal no longer matters
        self._save()

    def enable(self, *, on: bool) -> None:
        """Take part from now on, or no more: then no peer gets our own sheet."""
        self.enabled = on
        if not on:
            self._own = NO_SHEET

    def on_announcements(self, announced: Mapping[bytes, Announcement]) -> None:
        """Note the current announcements, by origin."""
        self._named = {origin: each for origin, each in announced.items() if each.sheet}

    def publish(self, epoch: int, round_number: int, learned: int, model: str, answers: Sequence[Completion], right: int) -> int:
        """Publish our answers to an epoch's exam, of which our own verifier says that `right` are right. From any thread.

        Returns the bytes of the sheet; 0 if the person turned this off, or the node is closed.
        """
        if not self.enabled:
            return 0
        sheet = AnswerSheet(
            origin=self._context.identity.peer_id, epoch=epoch, exam=self.exams.of(epoch).digest, round=round_number,
            learned=learned, model=model, answers=tuple(answers), certificate=self._context.membership.certificate(),
        )  # fmt: skip
        blob = answer_sheet.signed(sheet, self._context.charter, self._context.identity)
        return len(blob) if self._call_in_loop(lambda: self._publish(blob, right)) else 0

    def get(self, sha256: bytes) -> bytes:
        """Our own sheet if it has this hash, else b""."""
        return self._own[0] if sha256 and sha256 == self._own[1] else b""

    def _publish(self, blob: bytes, right: int) -> None:
        if self.enabled and blob:
            with suppress(BadRecord):  # of an exam that has no questions under this charter
                own = answer_sheet.read(blob, self._context.charter, origin=self._context.identity.peer_id)
                self._own, self._own_epoch = (blob, hashlib.sha256(blob).digest()), own.epoch
                if self.own[0]:  # else the computer slept meanwhile
                    self._add_score(own, right, "")
            self._report()
        self._on_published()

    async def _look(self, transport: Transport) -> None:
        now, epoch = time.monotonic(), epoch_at(self._context.clock())
        self._resting = {peer_id: until for peer_id, until in self._resting.items() if until > now}
        avoided = {self._context.identity.peer_id, *self._resting, *self._reputations.avoided()}
        new = [
            (peer_id, each)
            for peer_id, each in self._named.items()
            if peer_id not in avoided
            and each.sheet != self._read.get(peer_id)
            and self.scores.epoch_of(peer_id) < epoch
            and not self._rate_limits.used_up(self._reputations.of(peer_id).payers)
        ]
        for peer_id, each in self._in_turn(new)[:PEERS_PER_LOOK]:
            if self._rate_limits.used_up(self._reputations.of(peer_id).payers):  # it shares a limit with a peer asked just now
                log.debug("peer %s is not asked for its answer sheet now: its share is used up", short_id(peer_id))
                continue
            self._resting[peer_id] = now + self._options.tempo * SLOWEST
            try:
                await self._ask(transport, peer_id, each)
            except BadRecord as bad:  # counted against the peer and reported; the others are asked all the same
                self._accounts.reject(peer_id, bad.title, cause=bad.__cause__)
                self._context.report(RecordRejected(origin=peer_id, reason=bad.title))
        self._report()
        if now - self._last_saved[0] > SAVE_EVERY_S:
            self._save()

    def _in_turn(self, new: Iterable[tuple[bytes, Announcement]]) -> list[tuple[bytes, Announcement]]:
        """One peer of each party first, trusted ones before others, so that a crowd of silent names delays no other party."""
        trusted, turns = trusted_peers(self._reputations), Counter[Party]()

        def turn(item: tuple[bytes, Announcement]) -> int:
            party = self._reputations.of(item[0]).party or item[0]
            turns[party] += 1
            return turns[party]

        return sorted(sorted(new, key=lambda item: (item[0] not in trusted, random.random())), key=turn)

    async def _ask(self, transport: Transport, peer_id: bytes, announced: Announcement) -> None:
        if not self._bandwidth.may_receive():  # a limit that the person set
            return
        payers = self._reputations.of(peer_id).payers
        unmet = is_unmet(self._context, self._accounts, transport, peer_id, announced)
        if unmet and not self._accounts.unmet_calls.begin(OWN):
            return
        blob = self._uploaded(announced.sheet) or await fetch(
            transport, self._bandwidth, origin=peer_id, via=announced.via, sha256=announced.sheet,
            seconds=self._options.patience, certificate=self._context.membership.certificate(),
            paid=lambda size: self._rate_limits.pulls.charge(payers, size), named=self._accounts.named_calls,
        )  # fmt: skip
        if not blob:
            seconds = self._options.tempo * SLOWEST
            log.debug("peer %s gave no answer sheet; next try in %g s at the earliest", short_id(peer_id), seconds)
            return
        if unmet:
            self._accounts.unmet_calls.gave(OWN)
        self._remember(peer_id, announced.sheet)
        if hashlib.sha256(blob).digest() != announced.sheet:
            raise BadRecord(Fault.OTHER_SHEET)
        sheet = answer_sheet.read(blob, self._context.charter, origin=peer_id)
        # Neither is an offence: the named sheet may be old by now, and its clock or ours may be wrong.
        if not answer_sheet.is_current(sheet.epoch, self._context.clock()):
            log.debug("the answer sheet of peer %s is not scored: it is of another epoch", short_id(peer_id))
        elif not self._context.membership.admits(peer_id, sheet.certificate):
            log.debug("the answer sheet of peer %s is not scored: its certificate does not hold here now", short_id(peer_id))
        elif self.scores.epoch_of(peer_id) < sheet.epoch:
            await self._score(sheet, (await reputation_of(peer_id, self._reputations, transport)).party)

    def _remember(self, peer_id: bytes, sha256: bytes) -> None:
        self._read[peer_id] = sha256
        self._read.move_to_end(peer_id)
        if len(self._read) > MAX_NODES:
            self._read.popitem(last=False)

    def _save(self) -> None:
        """Write the scores if there are new ones."""
        if self.scores.sheets != self._last_saved[1]:
            scores_file.write(self._options.scores_file, self.scores.all())
        self._last_saved = time.monotonic(), self.scores.sheets

    async def _score(self, sheet: AnswerSheet, party: str) -> None:
        watch = VerifierStopwatch()
        self._scoring = asyncio.ensure_future(asyncio.to_thread(self._count_right, sheet, watch))
        try:
            self._add_score(sheet, await asyncio.shield(self._scoring), party)
        except VerifierGone as error:  # our own trouble, which the verifier has reported: no peer is to blame
            log.info("the answer sheet of peer %s was not scored: %s", short_id(sheet.origin), error.title)
            return
        except (CharterError, VerifierError) as error:
            raise BadRecord(Fault.CANNOT_BE_JUDGED) from error
        finally:
            self._rate_limits.work.charge(self._reputations.of(sheet.origin).payers, watch.seconds)

    def _count_right(self, sheet: AnswerSheet, watch: VerifierStopwatch) -> int:
        """The number of right answers. Runs in its own thread; raises BadRecord, VerifierError and CharterError.

        If the exam itself cannot be made, this is VerifierGone, our own trouble: nothing in an exam comes from a peer.
        """
        try:
            exam = self.exams.of(sheet.epoch)
        except (CharterError, VerifierError) as error:
            raise VerifierGone(error.title, error.advice) from error
        with watch.turn(self._context.verifier):
            return count_right(sheet, exam, self._context.verifier)

    def _add_score(self, sheet: AnswerSheet, right: int, party: str) -> None:
        score = SheetScore(
            origin=sheet.origin, epoch=sheet.epoch, round=sheet.round, learned=sheet.learned, model=sheet.model, right=right,
            total=len(sheet.answers), source=party,
        )  # fmt: skip
        self._unreported = self.scores.add(score) or self._unreported

    def _report(self) -> None:
        if self._unreported:
            self._unreported = False
            self._context.report(LeaderboardChanged(comparison=self.scores.comparison()))


def count_right(sheet: AnswerSheet, exam: Exam, verifier: Verifier) -> int:
    """The number of right answers by this computer's verifier; every node comes to the same. Raises as `judge_strangers` does."""
    answer_sheet.require_exam(sheet, exam)
    verdicts = verifier.judge_strangers(zip(exam.questions, sheet.answers, strict=True))
    return sum(verdict.reward >= RIGHT for verdict in verdicts)
