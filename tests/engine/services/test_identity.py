"""Test the totals by day, and backing up, checking, restoring and renewing an identity."""

import asyncio
import time

import pytest
from msgspec.structs import replace

from network.loopback import fresh_identity
from waggle.core import paths
from waggle.core.errors import IdentityError
from waggle.engine.services.identity import IdentityService
from waggle.engine.storage.history import History
from waggle.network.identity import keys
from waggle.network.limits import reputation_file
from waggle.network.limits.reputation import PeerReputation
from waggle.protocol import commands, events

WORDS = "correct horse battery"
PLAYED = events.RoundSummary(round=1, at=0.0, reward=0.5, solved=0.25, seconds=2.0, completions=64, external=3)


@pytest.fixture
def home(tmp_path):
    return paths.Home(tmp_path / "home").prepare()


@pytest.fixture
def history(home):
    new_history = History(home.model.history)
    yield new_history
    new_history.close()


@pytest.fixture
def reasons():
    """The reasons for which the engine was asked to restart."""
    return []


@pytest.fixture
def person(home, history, reasons):
    return IdentityService(home, reasons.append)


async def test_days_are_those_of_this_computers_calendar(person, history):
    noon = time.mktime((2026, 3, 9, 12, 0, 0, 0, 0, -1))
    for number, at in enumerate((noon, noon + 60, noon + 86_400)):
        history.save_round(replace(PLAYED, round=number, at=at))
    (days,) = await person.obey(commands.QueryDays(id="1"))
    assert [(day.date, day.rounds, day.answers, day.right) for day in days.days] == [
        ("2026-03-09", 2, 128, 32),
        ("2026-03-10", 1, 64, 16),
    ]
    assert (days.all.answers, days.all.learned, days.all.date) == (192, 9, "2026-03-09")


async def test_a_damaged_row_costs_no_more_than_itself(person, history):
    history.save_round(replace(PLAYED, at=1e9))
    with history._database as database:
        database.execute("insert into rounds values (7, x'ff00')")
    (days,) = await person.obey(commands.QueryDays(id="1"))
    assert days.all.rounds == 1


async def test_histories_of_other_models_are_only_looked_at(person, history, home):
    history.save_round(replace(PLAYED, at=1e9))
    (home.root / "models" / "whole").mkdir(parents=True)
    other = History(home.root / "models" / "whole" / "history.sqlite")
    other.save_round(replace(PLAYED, at=1e9))  # and its engine was killed: the round is in SQLite's own journal still
    damaged = home.root / "models" / "damaged" / "history.sqlite"
    damaged.parent.mkdir()
    damaged.write_bytes(b"this is no database" * 100)
    (days,) = await person.obey(commands.QueryDays(id="1"))
    assert days.all.rounds == 2
    assert damaged.read_bytes().startswith(b"this is no database"), "whoever goes on with it is to hear that it is damaged"
    assert [path.name for path in damaged.parent.iterdir()] == ["history.sqlite"]


async def test_days_are_counted_while_the_engine_goes_on(person, history, home):
    """The engine itself ends the lock for which the count waits."""
    history.save_round(replace(PLAYED, round=3, at=1e9))
    (home.root / "models" / "other").mkdir(parents=True)
    other = History(home.root / "models" / "other" / "history.sqlite")
    other.save_round(replace(PLAYED, round=9, at=1e9))
    other._database.execute("pragma journal_mode = delete")  # where a reader waits for a writer
    other._database.execute("begin exclusive")
    counting = asyncio.create_task(person.obey(commands.QueryDays(id="1")))
    await asyncio.sleep(0)
    other._database.rollback()
    (days,) = await counting
    assert (days.all.rounds, days.newest) == (2, (3, 1e9))
    other.close()


async def test_before_the_first_round_there_is_nothing_to_count(person):
    (days,) = await person.obey(commands.QueryDays(id="1"))
    assert (days.days, days.all.answers, days.used_by) == ((), 0, 0)


async def test_peers_that_took_something_are_counted_from_what_is_remembered(person, home, tmp_path):
    counts = ((0, 0), (0, 7), (5, 0), (10, 2))  # taken from here, received here: the first is a seed
    peers = [(fresh_identity(tmp_path, name).peer_id, *count) for name, count in zip("abcd", counts, strict=True)]
    known = [PeerReputation(id=peer, name="", taken=used, received=received) for peer, used, received in peers]
    reputation_file.write(home.reputation, known)
    (days,) = await person.obey(commands.QueryDays(id="1"))
    assert (days.used_by, days.groups_pulled, days.met) == (2, 15, 3)


async def test_an_identity_moves_from_one_home_to_another(person, home, tmp_path, reasons):
    mine = keys.load_or_create(home.identity).peer_id
    path = str(tmp_path / "backup.txt")
    await person.obey(commands.BackUpIdentity(id="1", path=path, passphrase=WORDS))
    (read,) = await person.obey(commands.CheckBackup(id="2", path=path, passphrase=WORDS))
    assert (read.mine, read.name) == (True, keys.name_of(mine))
    assert await person.obey(commands.RestoreIdentity(id="3", path=path, passphrase=WORDS)) == (read,)
    assert reasons == [], "one is that already"

    assert await person.obey(commands.RenewIdentity(id="4")) == ()
    assert not home.identity.exists()
    assert len(list(home.root.glob("identity.*.key"))) == 1, "the old key is kept"
    await person.obey(commands.RestoreIdentity(id="5", path=path, passphrase=WORDS))
    assert keys.load_or_create(home.identity).peer_id == mine
    assert reasons == ["Becoming somebody new.", f"Becoming {read.name}."]


async def test_a_wrong_passphrase_changes_nothing(person, home, tmp_path, reasons):
    before = keys.load_or_create(home.identity).path.read_bytes()
    path = str(tmp_path / "backup.txt")
    await person.obey(commands.BackUpIdentity(id="1", path=path, passphrase=WORDS))
    with pytest.raises(IdentityError, match="does not open"):
        await person.obey(commands.RestoreIdentity(id="2", path=path, passphrase="wrong horse"))
    assert (home.identity.read_bytes(), reasons) == (before, [])


async def test_a_place_is_named_whole(person):
    with pytest.raises(IdentityError, match="whole path"):
        await person.obey(commands.BackUpIdentity(id="1", path="backup.txt", passphrase=WORDS))
