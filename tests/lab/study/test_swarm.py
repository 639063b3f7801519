"""Test `waggle-lab swarm` as a person runs it: a small study, really interrupted, continued, reported."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import psutil
import pytest

from practice.test_results import run
from waggle.core import paths
from waggle.core.errors import LabError, SettingsError
from waggle.models.backend import open_policy
from waggle.practice.results import Book, Key, Run
from waggle.sapo.prompt_form import FORMS, PLAIN
from waggle.sapo.stages import Node, RoundSettings
from waggle.tasks import charter as charters
from waggle.tasks import shipped_swarms
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab.benchmark import cells
from waggle_lab.study import plan, worker
from waggle_lab.study.comparison import CONFIGURATIONS
from waggle_lab.study.swarm import _public_options, open_book, study_of

ROOT = Path(__file__).resolve().parents[3]
SAVE_ALWAYS = ("--save-every", "1e-9")  # after each tick
SMALL = ("--configurations", "8/0,default", "--rounds", "6", "--seeds", "1", "--nodes", "2", "--split", "dev", "--jobs", "2")


def start_study(folder: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "waggle_lab", "swarm", "--out", str(folder), *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "app"), "GIT_DIR": os.devnull}  # a commit meanwhile changes no run
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)


def is_running(group: int) -> bool:
    """Whether any process of it still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def parsed(*more: str):
    import argparse

    from waggle_lab.study import swarm

    parser = argparse.ArgumentParser()
    swarm.add_arguments(parser)
    return study_of(parser.parse_args(more))


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> tuple[str, ...]:
    """A small study of two specialties whose questions are generated quickly; the tests depend on no particular specialty."""
    first = shipped_swarms.first_swarm()
    quick_specialties = tuple(
        specialty for specialty in first.specialties if specialty.dataset in ("base_conversion", "fraction_simplification")
    )
    file = tmp_path_factory.mktemp("charter") / "charter.json"
    file.write_bytes(
        charters.encode(msgspec.structs.replace(first, name="Two", specialties=quick_specialties, questions_digest=""))
    )
    return (*SMALL, "--charter", str(file))


def rounds_saved(folder: Path) -> int:
    """The rounds of unfinished runs that are saved."""
    return sum(int(save.name[1:]) for save in folder.glob("unfinished-*/t*"))


def wait_for(process: subprocess.Popen, is_there: Callable[[], bool]) -> None:
    while not is_there():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def done(tmp_path_factory, small) -> Path:
    """A study whose process group was killed during its second run, after saves of it, and which was then continued."""
    folder = tmp_path_factory.mktemp("study") / "out"
    first = start_study(folder, *small, "--jobs", "1", *SAVE_ALWAYS)
    runs = folder / "runs.jsonl"
    wait_for(first, lambda: runs.exists() and runs.read_bytes().endswith(b"\n") and 2 <= rounds_saved(folder) < 6)
    os.killpg(first.pid, signal.SIGKILL)  # the parent and its worker
    first.wait()
    assert len(Book(runs, Run).runs) == 1
    second = start_study(folder, *small, "--resume", *SAVE_ALWAYS)
    _, errors = second.communicate(timeout=600)
    assert second.returncode == 0, errors
    played = int(re.search(r"(\d+)/12", errors)[1])
    assert 6 + 2 <= played < 12, "the bar begins with what was played, in finished runs and in others"
    assert "12/12" in errors
    assert not list(folder.glob("unfinished-*")), "a finished run needs no save"
    return folder


def test_a_killed_study_goes_on_where_it_was_and_is_reported(done):
    book = Book(done / "runs.jsonl", Run)
    assert sorted(run.key.configuration for run in book.runs) == ["8/0", "default"]
    assert all(len(run.reward) == 6 for run in book.runs)
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "default" in page
    assert "http" not in page, "the report fetches nothing"
    header, *rows = (done / "runs.csv").read_text().splitlines()
    assert "heldout_auc" in header
    assert len(rows) == 2


def test_a_finished_study_is_reported_again_without_its_models(done, small, tmp_path):
    (done / "report.html").unlink()
    process = start_study(done, *small, "--resume", "--cache", str(tmp_path / "none"))
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert (done / "report.html").is_file()
    assert not (tmp_path / "none").exists()


def test_a_report_of_finished_runs_is_written_whatever_study_they_are_of(done, tmp_path):
    """The meaning of `default` may have changed since they were played."""
    shutil.copy(done / "runs.jsonl", tmp_path)
    process = start_study(tmp_path, "--report")
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert {path.name for path in done.iterdir()} - {path.name for path in tmp_path.iterdir()} == {"study.json"}
    for name in ("figures.json", "runs.csv", "heldout.csv"):
        assert (tmp_path / name).read_bytes() == (done / name).read_bytes()
    nothing = start_study(tmp_path / "nothing", "--report")
    assert "has no finished run" in nothing.communicate(timeout=600)[1]
    assert nothing.returncode == 1


def test_without_matplotlib_one_line_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from waggle_lab.__main__ import main; sys.exit(main(['swarm', '--report']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "app")}
    refused = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr == "waggle: This part of the laboratory needs matplotlib; install it with: pip install matplotlib\n"


def test_ctrl_c_leaves_a_report_and_a_sentence_and_nobody_behind(tmp_path):
    folder = tmp_path / "out"
    process = start_study(folder, *SMALL[:-1], "1", *SAVE_ALWAYS)
    runs = folder / "runs.jsonl"
    wait_for(process, lambda: runs.exists() and runs.read_bytes().endswith(b"\n") and 1 <= rounds_saved(folder) < 6)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of it hears this
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 1, errors
    assert "Stopping when the rounds under way are played and saved." in errors
    assert "Finished runs and the last saves of others are kept; continue with --resume." in errors
    assert 1 <= rounds_saved(folder) < 6
    assert "8/0" in (folder / "report.html").read_text(encoding="utf-8")
    deadline = time.monotonic() + 60
    while is_running(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_that_is_killed_loses_what_was_played_after_the_last_save_alone(small, tmp_path, done):
    folder = tmp_path / "out"
    process = start_study(folder, *small, "--configurations", "default", *SAVE_ALWAYS)
    wait_for(process, lambda: rounds_saved(folder) >= 2)
    (worker_process,) = [
        child for child in psutil.Process(process.pid).children() if any("spawn_main" in word for word in child.cmdline())
    ]
    worker_process.kill()
    _, errors = process.communicate(timeout=600)
    assert "A worker process of the study ended unexpectedly." in errors
    assert rounds_saved(folder) >= 2
    unasked = start_study(folder, *small, "--configurations", "default")
    assert "holds a study already" in unasked.communicate(timeout=600)[1], "though no run is finished"
    continued = start_study(folder, *small, "--configurations", "default", "--resume")
    assert continued.wait(timeout=600) == 0
    (run,) = Book(folder / "runs.jsonl", Run).runs
    same = next(each for each in Book(done / "runs.jsonl", Run).runs if each.key == run.key)
    assert msgspec.structs.replace(run, cpu_seconds=0.0) == msgspec.structs.replace(same, cpu_seconds=0.0)


def test_the_command_gives_the_same_numbers_again(done, small, tmp_path):
    process = start_study(tmp_path / "again", *small)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors

    def numbers(folder: Path) -> dict[str, object]:
        lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
        return {line["key"]["configuration"]: {**line, "cpu_seconds": 0} for line in lines}

    assert numbers(tmp_path / "again") == numbers(done)


def test_a_folder_with_a_study_is_not_gone_on_with_unasked_nor_with_another_study(tmp_path):
    study, other = parsed(*SMALL), parsed(*SMALL, "--delay", "3")
    open_book(tmp_path, other, resume=False)  # nothing was ever finished in it: it may be begun anew
    open_book(tmp_path, study, resume=False).keep(run())
    with pytest.raises(LabError, match="holds a study already"):
        open_book(tmp_path, study, resume=False)
    with pytest.raises(LabError, match="holds another study"):
        open_book(tmp_path, other, resume=True)
    assert len(open_book(tmp_path, study, resume=True).runs) == 1


@pytest.mark.parametrize("before", [(b'"strategy": "adaptive"', b'"strategy": "gated"'), (b'"share": 0.25', b'"share": 1.0')])
def test_a_study_begun_when_a_name_meant_something_else_is_another_study(tmp_path, before):
    study = parsed(*SMALL)
    open_book(tmp_path, study, resume=False).keep(run())
    description = tmp_path / "study.json"
    older = description.read_bytes().replace(*before)
    assert older != description.read_bytes()
    description.write_bytes(older)
    with pytest.raises(LabError, match="holds another study"):
        open_book(tmp_path, study, resume=True)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot be written"):
        open_book(tmp_path / "file" / "out", parsed(*SMALL), resume=False)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--configurations", "9"),
        ("--configurations", "4/4:magic"),
        ("--configurations", "4/4:plain:grpo:crumbs=1.2.3"),
        ("--settings", "sparse,imaginary"),
        ("--seeds", "one"),
        ("--rates", "fast"),
        ("--loss", "2"),
        ("--rounds", "0"),
        ("--nodes", "0"),
        ("--starters", "/nowhere"),
        ("--rates", "0"),
        ("--rates", "nan"),
        ("--configurations", "99999999/0"),
        ("--paper",),
        ("--jobs", "0"),
        ("--asked", "10"),
        ("--longest", "0"),
        ("--pool", "0"),
        ("--configurations", "4/4,4/4:plain:grpo"),
        ("--measure-every", "0"),
        ("--save-every", "-1"),
        ("--save-every", "nan"),
        ("--configurations", "8/0,8/0:prompt=example"),
        ("--starters", str(paths.starter()), "--settings", "identical"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_made(wrong, tmp_path):
    with pytest.raises((LabError, SettingsError)):
        parsed(*SMALL, *wrong)


def test_the_command_that_a_report_shows_tells_no_folder_of_this_computer():
    words = ("--cache", "/home/ann/c", "--out=/home/ann/o", "--starters", "/home/ann/a,/home/ann/b", "--charter=/home/ann/c.json")
    options = _public_options(["waggle-lab", "swarm", *words, "--rates", "5e-4,1e-3"])
    assert options == ["--starters", "a,b", "--charter=c.json", "--rates", "5e-4,1e-3"]
    methods = ["--starters", "/home/ann/a=lora,resources/starter,/home/ann/b", "--starters=/home/ann/a=lora,/home/ann/b=full"]
    public = ["--starters", "a=lora,resources/starter,b", "--starters=a=lora,b=full"]
    assert _public_options(["waggle-lab", "swarm", *methods]) == public


def test_a_specialty_that_reserves_nothing_is_named_before_anything_is_played(tmp_path, monkeypatch):
    monkeypatch.setattr(Verifier, "held_out", lambda *_: [])
    with pytest.raises(LabError, match="has too few different questions"):
        worker._reserved.__wrapped__("", "dev", 4)


def test_a_strategy_named_once_holds_for_every_ratio_that_names_none():
    study = parsed("--configurations", "8/0,4/4:plain,default", "--strategy", "replay")
    assert list(study.parts[0].seeds) == ["8/0", "4/4:plain", "default"]
    assert list(parsed("--configurations", "4/4", "--strategy", "replay").parts[0].seeds) == ["4/4:replay"]
    more = parsed("--configurations", "4/4:crumbs=0.2,4/4:questions=8", "--strategy", "gated").configurations
    assert list(more) == ["4/4:gated:crumbs=0.2", "4/4:gated:questions=8"]
    assert {configuration.strategy for configuration in more.values()} == {"gated"}


def test_one_word_stands_for_every_published_rule_and_the_controls():
    study = parsed("--configurations", "default,published,published:updates=4")
    rules = study.configurations
    assert len(rules) == 1 + 2 * len(plan.PUBLISHED_RULES)
    published = [rules[name] for name in plan.PUBLISHED_RULES]
    assert {each.strategy for each in published} >= {"capability", "f_tis", "success_gated", "off_policy_mask", "topr", "luffy"}
    assert {each.crumb_span for each in published} == {0.2}
    assert {each.questions for each in published if each.external} == {8}, "as many questions as the lone control"
    assert [(each.questions, each.local, each.external) for each in published[:2]] == [(8, 8, 0), (16, 8, 0)]
    assert {rules[f"{name}:updates=4"].updates for name in plan.PUBLISHED_RULES} == {4}


def test_models_of_ones_own_learn_as_fast_as_the_app_would_let_the_first(tmp_path):
    large = tmp_path / "large"
    large.mkdir()
    large.joinpath("config.json").write_text((cells.folder_of(cells.HALF) / "config.json").read_text())
    assert parsed("--starters", f"{large},{paths.starter()}").rates == (pytest.approx(8.3e-6, rel=0.05),)
    assert parsed("--starters", f"{large}=lora").rates == (pytest.approx(1.25e-4, rel=0.05),)
    assert parsed("--starters", str(paths.starter()), "--rates", "3e-4").rates == (3e-4,)
    assert parsed().rates == (5e-4,)


def test_the_papers_table_is_played_with_models_of_ones_own():
    study = parsed("--paper", "--starters", f"{paths.starter()}=lora,{paths.starter()}", "--rounds", "100", "--nodes", "4")
    (part,) = study.parts
    assert tuple(part.seeds) == CONFIGURATIONS
    assert (part.setting, part.rounds, study.nodes, part.methods) == ("own", 100, 4, ("lora", "full"))
    with pytest.raises(LabError, match="do not go together"):
        parsed("--paper", "--starters", str(paths.starter()), "--configurations", "8/0")


def test_each_model_learns_by_its_own_method_and_at_a_rate_in_proportion(tmp_path):
    large = tmp_path / "large"
    large.mkdir()
    large.joinpath("config.json").write_text((cells.folder_of(cells.HALF) / "config.json").read_text())
    study = parsed("--starters", f"{large}=lora,{paths.starter()},{large}", "--nodes", "3", "--rates", "1.25e-4")
    (part,) = study.parts
    key = Key(setting="own", configuration="8/0", seed=1, learning_rate=1.25e-4, rounds=1, split="dev")
    setup = worker._setup(study, part, key, part.folders, worker.charter_of(""))
    assert [training.method for training in setup.training] == ["lora", "full", "full"]
    rates = [setup.rules.learning_rate * scale for scale in setup.rate_scales]
    assert rates == pytest.approx([1.25e-4, 5e-4, 8.3e-6], rel=0.05), "those of the app"


def test_the_starter_is_asked_plainly_from_wherever_it_is_named(monkeypatch):
    monkeypatch.chdir(paths.starter().parent)
    study = parsed("--starters", "starter", "--configurations", "default:prompt=chat")
    (part,) = study.parts
    (folder,) = part.folders
    assert worker._form(study, part, "chat", Path(folder), None, None) == PLAIN


@pytest.fixture
def chat_model(tmp_path) -> Path:
    """The starter's weights with a chat template."""
    shutil.copytree(paths.starter(), folder := tmp_path / "chat")
    template = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
    (folder / "chat_template.jinja").write_text(template)
    return folder


def node_of(folder: Path, verifier, seed: int) -> Node:
    opened = open_policy(folder, device="cpu", threads=1)
    return Node(
        policy=opened.policy, tokenizer=opened.tokenizer, swarm=None, verifier=verifier, charter=shipped_swarms.first_swarm(),
        origin=b"", seed=seed, model=folder.name,
    )  # fmt: skip


def test_models_are_asked_as_the_configuration_says_and_the_starter_plainly(chat_model, tmp_path, verifier):
    shutil.copytree(paths.starter(), plain_model := tmp_path / "plain")
    study = parsed("--starters", f"{chat_model},{plain_model}")
    form = partial(worker._form, study, study.parts[0])
    chats, plain = node_of(chat_model, verifier, 1), node_of(plain_model, verifier, 1)
    assert form("chat_example", chat_model, chats, RoundSettings()).name == "chat_example"
    assert form("example", plain_model, plain, RoundSettings()).name == "example"
    assert form("chat", paths.starter(), plain, RoundSettings()).name == "plain"
    with pytest.raises(LabError, match="plain has no chat template"):
        form("chat", plain_model, plain, RoundSettings())


class Listening:
    """A policy that remembers the noise by which it sampled."""

    def __init__(self, policy) -> None:
        self._policy = policy
        self.noise: list[float] = []

    def sample(self, prompts, noise, params):
        self.noise.append(float(noise.sum()))
        return self._policy.sample(prompts, noise, params)


def test_without_a_form_it_is_tried_in_the_same_way_in_every_run(chat_model, verifier):
    study = parsed("--starters", str(chat_model))
    trials = []
    for seed in (1, 2):
        worker._tried_forms.clear()
        node = node_of(chat_model, verifier, seed)
        policy = Listening(node.policy)
        form = worker._form(study, study.parts[0], "", chat_model, replace(node, policy=policy), RoundSettings())
        trials.append((form.name, policy.noise))
    assert trials[0] == trials[1]
    assert FORMS[trials[0][0]].chat


def test_a_charter_or_a_model_that_was_changed_makes_another_study(tmp_path):
    charter, model, out = tmp_path / "charter.json", tmp_path / "model", tmp_path / "out"
    charter.write_bytes(charters.encode(shipped_swarms.first_swarm()))
    shutil.copytree(paths.starter(), model)
    study = parsed(*SMALL, "--charter", str(charter), "--starters", str(model))
    open_book(out, study, resume=False).keep(run())
    open_book(out, study, resume=True)
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(LabError, match="holds another study"):
        open_book(out, study, resume=True)
    (model / "model.safetensors").write_bytes(weights)
    worker.charter_of.cache_clear()
    charter.write_bytes(charters.encode(msgspec.structs.replace(shipped_swarms.first_swarm(), name="another")))
    with pytest.raises(LabError, match="holds another study"):
        open_book(out, study, resume=True)
