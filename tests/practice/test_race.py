"""Test the race: two real trials with the same random numbers, which report events and end with the window."""

import subprocess
import sys

import psutil
import pytest
import torch

from waggle.cli.main import main
from waggle.core.errors import LabError, MemoryShort
from waggle.practice import race as practice_race
from waggle.practice.race import lower_priority, race
from waggle.protocol.events_race import Examined, FirstSolved, RaceBegan, RaceFailed, RoundRaced, read


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_a_race_tells_every_round_and_ends_with_an_exam_of_both(verifier):
    began, *race_events = race(verifier, seed=1, nodes=2, rounds=2, exam=1)
    assert isinstance(began, RaceBegan)
    assert began.racers == 2
    assert len(began.specialties) == 9
    assert [event.round for event in race_events if isinstance(event, RoundRaced)] == [1, 2]
    assert isinstance(race_events[-1], Examined)
    assert race_events[-1].total == 2 * 9
    first = [event for event in race_events if isinstance(event, FirstSolved) and event.round == 1]
    assert {(event.racer, event.specialty) for event in first if event.lane == "alone"} == {
        (event.racer, event.specialty) for event in first if event.lane == "sharing"
    }, "both begin with the same luck"
    assert all(event.learned_from is None for event in race_events if isinstance(event, FirstSolved) and event.lane == "alone")


def test_whoever_has_seen_enough_ends_the_race_quietly():
    command = [sys.executable, "-m", "waggle", "race", "--nodes", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout
        assert isinstance(read(child.stdout.readline().strip()), RaceBegan)
        child.stdout.close()
        assert child.wait(120) == 0
        assert child.stderr
        assert b"Traceback" not in child.stderr.read()


def test_whoever_stops_watching_ends_the_race():
    command = [sys.executable, "-m", "waggle", "race", "--stdio", "--nodes", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        assert isinstance(read(child.stdout.readline().strip()), RaceBegan)
        child.stdin.close()
        assert child.wait(60) == 0


def test_a_race_without_memory_says_so_to_whoever_watches(monkeypatch):
    def race_without_memory(*_arguments, **_options):
        yield RaceBegan(rounds=1, racers=1, specialties=())
        raise MemoryShort("The model ran out of memory.", "Lower learning.group_size.")

    lines = []
    monkeypatch.setattr(practice_race, "_claim_stdout", lambda: lines.append)
    monkeypatch.setattr(practice_race, "lower_priority", lambda: None)
    monkeypatch.setattr(practice_race, "race", race_without_memory)
    with pytest.raises(LabError) as caught:
        practice_race.run()
    failed = read(lines[-1].strip())
    assert failed == RaceFailed(title=caught.value.title, advice=caught.value.advice)
    assert failed.title == "There is too little free memory for the race."


@pytest.mark.parametrize("refused", [psutil.AccessDenied, psutil.NoSuchProcess])
def test_a_race_goes_on_where_it_stands_further_back_already_or_a_child_has_ended(monkeypatch, refused):
    def nice(process, _level):
        raise refused(process.pid)

    monkeypatch.setattr(psutil.Process, "nice", nice)
    lower_priority()


@pytest.mark.parametrize("options", [["--nodes", "0"], ["--rounds", "0"]])
def test_a_race_of_nobody_or_of_no_round_is_refused_in_words(options, capsys):
    assert main(["race", *options]) == 1
    assert "A race has at least one node and one round." in capsys.readouterr().err
