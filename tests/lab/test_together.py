"""Threads that meet: one batch for all, nobody left waiting."""

import threading

import pytest

from waggle.errors import LabError
from waggle.lab.together import Kind, Together

EARLY, LATE = Kind(0, "early"), Kind(1, "late")


class Recorder:
    """Answers with the request doubled, and remembers which batches it served."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, dict[int, int]]] = []

    def __call__(self, kind, requests):
        self.batches.append((kind.name, dict(requests)))
        return {member: 2 * request for member, request in requests.items()}


def test_everybody_who_asks_for_the_same_is_served_in_one_batch():
    serve = Recorder()
    together = Together(serve)
    results = together.play({member: lambda member=member: together.ask(member, LATE, member) for member in range(5)})
    assert results == {member: 2 * member for member in range(5)}
    assert serve.batches == [("late", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4})]


def test_who_is_behind_catches_up_before_the_others_are_served():
    serve = Recorder()
    together = Together(serve)

    def work(member: int) -> int:
        if member == 1:
            together.ask(member, EARLY, 1)
            together.ask(member, EARLY, 1)
        return together.ask(member, LATE, member)

    together.play({member: lambda member=member: work(member) for member in range(3)})
    assert serve.batches == [("early", {1: 1}), ("early", {1: 1}), ("late", {0: 0, 1: 1, 2: 2})]


def test_one_who_leaves_early_keeps_nobody_waiting():
    serve = Recorder()
    together = Together(serve)
    results = together.play({0: lambda: "gone", 1: lambda: together.ask(1, LATE, 21)})
    assert results == {0: "gone", 1: 42}


def test_different_details_are_different_batches():
    serve = Recorder()
    together = Together(serve)
    together.play({m: lambda m=m: together.ask(m, Kind(0, "sample", (m % 2,)), m) for m in range(4)})
    assert [sorted(batch) for _, batch in serve.batches] == [[0, 2], [1, 3]]


@pytest.mark.timeout(20)
def test_a_failure_reaches_the_caller_and_frees_everybody():
    def fail(kind, requests):
        raise ValueError("broken")

    for serve, failing in ((fail, None), (Recorder(), 1)):
        together = Together(serve)

        def work(member: int, together=together, failing=failing) -> int:
            if member == failing:
                raise ValueError("broken")
            return together.ask(member, LATE, member)

        with pytest.raises((ValueError, LabError), match=r"broken|Another node"):
            together.play({member: lambda member=member: work(member) for member in range(3)})
    assert threading.active_count() < 10
