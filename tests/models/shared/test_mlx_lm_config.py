"""Strangers' configurations for mlx-lm: bounded, no code of theirs, and refused where mlx-lm would compute them wrongly."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("mlx_lm")
from models.tiny_kinds import WINDOW, make_kind
from waggle.core.errors import ModelError
from waggle.models.mlx_generic.policy import MlxLmPolicy
from waggle.models.shared import generic_config
from waggle.models.shared.configuration.model_config import ModelConfig
from waggle.models.shared.generic_config import GenericConfig
from waggle.models.shared.mlx_lm import config as mlx_lm_config
from waggle.models.shared.mlx_lm import modules as mlx_lm_modules
from waggle.models.shared.mlx_lm.config import MlxLmConfig
from waggle.models.shared.mlx_lm.settings import NotInMlxLmError


@pytest.fixture(scope="module")
def mistral(tmp_path_factory) -> Path:
    return make_kind("mistral window", tmp_path_factory.mktemp("model"))


def changed(folder: Path, place: Path, **settings: object) -> Path:
    """A copy of a model with other settings; None removes one."""
    table = json.loads((folder / "config.json").read_text()) | settings
    (place / "config.json").write_text(json.dumps({name: value for name, value in table.items() if value is not None}))
    (place / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    return place


def test_a_model_file_of_a_stranger_is_never_run(mistral, tmp_path):
    folder = changed(mistral, tmp_path, model_file="evil.py")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(NotInMlxLmError, match="code of its own"):
        MlxLmPolicy(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "kind",
    ["gpt5", "cache", "base", "olmo", "../../evil", "os", "..", "", None, 7, ["llama"], "llama.py", "x" * 1000, "tuner.lora"],
)
def test_types_that_mlx_lm_has_no_module_for_are_refused(mistral, tmp_path, kind):
    table = json.loads((mistral / "config.json").read_text()) | {"model_type": kind}
    (tmp_path / "config.json").write_text(json.dumps(table))
    with pytest.raises(NotInMlxLmError, match="cannot train models of the type"):
        mlx_lm_config.read(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [{"num_hidden_layers": 10**9}, {"num_attention_heads": 10**7}, {"vocab_size": 10**15}, {"hidden_size": -4},
     {"hidden_size": 64.5}, {"vocab_size": "many"}, {"hidden_size": None}, {"num_hidden_layers": 3}, {"vocab_size": 98},
     {"num_key_value_heads": 0}, {"layer_types": ["full_attention"] * 100_000}, {"head_dim": 7}, {"rms_norm_eps": "small"},
     {"rope_parameters": {"rope_type": "secret", "rope_theta": 1e4}}, {"rope_parameters": {"rope_type": "yarn"}},
     {"num_attention_heads": 3}],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(mistral, tmp_path, settings):
    with pytest.raises(ModelError):
        MlxLmPolicy(changed(mistral, tmp_path, **settings))


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"hidden_act": "gelu"}, "activation gelu"), ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
     ({"attn_logit_softcapping": 30.0}, "attn_logit_softcapping"), ({"logit_scale": 0.5}, "logit_scale")],
)  # fmt: skip
def test_what_mlx_lm_would_pass_over_is_refused(mistral, tmp_path, settings, what):
    with pytest.raises(NotInMlxLmError, match=what):
        MlxLmPolicy(changed(mistral, tmp_path, **settings))


def test_a_context_ends_with_a_window_that_nobody_computes(mistral, tmp_path):
    assert mlx_lm_config.read(changed(mistral, tmp_path, sliding_window=WINDOW)).max_position_embeddings == 512
    folder = changed(mistral, tmp_path, model_type="olmo2", sliding_window=WINDOW)
    assert mlx_lm_config.read(folder).max_position_embeddings == WINDOW


def test_mlx_lm_is_asked_on_apple_silicon_only_and_for_what_the_fast_path_does_not_compute(mistral, tmp_path, monkeypatch):
    other = make_kind("smollm3", tmp_path)
    assert isinstance(generic_config.read_any(other), GenericConfig)
    assert isinstance(generic_config.read_any(other, mlx=True), MlxLmConfig)
    monkeypatch.setattr(generic_config, "is_apple_silicon", lambda: True)
    assert isinstance(generic_config.read_any(other), MlxLmConfig)
    assert isinstance(generic_config.read_any(mistral), ModelConfig)


def test_what_mlx_lm_does_not_know_goes_to_torch_where_there_is_one(tmp_path, monkeypatch):
    folder = make_kind("bloom", tmp_path)
    assert isinstance(generic_config.read_any(folder, mlx=True), GenericConfig)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotInMlxLmError, match="type bloom"):
        generic_config.read_any(folder, mlx=True)


def test_the_names_of_modules_are_those_of_mlx_lm():
    import subprocess

    program = "from mlx_lm.utils import MODEL_REMAPPING; import json; print(json.dumps(MODEL_REMAPPING))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    theirs = json.loads(printed.splitlines()[-1])
    assert {name: mlx_lm_modules.MODULES.get(name) for name in theirs} == theirs
