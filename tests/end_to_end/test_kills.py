"""SIGKILL for the network process, the verifier and a peer: the engine reports it and recovers by itself."""

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

            assert [event for event in engine.all_events if isinstance(event, events.EngineFailed)] == []
            assert engine.end() == 0, "it did not run until the end"


def test_a_pause_outlives_a_kill_of_the_engine(tmp_path):
    alone = ("swarm.solo=true",)
    with running(Engine(tmp_path, *alone)) as engine:
        engine.wait_round(0, SOON)
        engine.command(commands.Pause)
        engine.kill()
    with running(Engine(tmp_path, *alone)) as engine:
        engine.wait(events.PhaseChanged, SOON, lambda event: event.phase == "paused")
        assert [event for event in engine.all_events if isinstance(event, events.QuestionsDrawn)] == []
        engine.command(commands.Resume)
        plays_on(engine, len(engine.lines))


def kill_the_network_process(engine: Engine, mine: str, peer: Engine, theirs: str) -> None:
    start = len(peer.lines)
    killed = kill_child(engine, "p2pd")
    restart = engine.wait(events.PartRestarted, SOON, lambda event: event.part == "network", killed)
    assert restart.reason == "the network process ended (-9)"
    back = len(engine.lines)
    plays_on(engine, killed)
    engine.wait(events.ReachChanged, SOON, lambda event: event.reach == "connected", killed)
    hear_from(engine, theirs, back)
    hear_from(peer, mine, start)


def kill_the_verifier(engine: Engine, theirs: str) -> None:
    killed = kill_child(engine, verifier_process.__name__)
    restart = engine.wait(events.PartRestarted, SOON, lambda event: event.part == "verifier", killed)
    assert restart.reason == "it ended with signal 9"
    back = len(engine.lines)
    plays_on(engine, back)
    hear_from(engine, theirs, back)


def kill_the_peer(engine: Engine, peer: Engine, theirs: str) -> int:
    """Kill the peer; returns how many groups the engine had received from it."""
    known = [event.peer for event in engine.all_events if isinstance(event, events.PeerChanged) and event.peer.id == theirs][-1]
    killed = len(engine.lines)
    peer.kill()
    engine.wait(events.PeerChanged, SOON, lambda event: event.peer.id == theirs and event.peer.connection == "gone", killed)
    plays_on(engine, len(engine.lines))
    return known.received


def meet_again(engine: Engine, mine: str, returned: Engine, theirs: str, received: int) -> None:
    """The peer returns with its identity, groups flow both ways, and its reputation is kept."""
    back = len(engine.lines)
    assert returned.wait(events.Ready, SOON).node == theirs
    hear_from(engine, theirs, back)
    hear_from(returned, mine)
    met = engine.wait(events.PeerChanged, SOON, lambda event: event.peer.id == theirs and event.peer.connection == "lan", back)
    assert met.peer.received >= received > 0
    assert returned.end() == 0


def kill_child(engine: Engine, word: str) -> int:
    """SIGKILL the only child whose command line contains `word`; returns the number of the engine's lines before that."""
    child = child_named(engine.process.pid, word)
    place = len(engine.lines)
    child.send_signal(signal.SIGKILL)
    return place


def plays_on(engine: Engine, start: int) -> None:
    """Wait until two rounds end after `start`: the first of them may have begun before it."""
    played = engine.wait(events.RoundCompleted, SOON, start=start)
    engine.wait(events.RoundCompleted, SOON, lambda event: event.summary.round > played.summary.round, start)


def hear_from(engine: Engine, name: str, start: int = 0) -> None:
    """Wait for groups of this peer."""
    engine.wait(events.PeerGroupsArrived, SOON, lambda event: event.origin == name, start)
