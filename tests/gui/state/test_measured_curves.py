"""Curves that were measured elsewhere: shown beside the same model on the same questions only, and written from the runs."""

import pytest
from msgspec.structs import replace

from gui.recorded import ready
from measured import measured_curves as script
from waggle.gui.state.measured_curves import all_measured, clipped, first_round, measured_curves
from waggle.practice.results import Run
from waggle.protocol.events import HeldOutScore, Ready, SpecialtyInfo
from waggle.protocol.state import State
from waggle.tasks.charter import Charter
from waggle.tasks.shipped_swarms import first_steps, first_swarm

(SMOLLM2,) = all_measured()


def specialties_of(charter: Charter) -> tuple[SpecialtyInfo, ...]:
    return tuple(SpecialtyInfo(dataset=each.dataset, title=each.title, levels=each.levels) for each in charter.specialties)


STEPS = specialties_of(first_steps())
MEASURED = replace(ready(), model="SmolLM2-135M-Instruct 134.5M", parameters=134_515_008, specialties=STEPS)


def test_the_same_model_on_the_same_questions_has_curves() -> None:
    assert measured_curves(State(ready=MEASURED)) == SMOLLM2
    assert measured_curves(State(ready=replace(MEASURED, specialties=STEPS[::-1]))) == SMOLLM2, "in any order"


@pytest.mark.parametrize("stored", [".Q4_1", "-Q4_K_M", "-IQ2_XS", "-bf16", ".F32", "_q8_0"])
def test_a_file_that_stores_the_same_model_in_another_precision_has_them_too(stored: str) -> None:
    assert measured_curves(State(ready=replace(MEASURED, model=f"smollm2-135M-Instruct{stored} 134.5M"))) == SMOLLM2


@pytest.mark.parametrize(
    "other",
    [
        replace(MEASURED, model="Starter 0.8M"),
        replace(MEASURED, model="SmolLM2-135M-Instruct-medical 134.5M"),
        replace(MEASURED, model="SmolLM2-135M-Instruct-Q4_1-medical 134.5M"),
        replace(MEASURED, model="My-SmolLM2-135M-Instruct 134.5M"),
        replace(MEASURED, model="135M-Instruct 134.5M"),
        replace(MEASURED, model=""),
        replace(MEASURED, parameters=361_821_120),
        replace(MEASURED, specialties=specialties_of(first_swarm())),
        replace(MEASURED, specialties=STEPS[1:]),
        replace(MEASURED, specialties=(*STEPS, SpecialtyInfo(dataset="bf", title="Tiny programs", levels=("easy",)))),
        replace(MEASURED, specialties=(replace(STEPS[0], levels=("easy", "hard")), *STEPS[1:])),
        replace(MEASURED, specialties=tuple(replace(each, levels=()) for each in STEPS)),  # of an older engine
    ],
)
def test_another_model_and_other_questions_have_none(other: Ready) -> None:
    assert measured_curves(State(ready=other)) is None
    assert measured_curves(State()) is None


@pytest.mark.parametrize(
    ("last", "x", "y"),
    [
        (0, [0.0], [0.1]),
        (5, [0.0, 5.0], [0.1, 0.2]),
        (10, [0.0, 10.0], [0.1, 0.3]),
        (15, [0.0, 10.0, 15.0], [0.1, 0.3, 0.4]),
        (99, [0.0, 10.0, 20.0], [0.1, 0.3, 0.5]),
        (-1, [], []),
    ],
)
def test_a_curve_ends_where_the_axis_does(last: float, x: list[float], y: list[float]) -> None:
    positions, shares = clipped((0, 10, 20), (0.1, 0.3, 0.5), last)
    assert positions == x
    assert shares == pytest.approx(y)


def score(number: int, *, early: bool = False) -> HeldOutScore:
    return HeldOutScore(round=number, at=1.0, right=1, total=20 if early else 80, early=early)


@pytest.mark.parametrize(
    ("exams", "begins"),
    [
        ([[score(0)]], 0),
        ([[score(0, early=True)], [score(10), score(20)]], 0),
        ([[score(0, early=True)]], 0),
        ([[score(0), score(10)], [score(15), score(20)]], 15),
        ([[score(0), score(10)], [score(15, early=True)], [score(20)]], 15),
    ],
)
def test_the_curves_begin_where_the_model_came_to_the_swarm(exams: list[list[HeldOutScore]], begins: int) -> None:
    assert first_round(exams) == begins


def test_what_is_shipped_fits_together() -> None:
    assert SMOLLM2.specialties == {each.dataset: frozenset(each.levels) for each in first_steps().specialties}
    assert len(SMOLLM2.rounds) == len(SMOLLM2.alone) == len(SMOLLM2.with_peers)
    assert all(0 <= share <= 1 for share in (*SMOLLM2.alone, *SMOLLM2.with_peers))


RUNS = script.runs_of(script.TABLE.read_bytes().splitlines())


def test_the_curves_are_the_means_of_the_runs() -> None:
    assert (script.paths.resources() / "measured_curves.json").read_bytes() == script.written(script.content(RUNS))


def test_means_are_over_the_nodes_of_each_swarm_and_then_over_the_swarms() -> None:
    def run(configuration: str, *nodes: tuple[float, float]) -> Run:
        key = replace(RUNS[0].key, configuration=configuration)
        return replace(RUNS[0], key=key, models=("m",) * len(nodes), measured_at=(0, 25), held_out=nodes)

    (content,) = script.content([
        run(script.ALONE, (0.0, 0.2)), run(script.ALONE, (0.1, 0.4)), run(script.ALONE, *([(1.0, 1.0)] * 4)),
        run(script.WITH_PEERS, (0.0, 0.2), (0.1, 0.4), (0.0, 0.2), (0.1, 0.4)), run("4/4:other", (1.0, 1.0)),
    ])  # fmt: skip
    assert (content["alone"], content["runs"]) == ([0.05, 0.3], 2)
    assert (content["with_peers"], content["swarms"], content["rounds"]) == ([0.05, 0.3], 1, [0, 25])
