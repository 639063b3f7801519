"""A member of a private swarm whose files are lost trains in no other swarm before a person says so."""

import itertools
import signal
from pathlib import Path

import pytest

from end_to_end.programs import USUAL, Engine, Program, running
from waggle.cli import main
from waggle.core import paths
from waggle.engine.services.swarms.swarms import ASK_MESSAGE
from waggle.network import joined_swarms
from waggle.network.identity import membership
from waggle.network.joined_swarms import JoinedSwarm, JoinedSwarms
from waggle.protocol import commands, events
from waggle.protocol.events_swarms import KnownSwarms, SwarmUndecided
from waggle.tasks import charter as charters
from waggle.tasks.charter import Charter
from waggle.tasks.shipped_swarms import first_swarm

SETTINGS = ("swarm.host=127.0.0.1", "learning.questions=1", "learning.local=1")
KEY = bytes(range(32))
PRIVATE = Charter(
    name="Anna's home",
    specialties=first_swarm().specialties,
    questions_digest=first_swarm().questions_digest,
    admission=membership.public_key_of(KEY),
)
DIGEST = PRIVATE.digest.hex()


@pytest.fixture
def home(tmp_path: Path) -> paths.Home:
    """The home of a member of a private swarm, which was in First light before."""
    own_home = paths.Home(tmp_path / "home").prepare()
    membership.write_key(own_home.swarm(DIGEST).key, KEY)
    (own_home.charters / f"{DIGEST}.json").write_bytes(charters.encode(PRIVATE))
    joined_swarms.write(own_home.swarms, JoinedSwarms(active=DIGEST, before=DIGEST, entries=(JoinedSwarm(charter=DIGEST),)))
    return own_home


def play(home: paths.Home, charter: str = DIGEST) -> None:
    """Play a round in this swarm, without a question."""
    with running(Engine(home.root, *SETTINGS)) as engine:
        assert engine.wait(events.Ready, 120).charter == charter
        engine.wait(events.RoundCompleted, 120)
        assert not questions(engine)
        assert engine.end() == 0


def questions(engine: Engine) -> list[str]:
    return [event.why for event in engine.all_events if isinstance(event, SwarmUndecided)]


def trains(engine: Engine) -> bool:
    return any(isinstance(event, events.Ready | events.RoundCompleted) for event in engine.all_events)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("content", [b"", b'{"active": "', None], ids=["empty", "cut", "gone"])
def test_a_lost_list_is_put_together_again_and_the_engine_asks_until_it_is_answered(home, content, capsys):
    if content is None:
        home.swarms.unlink()
    else:
        home.swarms.write_bytes(content)
    titles = []
    for ends in (Engine.kill, Engine.end):  # the second start knows no more than the first
        with running(Engine(home.root, *SETTINGS)) as engine:
            question = engine.wait(SwarmUndecided, 120)
            assert (question.why, question.known[0]) == ("unknown", f"Anna's home (private): {DIGEST}")
            assert main.main(["ctl", "--home", str(home.root), "status"]) == 0
            printed = capsys.readouterr().out
            assert "Waiting for you: Waggle cannot tell which of your swarms you trained in." in printed
            assert DIGEST in printed
            assert "`waggle swarm join SWARM`" in printed
            titles += [event.title for event in engine.all_events if isinstance(event, events.Warned)]
            ends(engine)
            assert not trains(engine)
    what = "was gone" if content is None else "was damaged"
    assert titles == [f"The list of your swarms {what}. Waggle found your swarms in other files."], "it is said once"
    asides = [path.read_bytes() for path in home.root.glob("swarms.damaged*")]
    assert asides == ([] if content is None else [content])
    with running(Engine(home.root, *SETTINGS)) as engine:
        engine.wait(SwarmUndecided, 120)
        assert main.main(["swarm", "join", "--home", str(home.root), DIGEST, "--yes"]) == 0
        assert "joined Anna's home" in capsys.readouterr().out
        engine.wait(events.RoundCompleted, 120)
        assert engine.end() == 0
    play(home)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", ["key", "json"])
@pytest.mark.parametrize("is_played", [True, False], ids=["played", "fresh"])
def test_without_its_charter_or_key_the_engine_asks_and_goes_on_once_they_are_put_back(home, file, is_played):
    lost = home.charters / f"{DIGEST}.{file}"
    backup = lost.read_bytes()
    lost.unlink() if file == "key" else lost.write_bytes(b"")
    if not is_played:
        known = joined_swarms.read(home.swarms)
        joined_swarms.write(home.swarms, JoinedSwarms(active=DIGEST, before="", entries=known.entries))
    with running(Engine(home.root, *SETTINGS)) as engine:
        question = engine.wait(SwarmUndecided, 120)
        reason = question.reason
        if not is_played:
            (warned,) = [event for event in engine.all_events if isinstance(event, events.Warned)]
            assert warned.advice.endswith(ASK_MESSAGE)
            reason = warned.title
        assert ("its key is not here" if file == "key" else "No seed of this swarm has its charter") in reason
        assert question.why == ("unusable" if is_played else "failed")
        assert not any(DIGEST in name for name in question.known), "it cannot be chosen"
        assert engine.end() == 0
        assert not trains(engine)
    lost.write_bytes(backup)
    if is_played:
        play(home)
        return
    with running(Engine(home.root, *SETTINGS)) as engine:  # it was given up, so a person decides
        engine.wait(SwarmUndecided, 120)
        assert isinstance(engine.command(commands.ChooseSwarm, charter=DIGEST), events.CommandDone)
        assert engine.wait(events.Ready, 120).charter == DIGEST
        assert engine.end() == 0


@pytest.mark.timeout(600)
def test_meanwhile_it_can_train_alone_and_asks_again_when_it_is_alone_no_more(home):
    home.swarm(DIGEST).key.unlink()
    with running(Engine(home.root, *SETTINGS)) as engine:
        engine.wait(SwarmUndecided, 120)
        refused = engine.command(commands.ChooseSwarm, charter=DIGEST)
        assert isinstance(refused, events.CommandRefused)
        assert "its key is not here" in refused.title
        assert isinstance(engine.command(commands.ListSwarms), events.CommandDone)
        assert [swarm.name for swarm in engine.wait(KnownSwarms).swarms] == ["First light", "First steps", "Anna's home"]
        assert isinstance(engine.command(commands.ChangeSettings, values={"swarm.solo": True}), events.CommandDone)
        assert engine.wait(events.Ready, 120).charter == DIGEST, "its questions are here"
        engine.wait(events.RoundCompleted, 120)
        assert engine.state().reach == "solo"
        assert isinstance(engine.command(commands.ChangeSettings, values={"swarm.solo": False}), events.CommandDone)
        assert engine.end() == 0
    with running(Engine(home.root, *SETTINGS)) as engine:
        engine.wait(SwarmUndecided, 120)
        assert isinstance(engine.command(commands.ChooseSwarm, charter=first_swarm().digest.hex()), events.CommandDone)
        assert engine.wait(events.Ready, 120).charter == first_swarm().digest.hex(), "a person said so"
        engine.wait(events.RoundCompleted, 120)
        assert engine.end() == 0
    play(home, first_swarm().digest.hex())


@pytest.mark.timeout(600)
def test_alone_by_choice_a_lost_list_and_charter_stop_nothing_and_open_no_network(home):
    home.swarms.write_bytes(b"")
    (home.charters / f"{DIGEST}.json").write_bytes(b"")
    with running(Engine(home.root, *SETTINGS, "swarm.solo=true")) as engine:
        ready = engine.wait(events.Ready, 120)
        assert ready.charter == first_swarm().digest.hex()
        engine.wait(events.RoundCompleted, 120)
        assert engine.state().reach == "solo"
        assert engine.end() == 0
    assert joined_swarms.read(home.swarms).undecided, "with others, it asks"


@pytest.mark.timeout(600)
def test_a_list_that_is_put_back_while_nothing_runs_is_used_without_a_question(home):
    backup = home.swarms.read_bytes()
    home.swarms.write_bytes(b"")
    with running(Engine(home.root, *SETTINGS)) as engine:
        engine.wait(SwarmUndecided, 120)
        engine.kill()
    home.swarms.write_bytes(backup)
    play(home)


@pytest.mark.timeout(600)
def test_a_member_whose_swarm_is_no_entry_of_the_list_stays_its_member(home):
    joined_swarms.write(home.swarms, JoinedSwarms(active=DIGEST, before=DIGEST))
    play(home)


@pytest.mark.timeout(600)
def test_a_service_that_nobody_answers_says_so_and_can_be_stopped(home):
    home.swarms.write_bytes(b"")
    chosen = itertools.chain.from_iterable(("--set", setting) for setting in (*USUAL, *SETTINGS))
    with running(Program("engine", "--home", str(home.root), *chosen)) as service:
        while main.main(["ctl", "--home", str(home.root), "status"]) or not service_asks(home):
            assert service.process.poll() is None
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0, "else its manager starts it again"
    assert b"which of your swarms you trained in" in service.errors
    assert DIGEST.encode() in service.errors


def service_asks(home: paths.Home) -> bool:
    return any(b"SwarmUndecided" in record.read_bytes() for record in home.events.glob("*.jsonl"))
