"""First light: a seed and two engines on loopback, with real hivemind and the starter, learn from each other; one is killed."""

import time

from end_to_end.programs import Engine, Seed, running
from waggle.protocol import commands, events

ROUNDS = 200
KILLED_AT = 60
LOOPBACK = "swarm.host=127.0.0.1"
SOME_LOOKS = 6.0  # seconds in which an engine with a tempo of one second looks for records several times


def solved(rounds: list[events.RoundSummary]) -> float:
    """The share of local completions with reward >= 0.99 over some rounds."""
    return sum(round_.solved * round_.completions for round_ in rounds) / sum(round_.completions for round_ in rounds)


def by_number(*engines: Engine) -> list[events.RoundSummary]:
    """The rounds of one node over all its runs; of a round that was played again after a kill, the last counts."""
    latest = {round_.round: round_ for engine in engines for round_ in engine.rounds()}
    return [latest[number] for number in sorted(latest)]


def lessons_from(engine: Engine, origin: bytes) -> int:
    """How many groups of this origin the engine trained on."""
    return sum(
        lesson.key.startswith(origin.hex())
        for event in engine.all_events
        if isinstance(event, events.PolicyUpdated)
        for lesson in event.lessons
    )


def ahas(engine: Engine) -> list[events.Aha]:
    """The first successes that an engine reported."""
    return [event.aha for event in engine.all_events if isinstance(event, events.AhaHappened)]


def tail_of(engine: Engine) -> bytes:
    """The part of a peer id with which the keys of its groups begin."""
    drawn = engine.wait(events.QuestionsDrawn)
    return bytes.fromhex(drawn.groups[0].key.partition("/")[0])


def test_two_nodes_learn_from_each_other_and_a_killed_one_goes_on_where_it_was(tmp_path, figures):
    with running(Seed(tmp_path / "seed")) as seed:
        settings = (LOOPBACK, f'swarm.seeds=["{seed.address()}"]')
        with running(Engine(tmp_path / "a", *settings)) as first, running(Engine(tmp_path / "b", *settings)) as second:
            names = [engine.wait(events.Ready).node for engine in (first, second)]
            first_tail, second_tail = tail_of(first), tail_of(second)

            first.wait_round(KILLED_AT, 300)
            second_before = len(second.rounds())
            first.kill()
            saved = max(event.round for event in first.all_events if isinstance(event, events.CheckpointSaved))

            with running(Engine(tmp_path / "a", *settings)) as restarted:
                ready = restarted.wait(events.Ready)
                assert ready.node == names[0]
                assert ready.round >= saved  # the last checkpoint may have been written without being reported
                restarted.wait(
                    events.PhaseChanged, fits=lambda event: event.phase == "contributing"
                )  # otherwise there is nothing to pause
                assert len(second.rounds()) > second_before, "the other engine stood still"
                pause_ms = [pause_and_resume(restarted, second) for _ in range(5)]
                for engine in (restarted, second):
                    engine.wait_round(ROUNDS - 1, 600)
                judges_nothing_while_paused(restarted, second)

                learned = [
                    lessons_from(first, second_tail) + lessons_from(restarted, second_tail),
                    lessons_from(second, first_tail),
                ]
                nodes = [by_number(first, restarted), by_number(second)]
                successes = [ahas(first) + ahas(restarted), ahas(second)]
                start = len(restarted.lines)
                restarted.command(commands.QueryHistory)
                history = restarted.wait(events.TrainingHistory, start=start).rounds
                assert restarted.end() == 0
                assert second.end() == 0
            assert isinstance(restarted.all_events[-1], events.EngineStopped)

    for mine, other in zip(successes, reversed(names), strict=True):
        assert len({aha.specialty for aha in mine}) == len(mine) >= 3, "each first success is reported once, despite the kill"
        assert {aha.origin for aha in mine} <= {"", other}
    figures["external_groups_used_min"] = min(learned)
    figures["solved_first20_max"] = max(solved(rounds[:20]) for rounds in nodes)
    figures["solved_last20_min"] = min(solved(rounds[ROUNDS - 20 : ROUNDS]) for rounds in nodes)
    figures["rounds_lost_on_kill"] = max(0, saved - ready.round)
    figures["pause_ms_worst"] = max(pause_ms)
    assert min(learned) >= 50
    assert max(solved(rounds[:10]) for rounds in nodes) <= 0.03, "after that, it is luck how early a node takes off"
    assert figures["solved_last20_min"] >= 0.05
    assert [round_.round for round_ in history] == list(range(len(history))), "a round is missing"
    assert len(history) >= ROUNDS


def pause_and_resume(engine: Engine, other: Engine) -> float:
    """Pause, check that this node learns nothing while the other continues, and resume; returns the ms until the pause began."""
    mark, rounds_before = len(engine.lines), len(other.rounds())
    began = time.monotonic()
    assert isinstance(engine.command(commands.Pause), events.CommandDone)
    timed = engine.timed()
    paused = next(
        i for i in range(mark, len(timed)) if isinstance(timed[i][1], events.PhaseChanged) and timed[i][1].phase == "paused"
    )
    at, event = timed[paused]
    other.wait_round(other.rounds()[-1].round + 3, 60)
    assert len(other.rounds()) > rounds_before
    after = [
        event for event in engine.all_events[paused + 1 :] if isinstance(event, events.PolicyUpdated | events.RoundCompleted)
    ]
    assert after == [], "it learned while it was paused"
    assert isinstance(engine.command(commands.Resume), events.CommandDone)
    finished = engine.wait(events.RoundCompleted, start=paused + 1)
    assert finished.summary.round == event.round
    return (at - began) * 1000


def judges_nothing_while_paused(engine: Engine, other: Engine) -> None:
    """Pause, check that no records are judged although the other node makes several a second, and resume."""
    start = len(engine.lines)
    assert isinstance(engine.command(commands.Pause), events.CommandDone)
    paused = engine.wait(events.PhaseChanged, start=start, fits=lambda event: event.phase == "paused")
    other.wait(events.RoundCompleted, fits=lambda event: event.at >= paused.at + SOME_LOOKS)
    came = [event for event in engine.all_events[start:] if isinstance(event, events.PeerGroupsArrived) and event.at >= paused.at]
    assert len(came) <= 1, "it judged more than the current record"
    start = len(engine.lines)
    assert isinstance(engine.command(commands.Resume), events.CommandDone)
    engine.wait(events.PeerGroupsArrived, start=start)
