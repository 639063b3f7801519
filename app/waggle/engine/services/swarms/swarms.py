"""Swarms that a person knows: lists and creates them, reads and writes invites, and changes to another one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from waggle.core import paths
from waggle.core.errors import CharterError, EngineError, ModelError, SwarmError
from waggle.core.message import NOTHING, Message
from waggle.core.settings import Settings, WebSettings
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.engine.runtime.undo_log import NOT_CAUSED_BY_EITHER, NOT_CAUSED_BY_SWARM, UndoStep
from waggle.engine.services.models.models import Change, Restart
from waggle.engine.services.own_questions import read_file, title_of
from waggle.engine.services.swarms import ended_swarms, swarm_connection, swarm_recovery
from waggle.engine.services.swarms.invites import written_invite
from waggle.engine.storage.stored_swarm import known_charter, require_stored_key
from waggle.network import joined_swarms
from waggle.network.identity import member_name, membership
from waggle.network.joined_swarms import JoinedSwarm
from waggle.network.messages import invite, pasted_invite
from waggle.network.messages.addresses import own_port
from waggle.network.swarm_preview import SwarmPreview, any_seed_answers, preview_swarm
from waggle.network.transport import peer_cache
from waggle.network.transport.choice import kind_of
from waggle.network.transport.ports import usable_port
from waggle.protocol import commands, events_swarms
from waggle.rl.batch import nothing
from waggle.tasks import catalogue, shipped_swarms
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter, Specialty
from waggle.tasks.graders import graders
from waggle.tasks.new_charter import new_charter
from waggle.tasks.piece_store import PieceStore
from waggle.tasks.question_file.preview import PackedFile, packed_file
from waggle.tasks.question_file.repeated import refuse_repeated_questions
from waggle.tasks.sandbox.verifier import Pieces, Verifier
from waggle.tasks.specialties.interface import Difficulty
from waggle.tasks.swarm_presets import PRESETS

NOT_CAUSED_BY_CHOICE = (*NOT_CAUSED_BY_SWARM, *NOT_CAUSED_BY_EITHER, ModelError)  # of a choice before this start
BACK_MESSAGE = Message("It continues in the previous swarm.")
CLASS_HOST, CLASS_PORTS = "0.0.0.0", range(8080, 8090)  # of the page of a class
# where the one of before is open to more people than the chosen one
ASK_MESSAGE = Message("Nothing is trained until you choose a swarm.")
Answer = events_swarms.KnownSwarms | events_swarms.SwarmCreated | events_swarms.InviteRead | events_swarms.InviteWritten
Addresses = Callable[[], Awaitable[list[str]]]


@dataclass(frozen=True)
class CurrentSwarm:
    """The swarm that this node has joined, and the node's own addresses there."""

    charter: Charter
    addresses: Addresses


def with_chosen_swarm(home: paths.Home, chosen: Settings) -> Settings:
    """The settings with the active swarm of the list of joined swarms, unless they name a charter. Raises SwarmError."""
    known = joined_swarms.read(home.swarms)
    entry = _active_entry(known)
    if entry is None or chosen.swarm.charter:
        return chosen
    port = chosen.swarm.port or usable_port(chosen.swarm.host, entry.port)  # the last port, so that invites stay valid
    if not known.active:
        return replace(chosen, swarm=replace(chosen.swarm, port=port))
    gateways, light = entry.gateways or chosen.swarm.gateways, chosen.swarm.light or _is_by_web(entry)
    there = replace(chosen.swarm, charter=entry.charter, seeds=entry.seeds, gateways=gateways, light=light, port=port)
    return _with_class_page(replace(chosen, swarm=there)) if entry.for_class else replace(chosen, swarm=there)


def _with_class_page(chosen: Settings) -> Settings:
    """The settings while this computer is in a class that it created: what serves the class, unless web settings were changed."""
    near = replace(chosen.swarm, lan=True)
    if chosen.web != WebSettings():
        return replace(chosen, swarm=near)
    port = next((port for port in CLASS_PORTS if usable_port(CLASS_HOST, port)), 0)
    page = WebSettings(host=CLASS_HOST, port=port, gateway=True, class_page=True)
    return replace(chosen, swarm=near, web=page)


async def retry_direct_connection(home: paths.Home, chosen: Settings) -> None:
    """Try the seeds of an active swarm that was joined through gateways only; a laptop may be on another network now.

    If a seed answers, use direct connections from now on. Raises SwarmError if the list of joined swarms cannot be read.
    """
    known = joined_swarms.read(home.swarms)
    entry = known.entry(known.active) if known.active else None
    if entry is None or not entry.only_by_web or chosen.swarm.charter or chosen.swarm.solo:
        return
    if kind_of(swarm_connection.options_of(home, chosen)).joins_through != "seeds":
        return
    with suppress(SwarmError):  # the gateways remain
        if await any_seed_answers(entry.seeds, bytes.fromhex(entry.charter), chosen.swarm.host):
            joined_swarms.write(home.swarms, known.with_entry(replace(entry, only_by_web=False)))


def _is_by_web(entry: JoinedSwarm) -> bool:
    """Whether to take part through gateways: the invites name no seeds, or no seed answers on this network.

    Never for a swarm that was created here, as others must be able to reach this computer.
    """
    return bool(entry.gateways) and not entry.created and (entry.only_by_web or not entry.seeds)


def _entry_of(known: joined_swarms.JoinedSwarms, digest: str) -> JoinedSwarm | None:
    """The swarm's entry; an empty one for a shipped swarm, which needs none."""
    return known.entry(digest) or (JoinedSwarm(charter=digest) if shipped_swarms.shipped_swarm(digest) else None)


def _active_entry(known: joined_swarms.JoinedSwarms) -> JoinedSwarm | None:
    """The active swarm's entry. A swarm without one is not exchanged for the default swarm: it may have addresses elsewhere."""
    if known.active:
        return _entry_of(known, known.active) or JoinedSwarm(charter=known.active)
    return _entry_of(known, shipped_swarms.first_swarm().digest.hex())


def is_open(home: paths.Home, digest: str) -> bool:
    """Whether everybody may take part in a swarm of the list (empty: the default one). False if that is not known here."""
    if not digest or shipped_swarms.shipped_swarm(digest):
        return True
    if home.swarm(digest).key.exists():
        return False
    try:
        return not known_charter(home, digest).is_private
    except CharterError:
        return False


def is_with_others(entry: JoinedSwarm | None) -> bool:
    """Whether addresses of other nodes are known, from an invite."""
    return entry is not None and bool(entry.seeds or entry.gateways)


def return_to_previous_swarm(home: paths.Home) -> str | None:
    """Activate the swarm in which a round was played last. Raises SwarmError.

    If that swarm is open to more people than the chosen one, or is not known, a person has to choose: then return that message.
    """
    known = joined_swarms.read(home.swarms)
    if known.before_lost or (is_open(home, known.before) and not is_open(home, known.active)):
        joined_swarms.write(home.swarms, replace(known, undecided=True))
        return ASK_MESSAGE
    if known.active != known.before:
        joined_swarms.write(home.swarms, replace(known, active=known.before))
    return None


def undo_steps(home: paths.Home, chosen: Settings) -> list[UndoStep]:
    """At the start: how to leave a chosen swarm in which no round was played yet. Raises SwarmError."""
    known = joined_swarms.read(home.swarms)
    if (known.active == known.before and not known.before_lost) or known.undecided or chosen.swarm.charter:
        return []
    return [UndoStep(partial(return_to_previous_swarm, home), NOT_CAUSED_BY_CHOICE, BACK_MESSAGE)]


class SwarmService:
    """Obeys the commands about swarms.

    `chosen` are the settings of this run; `light` says whether the settings ask for gateways only, in whichever swarm. `current`
    returns None until the node has joined its swarm. Raises SwarmError if the list of joined swarms cannot be read.
    """

    def __init__(
        self, home: paths.Home, chosen: Settings, restart: Restart, change: Change, light: Callable[[], bool] = lambda: False,
        current: Callable[[], CurrentSwarm | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._home, self._chosen, self._restart, self._change, self._light = home, chosen, restart, change, light
        self._current = current
        self._invites_read: dict[str, tuple[invite.Invite, SwarmPreview]] = {}
        self._lock = asyncio.Lock()
        self._at_start = joined_swarms.read(home.swarms)
        self._active = self._at_start.active  # of this run; a choice meanwhile is for the next start

    async def obey(self, command: commands.SwarmCommand) -> tuple[Answer, ...]:
        """Obey one command at a time. Raises WaggleError for what cannot be done; then nothing has changed."""
        async with self._lock:
            match command:
                case commands.ListSwarms():
                    return (self._list(),)
                case commands.CreateSwarm():
                    return (await self._create(command), self._list())
                case commands.ReadInvite():
                    return (await self._look(command.link),)
                case commands.ChooseSwarm():
                    return self._choose(command.charter, command.member_name)
                case commands.ForgetSwarm():
                    return self._forget(command.charter)
                case commands.WriteInvite():
                    return (await self._invite(),)
                case _:
                    assert_never(command)

    async def store_port(self, current: CurrentSwarm) -> None:
        """Store the node's port in the swarm that it has joined, for the next start."""
        port = own_port(await current.addresses())  # before reading the list: another swarm may be chosen during this wait
        digest, known = current.charter.digest.hex(), self._known()
        entry = _entry_of(known, digest)
        if entry is not None and port:
            joined_swarms.write(self._home.swarms, known.with_entry(replace(entry, port=port)))

    def mark_played(self) -> None:
        """Note that a round was played: a later choice that fails is undone to this swarm."""
        if self._why_fixed() or self._at_start.undecided:  # the settings name the swarm, or it trains alone meanwhile
            return
        with suppress(SwarmError):  # a full disk: a failed choice is undone to the swarm before
            known = self._known()
            if known.before != self._active or known.before_lost:
                joined_swarms.write(self._home.swarms, replace(known, before=self._active, before_lost=False))

    def _known(self) -> joined_swarms.JoinedSwarms:
        return swarm_recovery.read_or_rebuild(self._home, self._at_start)

    def _list(self) -> events_swarms.KnownSwarms:
        known, shipped = self._known(), shipped_swarms.shipped_swarms()
        entries = [known_entry for known_entry in known.entries if not shipped_swarms.shipped_swarm(known_entry.charter)]
        descriptions = [self._describe(charter, _entry_of(known, charter.digest.hex())) for charter in shipped]
        for entry in entries:
            with suppress(CharterError):  # without its charter it cannot be joined
                descriptions.append(self._describe(known_charter(self._home, entry.charter), entry))
        offers = tuple(
            events_swarms.SpecialtyOffer(
                dataset=specialty.dataset, title=specialty.title, topic=specialty.topic,
                samples={difficulty: level.sample for difficulty, level in specialty.levels.items()},
                unchecked=specialty.unchecked,
            )
            for specialty in catalogue.catalogue_entries()
        )  # fmt: skip
        return events_swarms.KnownSwarms(
            swarms=tuple(descriptions), offers=offers, fixed=self._why_fixed(), ended=ended_swarms.ended_swarms(self._home, known)
        )

    def _why_fixed(self) -> Message:
        """Why the settings allow no other swarm; empty if they do."""
        if self._chosen.swarm.charter and self._chosen.swarm.charter != self._active:
            return Message("swarm.charter in the settings, or on the command line, names the swarm.")
        return NOTHING

    def _describe(self, charter: Charter, entry: JoinedSwarm | None) -> events_swarms.SwarmDetails:
        digest = charter.digest
        return events_swarms.SwarmDetails(
            charter=digest.hex(),
            name=charter.name,
            specialties=tuple(map(_specialty_details, charter.specialties)),
            model_hint=charter.model_hint or "",
            completion_characters=charter.completion_characters,
            private=charter.is_private,
            shipped=shipped_swarms.is_shipped(charter),
            created=bool(entry and entry.created),
            known=entry is not None or shipped_swarms.is_shipped(charter),
            active=self._current_digest == digest.hex(),
            members=entry.members if entry else 0,
            ends_solo=self._chosen.swarm.solo and is_with_others(entry),
            for_class=bool(entry and entry.for_class),
            member_name=entry.member_name if entry else "",
        )

    async def _create(self, command: commands.CreateSwarm) -> events_swarms.SwarmCreated:
        preset = PRESETS.get(command.preset)
        key = membership.new_key() if command.private or preset else b""
        admission = membership.public_key_of(key) if key else ""
        chosen: dict[str, list[Difficulty]] = {}
        for dataset, level in dict.fromkeys((*(preset.specialties if preset else ()), *command.specialties)):
            chosen.setdefault(dataset, []).append(level)
        files = await asyncio.to_thread(_packed, command.files)
        titled = [(each.title or title_of(each.path), packed.file) for each, packed in files]
        plain = new_charter(command.name, chosen, files=titled, model_hint=command.model_hint, admission=admission, preset=preset)
        pieces = {packed.file.dataset: packed.pieces for _, packed in files}
        charter = replace(plain, questions_digest=await asyncio.to_thread(_questions_digest, plain, pieces))
        known = self._known()
        digest = charter.digest.hex()
        entry = known.entry(digest) or JoinedSwarm(
            charter=digest, created=True, added_at=time.time(), for_class=command.preset == "classroom"
        )
        after = known.with_entry(entry)
        store = PieceStore(self._home.questions, charter)
        for piece in chain.from_iterable(pieces.values()):
            await asyncio.to_thread(store.add, piece)
        self._store(charter, key)
        joined_swarms.write(self._home.swarms, after)
        return events_swarms.SwarmCreated(swarm=self._describe(charter, entry))

    async def _look(self, text: str) -> events_swarms.InviteRead:
        read = await asyncio.to_thread(pasted_invite.read, text)
        digest = read.charter.hex()
        ended_swarms.require_current(self._home, digest)
        here: Charter | None = None
        with suppress(CharterError):  # not stored yet
            here = known_charter(self._home, digest)
        preview = await preview_swarm(read, self._chosen.swarm.host, by_web=self._light())
        charter = preview.charter or here
        if charter is None:
            raise SwarmError(
                "Nobody answers at the addresses of this invite.",
                "Its members may be off. Try again later, or ask for a newer invite.",
            )
        if charter.is_private:
            membership.require_key(charter, read.key)
        self._store(charter, b"")
        self._invites_read[digest] = read, preview
        known = self._known()
        entry = known.entry(digest)
        if entry and preview.answered:
            joined_swarms.write(self._home.swarms, known.with_entry(replace(entry, members=preview.members)))
        description = replace(self._describe(charter, entry), members=preview.members, ends_solo=self._chosen.swarm.solo)
        known_here = await self._known_addresses(entry)
        return events_swarms.InviteRead(
            swarm=description, answered=preview.answered,
            leads_to_others=known_here.isdisjoint((*read.seeds, *read.gateways)),
        )  # fmt: skip

    async def _known_addresses(self, entry: JoinedSwarm | None) -> set[str]:
        """The addresses of this node, of those whom it has met, and of earlier invites to a swarm."""
        current = self._current()
        met = peer_cache.read(swarm_connection.options_of(self._home, self._chosen).known_peers)
        invited = (*entry.seeds, *entry.gateways) if entry else ()
        return {*(await current.addresses() if current else ()), *met, *invited}

    def _choose(self, digest: str, name: str | None) -> tuple[Answer, ...]:
        if fixed := self._why_fixed():
            raise EngineError("Another swarm cannot be chosen now.", fixed)
        if not shipped_swarms.shipped_swarm(digest) and not self._home.swarm(digest).charter_file.exists():
            raise SwarmError("This swarm is not known here.", "Open its invite first.")
        charter, known = known_charter(self._home, digest), self._known()
        swarm_connection.chosen_specialties(self._chosen, charter)
        looked = self._invites_read.get(digest)
        if not looked and _entry_of(known, digest) is None:
            raise SwarmError("This swarm was looked at before the engine started again.", "Open its invite again.")
        if looked or not shipped_swarms.is_shipped(charter):
            entry = _entry(digest, known.entry(digest), looked)
            known = known.with_entry(entry if name is None else replace(entry, member_name=_member_name(name, charter)))
        elif name:
            _member_name(name, charter)
        if looked and charter.is_private:
            self._store(charter, looked[0].key)
        else:
            require_stored_key(self._home, charter)
        with_others = is_with_others(known.entry(digest))
        active = "" if charter == shipped_swarms.first_swarm() and not with_others else digest
        alone = self._chosen.swarm.solo and with_others
        is_known = not known.undecided and active == known.active and known == self._known()
        if digest == self._current_digest and not alone and is_known:
            return (self._list(),)  # nothing changes
        restore_solo: Callable[[], object] = nothing
        if alone:  # to join others is to end solo training
            restore_solo = self._change({"swarm.solo": False})
        try:
            joined_swarms.write(self._home.swarms, replace(known, active=active, undecided=False))
        except SwarmError:
            restore_solo()
            raise
        self._restart(f"Going to {charter.name}.", partial(self._go_back, restore_solo))
        return ()

    def _go_back(self, restore_solo: Callable[[], object]) -> str | None:
        message = return_to_previous_swarm(self._home)
        restore_solo()
        return message

    def _forget(self, digest: str) -> tuple[Answer, ...]:
        known = self._known()
        if digest in self._in_use(known):
            raise EngineError("This swarm is taken part in now.", "Choose another one first.")
        joined_swarms.write(self._home.swarms, known.without(digest))
        home = self._home
        forgotten: Charter | None = None
        with suppress(CharterError):  # it has no questions, or cannot be read: they stay until Waggle's data are removed
            forgotten = known_charter(home, digest)
        of_swarm = home.swarm(digest)
        for path in (of_swarm.charter_file, of_swarm.known_peers, of_swarm.key, of_swarm.scores):
            file_moves.unlink(path, missing_ok=True)
        if forgotten is not None:
            PieceStore(home.questions, forgotten).remove(self._stored_charters())
        self._invites_read.pop(digest, None)
        return (self._list(),)

    def _stored_charters(self) -> Iterator[Charter]:
        """All readable charters, and the current swarm's, whose file may lie in another folder."""
        if current := self._current():
            yield current.charter
        for path in self._home.charters.glob("*.json"):
            with suppress(CharterError):
                yield charters.read(path)

    @property
    def _current_digest(self) -> str:
        """The charter of the joined swarm as a hash in hex; empty until the node has joined it."""
        current = self._current()
        return current.charter.digest.hex() if current else ""

    def _in_use(self, known: joined_swarms.JoinedSwarms) -> set[str]:
        """The swarm of this run, and the one chosen for the next start."""
        first = shipped_swarms.first_swarm().digest.hex()
        here = self._current_digest or self._chosen.swarm.charter
        following = known.active if known.active != self._active else here
        return {here or first, following or first}

    async def _invite(self) -> events_swarms.InviteWritten:
        current = self._current()
        if current is None:
            raise EngineError("The swarm is not joined yet.", "Try again in a moment.")
        if self._chosen.swarm.solo:
            raise EngineError("This computer was chosen to be alone.", "Turn off “Train alone” in Settings, and start again.")
        return written_invite(self._home, self._chosen, current.charter, await current.addresses())

    def _store(self, charter: Charter, key: bytes) -> None:
        """Store a charter and its key. The key comes first: without it, a private swarm cannot be joined."""
        try:
            of_swarm = self._home.swarm(charter.digest.hex())
            if key:
                membership.write_key(of_swarm.key, key)
            paths.write_atomically(of_swarm.charter_file, charters.encode(charter))
        except OSError as error:
            raise SwarmError(
                Message("The charter cannot be kept: %1.", fault_of(error).reason), fault_of(error).advice
            ) from error


def _member_name(name: str, charter: Charter) -> str:
    """The name that a person chooses in a swarm. Raises SwarmError."""
    if name and not charter.is_private:
        raise SwarmError(
            Message("In %1, everybody has the name of a key.", charter.name), "Names can be chosen in private swarms."
        )
    return member_name.checked(name)


def _packed(chosen: Sequence[commands.NewQuestionFile]) -> list[tuple[commands.NewQuestionFile, PackedFile]]:
    """A person's own files as they travel. Raises QuestionFileError."""
    tables = [read_file(Path(each.path), each.grader, each.tolerance) for each in chosen]
    refuse_repeated_questions(tables)
    return [(each, packed_file(table)) for each, table in zip(chosen, tables, strict=True)]


def _specialty_details(specialty: Specialty) -> events_swarms.SpecialtyDetails:
    if (file := specialty.file) is not UNSET:
        return events_swarms.SpecialtyDetails(
            title=specialty.title, sample=file.samples[0] if file.samples else "", samples=file.samples,
            questions=file.questions, file_bytes=file.packed_bytes, grader_title=graders()[file.grader].title,
        )  # fmt: skip
    return events_swarms.SpecialtyDetails(
        title=specialty.title, levels=specialty.levels, sample=_sample(specialty), unchecked=_unchecked(specialty)
    )


def _sample(specialty: Specialty) -> str:
    level = catalogue.level_of(specialty.dataset, specialty.levels[0])
    return level.sample if level else ""


def _unchecked(specialty: Specialty) -> tuple[Difficulty, ...]:
    """The levels of which nobody checked the answers."""
    levels = ((difficulty, catalogue.level_of(specialty.dataset, difficulty)) for difficulty in specialty.levels)
    return tuple(difficulty for difficulty, level in levels if level is None or not level.checked)


def _entry(digest: str, entry: JoinedSwarm | None, looked: tuple[invite.Invite, SwarmPreview] | None) -> JoinedSwarm:
    """The entry after joining through an invite, whose seeds and gateways come first."""
    before = entry or JoinedSwarm(charter=digest, added_at=time.time())
    if looked is None:
        return before
    read, preview = looked
    return replace(
        before,
        seeds=tuple(dict.fromkeys((*read.seeds, *before.seeds)))[: invite.MAX_SEEDS],
        gateways=tuple(dict.fromkeys((*read.gateways, *before.gateways)))[: invite.MAX_GATEWAYS],
        only_by_web=preview.only_by_web if preview.answered and read.seeds else before.only_by_web,
        members=preview.members if preview.answered else before.members,
    )


def _questions_digest(charter: Charter, files: Mapping[str, Pieces]) -> str:
    """The hash of a charter's sample questions, the same for every member. Raises CharterError if none can be generated."""
    verifier = Verifier(charter, files=files)
    try:
        return verifier.digest()
    finally:
        verifier.close()
