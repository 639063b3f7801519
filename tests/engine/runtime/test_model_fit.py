"""Test that a model is trained by the method of its checkpoints as long as memory allows."""

import json

import pytest
from msgspec.structs import replace

from waggle.core.settings import Settings
from waggle.engine.runtime.model_fit import fit_model
from waggle.models.memory_fit import DeviceCapacity
from waggle.models.shared import model_config
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
