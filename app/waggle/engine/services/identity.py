"""The person behind a node: contributions day by day, and backups of the identity: write, check and restore."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

from waggle.core import paths
from waggle.core.errors import IdentityError
from waggle.core.peer_id import text_of
from waggle.engine.storage import noise_salt
from waggle.engine.storage.history import read_days
from waggle.engine.storage.runs import trained_models
from waggle.network.identity import backup, keys
from waggle.network.limits import reputation_file
from waggle.protocol import commands, events_identity

EMPTY_DAY = events_identity.Day(date="1970-01-01", rounds=0, answers=0)


class IdentityService:
    """Obeys the commands about the person. `restart` restarts the engine, which then has the identity of the file."""

    def __init__(self, home: paths.Home, restart: Callable[[str], None]) -> None:
        self._home, self._restart = home, restart

    async def obey(self, command: commands.PersonCommand) -> tuple[events_identity.PersonEvent, ...]:
        """Obey, and return the events for the sender. Raises IdentityError for what cannot be done; then nothing has changed."""
        match command:
            case commands.QueryDays():
                return (await asyncio.to_thread(self._days),)
            case commands.BackUpIdentity():
                who = keys.load_or_create(self._home.identity)
                await asyncio.to_thread(backup.write, _path(command.path), who, command.passphrase)
                return (events_identity.BackupWritten(path=command.path),)
            case commands.CheckBackup():
                return (self._read(command.path, await asyncio.to_thread(backup.read, _path(command.path), command.passphrase)),)
            case commands.RestoreIdentity():
                return await self._restore(command)
            case commands.RenewIdentity():
                backup.restore_key_file(self._home.identity, None)
                noise_salt.forget(self._home)
                self._restart("Becoming somebody new.")
                return ()
            case _:
                assert_never(command)

    def days(self) -> tuple[events_identity.Day, ...]:
        """Every day with a contribution, oldest first, of all models together."""
        return self._days_and_newest()[0]

    def _days(self) -> events_identity.DailyTotals:
        """Add up the days. That may take a while, and does not block rounds that are stored meanwhile."""
        days, newest = self._days_and_newest()
        met = [standing for standing in reputation_file.read(self._home.reputation) or () if standing.taken or standing.received]
        return events_identity.DailyTotals(
            days=days[-366:],
            all=_sum_days(days),
            used_by=sum(standing.taken > 0 for standing in met),
            groups_pulled=sum(standing.taken for standing in met),
            met=len(met),
            newest=newest,
            utc_offset=time.localtime().tm_gmtoff,
        )

    def _days_and_newest(self) -> tuple[tuple[events_identity.Day, ...], tuple[int, float] | None]:
        """The days of all models of this home, and the newest round of the current model that they include."""
        present = self._home.model.history
        own, newest = read_days(present)
        others = (place.model.history for place in trained_models(self._home))
        return _merge_days([own, *(read_days(history)[0] for history in others if history != present)]), newest

    def _read(self, path: str, opened: backup.OpenedBackup) -> events_identity.BackupRead:
        mine = keys.load_or_create(self._home.identity).peer_id
        node, name = text_of(opened.peer_id), keys.name_of(opened.peer_id)
        return events_identity.BackupRead(path=path, node=node, name=name, mine=opened.peer_id == mine)

    async def _restore(self, command: commands.RestoreIdentity) -> tuple[events_identity.PersonEvent, ...]:
        opened = await asyncio.to_thread(backup.read, _path(command.path), command.passphrase)
        read = self._read(command.path, opened)
        if not read.mine:
            backup.restore_key_file(self._home.identity, opened.content)
            self._restart(f"Becoming {read.name}.")
        return (read,)


def _path(text: str) -> Path:
    path = Path(os.path.expanduser(text))
    if not path.is_absolute():
        raise IdentityError("The place of a backup is named by its whole path.")
    return path


def _merge_days(parts: Sequence[tuple[events_identity.Day, ...]]) -> tuple[events_identity.Day, ...]:
    """Days with the same date added up, oldest first."""
    by_date: dict[str, list[events_identity.Day]] = {}
    for day in (day for part in parts for day in part):
        by_date.setdefault(day.date, []).append(day)
    return tuple(_sum_days(tuple(by_date[date])) for date in sorted(by_date))


def _sum_days(days: tuple[events_identity.Day, ...]) -> events_identity.Day:
    if not days:
        return EMPTY_DAY
    return events_identity.Day(
        date=days[0].date,
        rounds=sum(day.rounds for day in days),
        answers=sum(day.answers for day in days),
        right=sum(day.right for day in days),
        learned=sum(day.learned for day in days),
        seconds=sum(day.seconds for day in days),
    )
