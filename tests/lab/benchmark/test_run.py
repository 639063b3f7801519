"""Test that every side plays the same round, that the limits are counted correctly, and what figures the runs become."""

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from waggle.core import paths
from waggle.models.shared.configuration import model_config
from waggle_lab import __main__ as laboratory
from waggle_lab.benchmark import cells, report, run, waggle
from waggle_lab.benchmark import limits as bench_limits
from waggle_lab.benchmark.cells import CELLS, STARTER, Cell
from waggle_lab.benchmark.clock import Phases, with_update
from waggle_lab.benchmark.limits import Limits, Need

SMALL = Cell(("waggle",), STARTER, questions=2, group_size=4, prompt=12, longest=8, skewed=True)


def line(cell: str, side: str, seconds: float, **more: object) -> str:
    round_ = {"sample": 0.4 * seconds, "decode": 0.3 * seconds, "update": 0.6 * seconds, "round": seconds}
    fields = {"cell": cell, "side": side, "commit": "c", "machine": "m", "rounds": [round_], "gib": 1.5, "moved": 1e-6}
    return json.dumps(fields | {"more": {"pause_ms": 250.0}, "versions": {"torch": "2"}} | more) + "\n"


def test_a_round_is_split_into_phases_and_its_optimiser_really_trains():
    torch.set_num_threads(1)
    measurement = waggle.measure(replace(SMALL, rounds=2), paths.starter())
    assert len(measurement.rounds) == 2
    for seconds in measurement.rounds:
        assert seconds.keys() == {"ready", "prefill", "decode", "sample", "update", "system", "optimiser", "round"}
        assert 0.0 <= seconds["system"] <= seconds["update"] + 0.01, "the system counts in hundredths"
        parts = seconds["sample"] + seconds["update"] + seconds["optimiser"]
        assert 0.0 < parts <= seconds["round"]
    assert measurement.moved > 1e-7
    assert measurement.more["pause_ms"] > 0.0


def test_what_other_trainers_do_between_their_phases_counts_as_the_update():
    phases = Phases()
    with phases.of("round"), phases.of("sample"):
        pass
    seconds = with_update(phases.take())
    assert seconds["update"] == pytest.approx(seconds["round"] - seconds["sample"])
    assert phases.take() == {}


def test_a_phase_takes_what_its_clock_says():
    phases = Phases(iter((1.0, 3.5, 4.0, 4.25)).__next__)
    work = phases.timed("update", lambda: "done")
    assert (work(), work()) == ("done", "done")
    assert phases.take() == {"update": 2.75}


def test_skewed_answers_have_the_lengths_all_sides_are_given_and_half_of_the_groups_teach():
    lengths = cells.lengths(SMALL)
    assert all(1 <= length <= SMALL.longest for row in lengths for length in row)
    assert len({length for row in lengths for length in row}) > 2
    answers = [tuple(np.full(length, 5, np.int32) for length in row) for row in lengths]
    batches = waggle.lessons(SMALL, [np.arange(3, dtype=np.int32)] * 2, answers)
    assert [[len(ids) for ids in batch.completions] for batch in batches] == lengths[:1]
    even = replace(SMALL, skewed=False)
    assert {length for row in cells.lengths(even) for length in row} == {even.longest}


def test_what_a_phase_needs_is_counted_from_the_shape():
    model = model_config.read(paths.starter())
    cell = replace(SMALL, skewed=False)
    needs = bench_limits.needs(cell, model)
    head = model.vocab_size * model.hidden_size
    layers = bench_limits.weights_of(model) - head
    steps = cell.completions * (cell.longest - 1)  # the first token of each comes from its prompt
    assert needs["decode"].operations > 2 * steps * (layers + head)
    assert needs["decode"].operations == pytest.approx(2 * steps * (layers + head), rel=0.05)
    assert needs["update"].operations > 3 * needs["prefill"].operations
    assert needs["optimiser"] == Need(0.0, 32 * (layers + head))
    assert Need(10.0, 30.0).seconds(Limits(speed=10.0, bandwidth=10.0)) == 3.0


def test_ratios_are_those_of_medians_and_only_what_was_measured_is_a_figure(tmp_path):
    book = tmp_path / "runs.jsonl"
    limits = {"limits": {"speed": 1e11, "bandwidth": 3e10}}
    lines = [line("tiny", "waggle", seconds, **limits) for seconds in (1.0, 2.0, 9.0)]
    book.write_text(
        "".join([*lines, line("tiny", "trl", 5.0), line("equal", "waggle", 1.0, more={"loss": 1e-6, "gradient": 2e-6})])
    )
    runs = report.read(book)
    figures = report.figures(runs)
    assert figures["tiny_vs_trl_fp32"] == 2.5
    assert "tiny_vs_genrl" not in figures
    assert figures["trl_gradient_relative_error"] == 2e-6
    assert figures["limits"] == {"tiny": {"gflop_per_s": 100.0, "gb_per_s": 30.0}}
    assert figures["seconds"]["tiny"]["waggle"]["moved"] == 1e-6
    table = report.table(runs)
    assert "starter, 9 x 8 answers of 64 tokens after 100; full, float32, cpu" in table
    assert "waggle is 2.50 times as fast as trl" in table


def test_sides_take_turns_and_what_was_measured_is_not_measured_again(tmp_path):
    book = tmp_path / "runs.jsonl"
    book.write_text(line("tiny", "waggle", 1.0))
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    arguments = parser.parse_args(["--cells", "tiny,memory-lora", "--sides", "waggle", "--repetitions", "2"])
    missing = []
    for cell, side in run._missing(arguments, book):
        missing.append((cell, side))
        with book.open("a") as file:
            file.write(line(cell, side, 1.0))
    assert missing == [("memory-lora", "waggle"), ("tiny", "waggle")]


def test_a_shape_says_what_saves_memory():
    assert CELLS["memory-full"].description.endswith("full, float32, activations computed again, cpu")


def test_an_unknown_cell_or_side_is_explained(tmp_path, capsys):
    assert laboratory.main(["bench", "--cells", "huge", "--out", str(tmp_path)]) == 1
    assert "There is no cell huge" in capsys.readouterr().err
    assert laboratory.main(["bench", "--sides", "waggle,nobody", "--out", str(tmp_path)]) == 1
    assert "There is no side nobody" in capsys.readouterr().err


def test_every_figure_is_of_a_cell_that_there_is():
    named = {cell for ours, theirs, _ in report.RATIOS.values() for cell in (ours, theirs)}
    named |= set(report.PEAKS.values()) | {cell for cell, _ in report.REACHED.values()}
    assert named <= CELLS.keys()


def test_loss_and_gradients_equal_those_of_trl():
    pytest.importorskip("trl", reason="comes with `dev.py bench`")
    from waggle_lab.benchmark import equal

    differences = equal.measure(paths.starter())
    assert differences["gradient"] < 1e-5
    assert differences["loss"] < 1e-5
    assert differences["clipped"] > 0.0, "the clip must count"


def test_cards_and_all_versions_that_were_measured_with_are_named(tmp_path):
    book = tmp_path / "runs.jsonl"
    here, there = line("cuda", "waggle", 2.0, card="A card", versions={"torch": "1"}), line("cuda", "trl", 20.0, card="A card")
    book.write_text(here + there + line("tiny", "trl", 3.0))
    figures = report.figures(report.read(book))
    assert (figures["cards"], figures["versions"]) == (["A card"], {"torch": "1, 2"})
    assert figures["half_b_cuda_vs_trl"] == 10.0
