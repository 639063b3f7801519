"""Test that a model is trained by the method of its checkpoints as long as memory allows."""

import json

import pytest
from msgspec.structs import replace

from waggle.core.settings import Settings
from waggle.engine.runtime import model_fit
from waggle.engine.runtime.model_fit import fit_model
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared.configuration import model_config
from waggle.models.shared.suggested_models import SuggestedModel, suggested_models
from waggle_lab.starter_model.shapes import SHAPES

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("free", "settled", "method", "fits"),
    [(24, None, "full", True), (24, "full", "full", True), (6, "full", "lean", True), (24, "lean", "lean", True),
     (1, "full", "full", False), (1, "lora", "lora", False)],
)  # fmt: skip
def test_what_was_trained_whole_goes_on_with_less_memory_where_that_is_short(tmp_path, free, settled, method, fits):
    (tmp_path / "config.json").write_text(json.dumps(SHAPES["Qwen2.5-0.5B"]))
    model, machine = model_config.read(tmp_path), DeviceCapacity(free * GB, {"float32": 1e11, "bfloat16": 2e11})
    fit = fit_model(machine, model, Settings(), settled)
    assert (fit.training.method, fit.fits) == (method, fits)
    chosen = Settings(model=replace(Settings().model, training="full"))
    assert fit_model(machine, model, chosen, settled).training.method == "full", "as a person chose"
    if settled == "full" and free == 6:
        assert fit_model(DeviceCapacity(free * GB, machine.speeds, "MLX"), model, Settings(), settled).training.method == "full"


@pytest.mark.parametrize(("settled", "on_a_mac"), [("qlora", "lora"), ("lean", "full")])
def test_what_mlx_cannot_train_continues_there_by_the_nearest_method(tmp_path, settled, on_a_mac):
    (tmp_path / "config.json").write_text(json.dumps(SHAPES["Qwen2.5-0.5B"]))
    model, speeds = model_config.read(tmp_path), {"float32": 1e11, "bfloat16": 2e11}
    methods = [
        fit_model(DeviceCapacity(24 * GB, speeds, backend), model, Settings(), settled).training.method
        for backend in ("MLX", "torch")
    ]
    assert methods == [on_a_mac, settled]


def _judged(number: int, **fit: object) -> tuple[SuggestedModel, model_fit.FitVerdict]:
    usual = {"sentence": "", "fits": True, "roomy": True, "answers_an_hour": 1000}
    return suggested_models()[number], model_fit.FitVerdict(**{**usual, **fit})


def test_the_largest_model_with_room_to_spare_that_is_fast_and_free_is_offered_first():
    gated = next(number for number, model in enumerate(suggested_models()) if model.gated)
    assert model_fit.first_choice([_judged(0), _judged(2), _judged(3, answers_an_hour=100)]) == suggested_models()[2]
    assert (
        model_fit.first_choice([_judged(0), _judged(2, roomy=False), _judged(3, fits=False, roomy=False)])
        == suggested_models()[0]
    )
    assert model_fit.first_choice([_judged(0), _judged(gated)]) == suggested_models()[0]
    assert model_fit.first_choice([_judged(0, roomy=False)]) is None


def test_an_old_computer_is_offered_none_and_a_fast_one_more_than_a_laptop():
    def offered(speed: float, free: float) -> SuggestedModel | None:
        machine = DeviceCapacity(free=int(free), speeds={"float32": speed, "bfloat16": 2 * speed})
        return model_fit.first_choice(model_fit.suggestions(machine, Settings()))

    assert offered(5e9, 2e9) is None
    laptop, station = offered(1e11, 12e9), offered(1e13, 64e9)
    assert laptop is not None
    assert station is not None
    assert laptop.weights < station.weights


@pytest.mark.parametrize(
    ("speed", "longest", "questions"), [(1e12, 160, 8), (2e11, 32, 8), (1e11, 24, 4), (1.4e11, 24, 6), (1e9, 160, 4)]
)
def test_a_slow_computer_asks_a_real_model_fewer_questions_a_round(tmp_path, speed, longest, questions):
    (tmp_path / "config.json").write_text(json.dumps(SHAPES["Qwen2.5-0.5B"]))
    model, machine = model_config.read(tmp_path), DeviceCapacity(24 * GB, {"float32": speed, "bfloat16": speed})
    training = fit_model(machine, model, Settings()).training

    def count(**learning: int) -> int:
        chosen = Settings(learning=replace(Settings().learning, **learning))
        return model_fit.questions_a_round(chosen, model, machine, training, longest)

    assert count() == questions
    assert count(questions=12) == 12, "as a person chose"
    assert count(local=6) == 8, "who chose what is learned from"
