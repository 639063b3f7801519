"""Test the commands `export` and `token` with a real checkpoint, a real keychain backend and a local hub."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
import torch
from keyring.backends.fail import Keyring as NoKeyring
from transformers import AutoModelForCausalLM

from engine.file_keyring import FileKeyring
from full_disk import full_beyond
from models.local_hub import TOKEN, Hub, local_hub, no_hub
from models.tiny_models import as_transformers, make_model
from waggle.cli import main
from waggle.core import hub_token, paths
from waggle.core.errors import ExportError, ModelError
from waggle.models.shared.training_mode import TrainingMode
from waggle.models.storage import checkpoint, export
from waggle.models.torch.policy import TorchPolicy

CHARTER = "ab" * 32


@pytest.fixture
def token_file(tmp_path, monkeypatch) -> Iterator[Path]:
    """The file of the keychain."""
    monkeypatch.setenv("KEYCHAIN_FILE", str(tmp_path / "keychain.json"))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())
    yield tmp_path / "keychain.json"
    keyring.set_keyring(before)


def model_with_words(kind: str, folder: Path, *, tied: bool = True) -> Path:
    make_model(kind, folder, tied=tied)
    shutil.copy(paths.starter() / "tokenizer.json", folder)
    return folder


def trained(home: Path, model: Path, **training: Any) -> TorchPolicy:
    """A home with a checkpoint after 12 rounds, whose weights are not the base's."""
    policy = TorchPolicy(model, training=TrainingMode(**training))
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in policy._parameters.values():
            parameter.add_(0.05 * torch.randn_like(parameter))
    root = paths.Home(home).prepare().model.checkpoints
    base = checkpoint.base_of(model)
    checkpoint.save(
        root, policy, checkpoint.CheckpointState(round=12, step=9, epoch=1, charter=CHARTER, base=base, completions=768)
    )
    return policy


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    trained(folder, paths.starter())
    return folder


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_transformers_loads_what_was_exported_and_computes_the_same(tmp_path, kind, tied):
    model = model_with_words(kind, tmp_path / "model", tied=tied)
    policy = trained(tmp_path / "home", model)
    assert main.main(["export", str(tmp_path / "out"), "--home", str(tmp_path / "home"), "--set", f"model.folder={model}"]) == 0
    ids = torch.arange(2, 40)[None]
    with torch.no_grad():
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
        assert torch.equal(loaded(input_ids=ids).logits, as_transformers(policy, model)(input_ids=ids).logits)


def in_bfloat16(folder: Path) -> Path:
    model = model_with_words("qwen3", folder)
    AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).save_pretrained(model)
    return model


def test_what_was_trained_in_fp32_is_written_in_fp32_whatever_it_began_as(tmp_path):
    """A step of reinforcement learning is smaller than the distance between two bfloat16 numbers."""
    model = in_bfloat16(tmp_path / "model")
    policy = trained(tmp_path / "home", model)
    assert main.main(["export", str(tmp_path / "out"), "--home", str(tmp_path / "home"), "--set", f"model.folder={model}"]) == 0
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert loaded.dtype == torch.float32
    for name, parameter in loaded.named_parameters():
        assert torch.equal(parameter, policy._parameters[name])


@pytest.mark.parametrize("method", ["lean", "lora"])
def test_what_was_trained_in_bfloat16_is_written_in_bfloat16(tmp_path, method):
    model = in_bfloat16(tmp_path / "model")
    policy = trained(tmp_path / "home", model, method=method, precision="bfloat16")
    assert main.main(["export", str(tmp_path / "out"), "--home", str(tmp_path / "home"), "--set", f"model.folder={model}"]) == 0
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert loaded.dtype == torch.bfloat16
    if method == "lean":
        for name, parameter in loaded.named_parameters():
            assert torch.equal(parameter, policy._parameters[name])
        return
    name = "model.layers.0.mlp.up_proj"
    a, b = (policy._parameters[f"{name}.lora_{side}.weight"] for side in "AB")
    exact, weight = policy._model.weights[f"{name}.weight"].float() + 2 * b @ a, loaded.get_parameter(f"{name}.weight").float()
    assert (weight - exact).abs().max() <= exact.abs().max() / 128
    assert weight.mean().item() == pytest.approx(exact.mean().item(), abs=1e-4)


def test_a_base_that_has_lost_its_weights_is_named(tmp_path, capsys):
    model = in_bfloat16(tmp_path / "model")
    trained(tmp_path / "home", model, method="lora")
    folder, saved = checkpoint.newest(paths.Home(tmp_path / "home").model.checkpoints, checkpoint.base_of(model))
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"only there as pickles"):
        export.write(export.ExportSource(folder, saved, model, "it"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_large_model_is_never_in_memory_as_a_whole(tmp_path):
    model = model_with_words("llama", tmp_path / "model")
    make_model("llama", model, inner=100_000)  # six weights of 12.8 MB each
    trained(tmp_path / "home", model, method="lora")
    folder, saved = checkpoint.newest(paths.Home(tmp_path / "home").model.checkpoints, checkpoint.base_of(model))
    export.write(export.ExportSource(folder, saved, model, "it"), tmp_path / "first")  # which imports what it needs
    tracemalloc.start()
    export.write(export.ExportSource(folder, saved, model, "it"), tmp_path / "out")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < (folder / checkpoint.ADAPTERS).stat().st_size + 4 * 12.8e6


def test_the_folder_has_all_that_is_needed_and_says_what_it_is(home, tmp_path, capsys):
    assert main.main(["export", str(tmp_path / "mine"), "--home", str(home)]) == 0
    assert "12 rounds of training" in capsys.readouterr().out
    names = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "README.md"}
    assert {path.name for path in (tmp_path / "mine").iterdir()} == names
    card = (tmp_path / "mine/README.md").read_text()
    for title in (
        "# mine",
        "| began as | the starter that ships with Waggle |",
        "| rounds trained | 12 |",
        CHARTER,
        "transformers",
    ):
        assert title in card
    assert len({path.stat().st_mode for path in (tmp_path / "mine").iterdir()}) == 1, "whoever may read one may read all"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"], "nothing half written is left"


def test_nothing_is_overwritten(home, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "notes.txt"):
        assert main.main(["export", str(folder), "--home", str(home)]) == 1
        assert "There is something in" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert main.main(["export", str(tmp_path / "empty"), "--home", str(home)]) == 0


def test_a_disk_that_takes_no_more_is_named_and_nothing_is_left_on_it(home, tmp_path, capsys):
    with full_beyond(1 << 20):
        assert main.main(["export", str(tmp_path / "out" / "model"), "--home", str(home)]) == 1
    assert f"{tmp_path / 'out' / 'model'} cannot be written: " in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(home, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main.main(["export", str(tmp_path / "file/out"), "--home", str(home)]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ([], "Where to?"),
        (["--push", "nonsense"], "is not the name of a model"),
        (["--push", "a/b@c"], "names a revision"),
        (["--push", "a/b"], "Pushing needs a token of yours."),
        (["out", "--set", "model.name=bees/none"], "bees/none is not on this computer yet."),
    ],
)
def test_what_is_missing_is_said_before_anything_is_made(home, token_file, tmp_path, monkeypatch, capsys, words, title):
    monkeypatch.chdir(tmp_path)
    assert main.main(["export", "--home", str(home), *words]) == 1
    assert title in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_of_which_nothing_is_saved_is_not_exported_also_where_something_is_of_another(home, tmp_path, capsys):
    model = model_with_words("llama", tmp_path / "model")
    assert main.main(["export", str(tmp_path / "out"), "--home", str(tmp_path / "new")]) == 1
    assert "Nothing is saved in" in capsys.readouterr().err
    assert main.main(["export", str(tmp_path / "out"), "--home", str(home), "--set", f"model.folder={model}"]) == 1
    assert f"Nothing is saved in {home / 'models'}" in capsys.readouterr().err
    (model / "tokenizer.json").unlink()
    assert main.main(["export", str(tmp_path / "out"), "--home", str(home), "--set", f"model.folder={model}"]) == 1
    assert "tokenizer.json is missing" in capsys.readouterr().err


def program(hub: Hub, token_file: Path, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run `waggle` as a person does, with its keychain in a file. Uploads use Git LFS, as no local server speaks Xet."""
    tests, app = Path(__file__).parents[3], Path(main.__file__).parents[2]
    environment = os.environ | {
        "PYTHONPATH": f"{app}{os.pathsep}{tests}", "PYTHON_KEYRING_BACKEND": "engine.file_keyring.FileKeyring",
        "KEYCHAIN_FILE": str(token_file), "HF_ENDPOINT": hub.endpoint, "HF_HUB_DISABLE_XET": "1",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "waggle", *words], input=typed, capture_output=True, text=True, env=environment, check=False
    )


def test_a_model_is_pushed_with_the_token_of_the_keychain_and_the_token_is_seen_nowhere(home, tmp_path):
    token_file = tmp_path / "keychain.json"
    with local_hub() as hub:
        stored = program(hub, token_file, "token", typed=f"{TOKEN}\n")
        pushed = program(hub, token_file, "export", "--push", "me/maths", "--home", str(home))
        assert (stored.returncode, pushed.returncode) == (0, 0), pushed.stderr
        assert f"Pushed to {hub.endpoint}/me/maths" in pushed.stdout
        assert [(repository["organization"], repository["name"], repository["visibility"]) for repository in hub.created] == [
            ("me", "maths", "private")
        ]
        assert TOKEN not in stored.stdout + stored.stderr + pushed.stdout + pushed.stderr
        uploaded = tmp_path / "uploaded"
        uploaded.mkdir()
        for name, content in hub.uploaded["me/maths"].items():
            (uploaded / name).write_bytes(content)
    assert not any(TOKEN.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert AutoModelForCausalLM.from_pretrained(uploaded).num_parameters() > 0
    assert "# maths" in (uploaded / "README.md").read_text()


def test_a_token_that_may_not_write_and_a_hub_that_is_away_are_told_apart(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with local_hub() as hub:
        with pytest.raises(ExportError, match="may not write to me/maths") as caught:
            export.push(tmp_path, "me/maths", "hf_read_only", hub.endpoint)
        assert "hf_read_only" not in str(caught.value)
    with no_hub() as endpoint, pytest.raises(ExportError, match="Hugging Face cannot be reached"):
        export.push(tmp_path, "me/maths", TOKEN, endpoint)


def test_a_token_is_stored_read_and_forgotten(token_file, monkeypatch, capsys):
    assert hub_token.stored_token() is None
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"  {TOKEN} \n"))
    assert main.main(["token"]) == 0
    assert json.loads(token_file.read_text()) == {"waggle/huggingface": TOKEN}
    assert hub_token.stored_token() == TOKEN
    for _ in range(2):
        assert main.main(["token", "--forget"]) == 0
        assert hub_token.stored_token() is None
    assert TOKEN not in "".join(capsys.readouterr())


@pytest.mark.parametrize("typed", ["", "\n", "two words\n", "t" * 501, "naïve\n"])
def test_what_is_no_token_is_not_stored(token_file, monkeypatch, capsys, typed):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert main.main(["token"]) == 1
    assert "That is not a Hugging Face token." in capsys.readouterr().err
    assert not token_file.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
def test_whoever_ends_the_question_for_a_token_has_given_none():
    ours, theirs = os.openpty()
    command, environment = [sys.executable, "-m", "waggle", "token"], {**os.environ, "PYTHONPATH": "app"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as prompt:  # fmt: skip
        os.close(theirs)
        output = b""
        while b"it is not shown" not in output:
            output += os.read(ours, 4096)
        os.write(ours, b"\x04")
        with contextlib.suppress(OSError):  # as Linux says that the other end was closed
            while more := os.read(ours, 4096):
                output += more
    os.close(ours)
    assert prompt.returncode == 1
    assert b"\nwaggle: That is not a Hugging Face token." in output.replace(b"\r", b"")
    assert b"Traceback" not in output


def test_a_locked_keychain_and_none_at_all_are_named(token_file, monkeypatch, capsys):
    monkeypatch.setenv("KEYCHAIN_FILE", f"{token_file}.locked")
    for keychain_here in (keyring.get_keyring(), NoKeyring()):
        keyring.set_keyring(keychain_here)
        monkeypatch.setattr(sys, "stdin", io.StringIO(TOKEN))
        assert main.main(["token"]) == 1
        errors = capsys.readouterr().err
        assert "keychain of this computer cannot be used" in errors
        assert TOKEN not in errors
    assert hub_token.stored_token() is None, "without a keychain nothing can have been stored"
