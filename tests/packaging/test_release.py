"""A release: its workflow, its parts, their licences, its changes."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import app_contents
import dev
import notices
import pytest
import smoke
import version
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    notices_folder = tmp_path_factory.mktemp("notices") / "notices"
    notices.write(notices_folder)
    return notices_folder


def test_the_workflow_builds_and_tries_all_three_systems_with_commands_that_exist():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    systems = {job["os"].split("-")[0] for job in workflow["jobs"]["build"]["strategy"]["matrix"]["include"]}
    assert systems == {"ubuntu", "windows", "macos"}
    assert set(workflow["jobs"]["draft"]["needs"]) == {"build", "wheel"}
    assert "--draft" in text


def test_what_is_not_signed_is_said_in_the_draft(tmp_path):
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    (function,) = set(re.findall(r"^ +(unsigned\(\) .*)$", text, re.MULTILINE))
    assert text.count("::warning::") == text.count("unsigned()") == 2
    subprocess.run(
        ["sh", "-c", f'RUNNER_OS=macOS\n{function}\nunsigned "Not signed."\nunsigned "Nor this."'], cwd=tmp_path, check=True
    )
    assert (tmp_path / "dist/unsigned-macOS.md").read_text(encoding="utf-8") == "- Not signed.\n- Nor this.\n"
    assert "dist/unsigned-*.md" in text
    assert re.search(r"cat out/unsigned-\*\.md .*> notes\.md", text)


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").iterdir()), ids=lambda path: path.name)
def test_every_command_of_a_workflow_exists(path):
    text = path.read_text(encoding="utf-8")
    scripts = re.findall(r"packaging/\w+\.py", text)
    assert scripts
    for script in scripts:
        assert (ROOT / script).exists(), script


def test_a_change_is_tested_with_every_python_before_it_is_merged():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    assert {"pull_request", "push"} <= workflow[True].keys()  # YAML reads `on` as true
    job = workflow["jobs"]["test"]
    assert job["steps"][-1]["run"] == ".ci/run"
    assert (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()[-1] == "python3 packaging/dev.py test"
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(dev.OLDEST[1], dev.NEWEST[1] + 1)]


def test_the_smoke_run_tries_windows_and_macos_with_tests_that_exist():
    job = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]["smoke"]
    assert {entry["os"].split("-")[0] for entry in job["strategy"]["matrix"]["include"]} == {"windows", "macos"}
    commands = " ".join(step.get("run", "") for step in job["steps"])
    folders = re.findall(r"\btests/\w+", commands)
    assert folders
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert "selftest" in commands
    assert "doctor" in commands


def test_the_hooks_of_a_commit_are_the_steps_of_the_linter():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    commands = [shlex.split(hook["entry"].removeprefix("env PYTHONPATH=app ")) for hook in hooks]
    assert commands == [[".venv/bin/python", *step] for step in dev.LINT]


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_an_issue_form_has_what_github_asks_of_one(name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert fields
    assert {part["type"] for part in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(part["attributes"]["label"] for part in fields)
    assert len({part["id"] for part in fields}) == len(fields)


def test_the_wheel_is_installed_with_the_python_that_the_workflow_set_up_and_not_with_that_of_its_pipx():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    commands = " ".join(step.get("run", "") for step in workflow["jobs"]["wheel"]["steps"])
    assert re.findall(r"pipx (\w+) (\S+ \S+ \S+)", commands) == [
        (verb, '--python "$(which python)"') for verb in ("run", "install")
    ]


def test_every_part_is_named_with_its_version_its_licence_and_its_text(folder):
    sbom = json.loads((folder / "sbom.cdx.json").read_text(encoding="utf-8"))
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    names = {part["name"].lower() for part in sbom["components"]}
    assert {"torch", "pyside6_essentials", "reasoning_gym", "hivemind", "msgspec", "python", "go-libp2p-daemon"} <= names
    assert {"textual", "linkify-it-py"} <= names, "also what one package asks of another as an extra"
    assert not names & {"pytest", "mypy", "pyinstaller", "atheris"}
    for part in sbom["components"]:
        assert part["version"], part
        assert part["licenses"][0]["license"]["name"], part
    references = [part["bom-ref"] for part in sbom["components"]]
    assert len(set(references)) == len(references)


def test_the_licence_of_qt_is_honoured(folder):
    notices_text = (folder / "NOTICES.txt").read_text(encoding="utf-8")
    assert "you may replace them" in notices_text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in (folder / "LGPL-3.0.txt").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE" in (folder / "GPL-3.0.txt").read_text(encoding="utf-8")
    assert "Apache License" in (folder / "Apache-2.0.txt").read_text(encoding="utf-8")


def test_the_notes_of_a_release_are_what_the_changelog_says_of_it():
    assert version.changes().startswith("- ")
    assert "##" not in version.changes()


def test_the_smoke_test_hears_the_address_of_a_seed_behind_whatever_else_it_says(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(app_contents.SOURCE))
    assert smoke.seed([sys.executable, "-m", "waggle"], tmp_path / "seed").startswith("/ip4/127.0.0.1/tcp/")


def test_the_smoke_test_waits_for_an_address_no_longer_than_it_should(tmp_path, monkeypatch):
    monkeypatch.setattr(smoke, "SECONDS", 2.0)
    mute = ["sh", "-c", "echo 0 connected; exec sleep 600"]
    with pytest.raises(SystemExit, match="0 connected"):
        smoke.seed(mute, tmp_path / "seed")
