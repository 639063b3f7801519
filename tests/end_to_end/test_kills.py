"""kill -9 of the network process, of the verifier and of a peer: the engine says so and goes on, and nobody starts it again."""

import signal

from end_to_end.programs import GENTLE, Engine, Seed, child_named, running
from waggle.protocol import commands, events
from waggle.tasks.sandbox import verifier_process

SOON = 60.0


def test_an_engine_outlives_its_network_process_its_verifier_and_its_peer(tmp_path):
    with running(Seed(tmp_path / "seed")) as seed:
        settings = ("swarm.host=127.0.0.1", f'swarm.seeds=["{seed.address()}"]', GENTLE)
        with running(Engine(tmp_path / "a", *settings)) as engine, running(Engine(tmp_path / "b", *settings)) as peer:
            mine, theirs = (each.wait(events.Ready).node for each in (engine, peer))
            hear_from(engine, theirs)
            hear_from(peer, mine)

            kill_the_network_process(engine, mine, peer, theirs)
            kill_the_verifier(engine, theirs)
            received = kill_the_peer(engine, peer, theirs)
            with running(Engine(tmp_path / "b", *settings)) as returned:
                meet_again(engine, mine, returned, theirs, received)

            assert [one for one in engine.told if isinstance(one, events.EngineFailed)] == []
            assert engine.end() == 0, "it did not live until the end"


def test_a_pause_outlives_a_kill_of_the_engine(tmp_path):
    alone = ("swarm.solo=true",)
    with running(Engine(tmp_path, *alone)) as engine:
        engine.wait_round(0, SOON)
        engine.command(commands.Pause)
        engine.kill()
    with running(Engine(tmp_path, *alone)) as engine:
        engine.wait(events.PhaseChanged, SOON, lambda event: event.phase == "paused")
        assert [event for event in engine.told if isinstance(event, events.QuestionsDrawn)] == []
        engine.command(commands.Resume)
        plays_on(engine, len(engine.lines))


def kill_the_network_process(engine: Engine, mine: str, peer: Engine, theirs: str) -> None:
    heard = len(peer.lines)
    killed = kill_child(engine, "p2pd")
    said = engine.wait(events.PartRestarted, SOON, lambda event: event.part == "network", killed)
    assert said.reason == "the network process ended (-9)"
    back = len(engine.lines)
    plays_on(engine, killed)
    engine.wait(events.ReachChanged, SOON, lambda event: event.reach == "connected", killed)
    hear_from(engine, theirs, back)
    hear_from(peer, mine, heard)


def kill_the_verifier(engine: Engine, theirs: str) -> None:
    killed = kill_child(engine, verifier_process.__name__)
    said = engine.wait(events.PartRestarted, SOON, lambda event: event.part == "verifier", killed)
    assert said.reason == "it ended with signal 9"
    back = len(engine.lines)
    plays_on(engine, back)
    hear_from(engine, theirs, back)


def kill_the_peer(engine: Engine, peer: Engine, theirs: str) -> int:
    """How many groups the engine had received from it before."""
    known = [one.peer for one in engine.told if isinstance(one, events.PeerChanged) and one.peer.id == theirs][-1]
    killed = len(engine.lines)
    peer.kill()
    engine.wait(events.PeerChanged, SOON, lambda event: event.peer.id == theirs and event.peer.connection == "gone", killed)
    plays_on(engine, len(engine.lines))
    return known.received


def meet_again(engine: Engine, mine: str, returned: Engine, theirs: str, received: int) -> None:
    """The peer comes back as itself, groups flow both ways, and its standing goes on from where it was."""
    back = len(engine.lines)
    assert returned.wait(events.Ready, SOON).node == theirs
    hear_from(engine, theirs, back)
    hear_from(returned, mine)
    met = engine.wait(events.PeerChanged, SOON, lambda event: event.peer.id == theirs and event.peer.connection == "lan", back)
    assert met.peer.received >= received > 0
    assert returned.end() == 0


def kill_child(engine: Engine, word: str) -> int:
    """kill -9 of the one child whose command line names `word`; gives the place in the engine's lines where that was."""
    child = child_named(engine.process.pid, word)
    place = len(engine.lines)
    child.send_signal(signal.SIGKILL)
    return place


def plays_on(engine: Engine, start: int) -> None:
    """Two rounds end after `start`: the first of them may have begun before it."""
    played = engine.wait(events.RoundCompleted, SOON, start=start)
    engine.wait(events.RoundCompleted, SOON, lambda event: event.summary.round > played.summary.round, start)


def hear_from(engine: Engine, name: str, start: int = 0) -> None:
    """Groups of this peer come in."""
    engine.wait(events.PeerGroupsArrived, SOON, lambda event: event.origin == name, start)
