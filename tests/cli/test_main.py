"""The command line: parsing, exit codes, and errors as sentences."""

import argparse
import ast
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import system_folders
from waggle.cli import log, main
from waggle.core import paths
from waggle.core.errors import EngineError
from waggle.core.system import screen
from waggle.gui.application import main as app
from waggle_lab import __main__ as laboratory

DOORS = [door for action in main.parser()._actions if isinstance(action, argparse._SubParsersAction) for door in action.choices]

NEEDS = {  # words without which a command cannot be understood
    "join": ["First light"], "create": ["--name", "Ours"], "get": ["swarm.port"], "set": ["swarm.port=1"],
    "repeat": ["run.json", "--write"], "compare": ["A", "B"],
    **{choice: ["12D3"] for choice in ("mute", "block", "welcome")},
}  # fmt: skip

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
HEAVY = ("torch", "transformers", "hivemind", "PySide6", "reasoning_gym", "numpy", "textual")


def test_no_heavy_import_happens_before_the_arguments_are_understood():
    code = (
        f"import sys, waggle.cli.main; waggle.cli.main.parser().parse_args([]); print([n for n in {HEAVY} if n in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "app"}
    )
    assert output.stdout.strip() == "[]"


def test_without_a_screen_the_way_without_a_window_is_named(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main.main([]) == 1
    errors = capsys.readouterr().err
    assert "no screen" in errors
    assert "waggle engine" in errors


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"DISPLAY": ":9077"}, "DISPLAY=:9077"),
        ({"DISPLAY": ":9077", "QT_QPA_PLATFORM": "xcb"}, "DISPLAY=:9077"),
        ({"DISPLAY": "nowhere.invalid:0"}, "DISPLAY=nowhere.invalid:0"),
        ({"WAYLAND_DISPLAY": "wayland-7"}, "WAYLAND_DISPLAY=wayland-7"),
        ({"WAYLAND_DISPLAY": "/nowhere/wayland-0", "DISPLAY": ":9077"}, "WAYLAND_DISPLAY=/nowhere/wayland-0 and DISPLAY=:9077"),
    ],
)
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="always has a screen")
def test_a_screen_that_does_not_answer_ends_in_a_sentence(tmp_path, variables, names):
    environment = {name: value for name, value in os.environ.items() if name not in SCREENS}
    environment |= {"PYTHONPATH": "app", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)} | variables
    for command in ([], ["--replay"]):
        words = [sys.executable, "-m", "waggle", "--home", str(tmp_path / "home"), *command]
        outcome = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=100)
        assert outcome.returncode == 1
        assert outcome.stderr.startswith(f"waggle: The screen that {names} names does not answer, so the window cannot open.")
        assert "waggle engine" in outcome.stderr


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="always has a screen")
def test_a_screen_that_answers_is_used(tmp_path, monkeypatch):
    for name in SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    with socket.socket(socket.AF_UNIX) as compositor:
        compositor.bind(str(tmp_path / "wayland-0"))
        assert screen.fault()
        compositor.listen()
        assert screen.fault() == ""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert screen.fault() == "", "it needs none"


def test_a_name_that_a_terminal_cannot_show_is_written_as_an_escape(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "waggle.log").write_text("2026-11-25 10:00:00 INFO waggle joined \u5b66\u4e60\n", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": "app", "PYTHONIOENCODING": "cp1252"}
    for words in (["log", "--home", str(tmp_path)], ["goodbye", "--home", str(tmp_path / "\u65e5\u672c")]):
        outcome = subprocess.run(
            [sys.executable, "-m", "waggle", *words], env=environment, capture_output=True, check=False, timeout=100
        )
        assert b"Traceback" not in outcome.stderr
        assert (b"\\u5b66\\u4e60" in outcome.stdout) == (words[0] == "log")


@pytest.mark.parametrize(("reader", "is_shown"), [("", True), (os.devnull, True), ("a file", False)])
def test_why_no_window_opens_is_shown_to_whoever_reads_no_terminal(reader, is_shown, tmp_path, monkeypatch):
    def refuse(_):
        raise EngineError("It does not answer.", "End that process.")

    errors = []
    monkeypatch.setattr(app, "run", refuse)
    monkeypatch.setattr(app, "show_refused", lambda error: errors.append(error.title))
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    with open(tmp_path / "read" if reader == "a file" else os.devnull, "w") as stream:
        monkeypatch.setattr(sys, "__stderr__", stream if reader else None)
        assert main.main([]) == 1
    assert errors == (["It does not answer."] if is_shown else [])


@pytest.mark.parametrize("door", ["", *DOORS])
def test_every_door_explains_itself(door, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main.main([*door.split(), "--help"])
    assert exit_info.value.code == 0
    assert "usage: waggle" in capsys.readouterr().out


def test_options_before_the_door_hold_behind_it():
    arguments = main.parse(["--home", "/x", "--set", "a.b=1", "engine"])
    assert (arguments.home, arguments.set) == (Path("/x"), ["a.b=1"])
    assert main.parse(["engine"]).set == []


@pytest.mark.parametrize("door", ["doctor", "log", "ctl status", "goodbye", "token", "update", "cuda", "race"])
def test_a_setting_where_it_would_do_nothing_is_refused(door, capsys):
    setting = ["--set", "computer.threads=1"]
    for words in ([*setting, *door.split()], [*door.split(), *setting]):
        with pytest.raises(SystemExit) as exit_info:
            main.parse(words)
        assert exit_info.value.code == 2
        assert "--set" in capsys.readouterr().err


def test_a_setting_before_the_door_is_joined_by_those_behind_it():
    assert main.parse(["--set", "a.b=1", "engine", "--set", "a.b=2", "--set", "c.d=3"]).set == ["a.b=1", "a.b=2", "c.d=3"]
    assert main.parse(["--set", "a.b=1"]).set == ["a.b=1"]


@pytest.mark.parametrize(
    "words",
    [
        ["waggle://join?x"],
        ["--home", "here.waggle", "waggle://join?x"],
        ["--home=here.waggle", "waggle://join?x"],
        ["--invite", "waggle://join?x"],
    ],
)
def test_a_link_that_stands_by_itself_is_an_invite(words):
    assert main.parse(words).invite == "waggle://join?x"


@pytest.mark.parametrize("words", [["join"], ["swarm", "join"]])
def test_options_may_follow_the_invite_of_the_command_that_joins(words):
    arguments = main.parse([*words, "waggle://join?x", "--home", "here"])
    assert (arguments.command, arguments.swarm, str(arguments.home)) == ("join", "waggle://join?x", "here")


@pytest.mark.parametrize("behind", [["goodbye", "--remove", "all", "--json"], ["--home", "elsewhere"]])
@pytest.mark.parametrize("before", [[], ["--home", "here"], ["--invite"], ["swarm", "preview"]])
def test_nothing_stands_behind_a_link_whoever_launches_it_may_break_it_in_pieces(before, behind, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main.parse([*before, "waggle://x", *behind])
    assert exit_info.value.code == 2
    assert "nothing may stand behind a link" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["of a friend.waggle"], ["--invite", "of a friend.waggle"], ["OF A FRIEND.WAGGLE"]])
def test_a_file_with_an_invite_is_found_from_any_folder(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main.parse(words).invite == str(tmp_path / words[-1])


def test_an_invite_by_its_url_and_none_stay_what_they_are():
    assert main.parse(["--invite", "file:///tmp/of%20a%20friend.waggle"]).invite == "file:///tmp/of%20a%20friend.waggle"
    assert main.parse([]).invite == ""


@pytest.mark.parametrize(
    "words",
    [
        ["ctl", "--home", "/data/my.waggle", "status"],
        ["--home", "/data/my.waggle", "engine"],
        ["--home=/data/my.waggle", "engine"],
        ["export", "--home=/data/my.waggle", "trained.waggle"],
    ],
)
def test_a_name_that_stands_for_something_else_is_no_invite(words):
    assert (main.parse(words).invite, main.parse(words).home) == ("", Path("/data/my.waggle"))


@pytest.mark.parametrize(
    "words",
    [
        ["ctl", "set", "model.folder=/d\udce9"], ["--set", "model.folder=/d\udce9", "engine"], ["--invite", "inv\udce9.waggle"],
        ["inv\udce9.waggle"], ["waggle://join?charter=\udce9"],
    ],
)  # fmt: skip
def test_a_word_that_is_no_text_is_refused_before_anybody_is_told_it(words, capsys):
    """A word in Latin-1, as a shell passes it."""
    with pytest.raises(SystemExit):
        main.parse(words)
    assert "is not written in UTF-8" in capsys.readouterr().err


def test_the_name_of_a_folder_may_be_no_text():
    assert main.parse(["--home", "/d\udce9", "engine"]).home == Path("/d\udce9")


@pytest.mark.parametrize("door", ["seed", "engine", "selftest"])
@pytest.mark.parametrize(("home", "why"), [("file/home", "Not a directory."), ("file", "File exists.")])
def test_a_home_that_is_no_folder_is_explained(tmp_path, capfd, door, home, why):
    (tmp_path / "file").touch()
    assert main.main([door, "--home", str(tmp_path / home)]) == 1
    output = capfd.readouterr()
    assert ("cannot be used: " if sys.platform == "win32" else why) in output.out + output.err  # Windows has words of its own
    assert "Traceback" not in output.err


def test_a_file_elsewhere_that_cannot_be_used_is_no_fault_of_the_home(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WAGGLE_HOME", str(tmp_path / "home"))
    (tmp_path / "file").touch()
    assert laboratory.main(["bench", "--report", "--out", str(tmp_path / "file" / "out")]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"waggle: {tmp_path / 'file'}")  # Windows names the folder that is none
    assert "cannot be used: " in errors
    assert "--home" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="there every name has a place, and is long enough")
@pytest.mark.parametrize(("words", "why"), [
    *((["--home", "~nosuchuser/x", door, *NEEDS.get(door, ())], "~nosuchuser/x cannot be used: nobody here has that name.")
      for door in DOORS if door not in ("ctl", "race", "cuda", "token", "update", "export", "completion")),
    (["fit", "~nosuchuser/x"], "~nosuchuser/x"),
    (["fit", "./" + "x" * 300], "cannot be used: File name too long."),
    (["goodbye", "--home", "/dev/null"], "/dev/null cannot be used: Not a directory."),
])  # fmt: skip
def test_what_the_system_refuses_is_one_sentence(tmp_path, monkeypatch, capfd, words, why):
    monkeypatch.setenv("WAGGLE_HOME", str(tmp_path))
    assert main.main(words) == 1
    output = capfd.readouterr()
    assert output.err.startswith("waggle: ")
    assert why in output.err
    assert "Traceback" not in output.err


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of another kind")
@pytest.mark.parametrize(("words", "code", "text"), [
    ("goodbye --remove log <&-", 0, 0), ("goodbye >&-", 0, 0), ("engine --set learning.local=99 >&-", 1, 1),
    ("log --home /dev/null 2>&-", 0, 0),
])  # fmt: skip
def test_streams_that_are_closed_lead_nowhere(tmp_path, words, code, text):
    command = ["sh", "-c", f"exec {sys.executable} -m waggle {words}"]
    environment = {**os.environ, "PYTHONPATH": "app", "WAGGLE_HOME": str(tmp_path), system_folders.CACHE: str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, text), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of another kind")
@pytest.mark.parametrize("program", ["-m waggle", "packaging/frozen_app.py"])
def test_an_engine_without_any_stream_says_in_its_log_why_it_ended(tmp_path, program):
    command = ["sh", "-c", f"exec {sys.executable} {program} engine --set nonsense=1 <&- >&- 2>&-"]
    environment = {**os.environ, "PYTHONPATH": "app", "WAGGLE_HOME": str(tmp_path), system_folders.CACHE: str(tmp_path / "cache")}
    assert subprocess.run(command, check=False, env=environment).returncode == 1
    logged = (tmp_path / "logs/waggle.log").read_text(encoding="utf-8")
    assert "nonsense=1 is not of the form section.name=value." in logged
    assert "Traceback" not in logged


@pytest.mark.skipif(sys.platform != "linux", reason="a disk that is always full is a file there")
def test_what_a_full_disk_does_not_take_is_told(tmp_path):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "waggle", "goodbye", "--home", str(tmp_path)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, env={**os.environ, "PYTHONPATH": "app"})
    assert (done.returncode, done.stderr) == (
        1,
        b"waggle: Waggle cannot go on: No space left on device.\n        Make room on the disk.\n",
    )


@pytest.mark.parametrize("lines", [1, 5000])
def test_a_command_ends_quietly_when_nobody_reads_it_any_more(tmp_path, lines):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/waggle.log").write_text("2026-03-09 10:15:00,000 INFO    waggle: hello\n" * lines)
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as gone:
        command = [sys.executable, "-m", "waggle", "log", "--home", str(tmp_path)]
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False, env={**os.environ, "PYTHONPATH": "app"})
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_pipe_that_breaks_elsewhere_is_no_quiet_end(monkeypatch):
    def broken(_):
        raise BrokenPipeError

    monkeypatch.setattr(log, "run", broken)
    with pytest.raises(BrokenPipeError):
        main.main(["log"])


def test_what_waggle_keeps_is_listed_and_removed_as_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    for name in ("identity.key", "logs/waggle.log", "history.sqlite"):
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).write_bytes(b"x" * 2000)
    assert main.main(["goodbye", "--home", str(tmp_path / "home")]) == 0
    output = capsys.readouterr().out
    assert [line.split()[:3] for line in output.splitlines()[1:4]] == [
        ["identity", "2.0", "kB"], ["history", "2.0", "kB"], ["log", "2.0", "kB"],
    ]  # fmt: skip
    assert main.main(["goodbye", "--home", str(tmp_path / "home"), "--remove", "log"]) == 0
    assert "removed log: 1 file, 2.0 kB" in capsys.readouterr().out
    assert (tmp_path / "home/history.sqlite").exists()
    words = ["goodbye", "--home", str(tmp_path / "home"), "--remove", "all", "--json"]
    assert main.main([*words, "--keep", "identity"]) == 0
    assert capsys.readouterr().out.startswith('[{"kind":"history","files":1')
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["identity.key"]
    assert main.main(words) == 0
    assert not (tmp_path / "home").exists(), "all is all"
    with pytest.raises(SystemExit):
        main.main(["goodbye", "--remove", "everything"])
    assert "there is no everything" in capsys.readouterr().err


def test_a_goodbye_to_a_folder_that_was_never_a_home_leaves_it_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    for name in ("control/motor.py", "settings.toml", "models.json"):
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_bytes(b"x")
    before = sorted((tmp_path / "project").rglob("*"))
    assert main.main(["goodbye", "--home", str(tmp_path / "project"), "--remove", "all,identity"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert sorted((tmp_path / "project").rglob("*")) == before


@pytest.mark.parametrize(("home", "words", "remaining"), [
    ("beside", "all", True), ("beside", "all,models", False), ("usual", "all", False),
])  # fmt: skip
def test_all_of_one_home_leaves_what_other_homes_use_unless_it_is_named(tmp_path, monkeypatch, home, words, remaining):
    monkeypatch.setattr("waggle.core.hub_token.stored_token", lambda: None)  # the keychain of whoever runs the tests
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv("WAGGLE_HOME", str(tmp_path / "usual"))
    shared = paths.models() / "owner/x/model.safetensors"
    for path in (shared, tmp_path / home / "logs/waggle.log", tmp_path / home / "control/engine.lock"):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    assert main.main(["goodbye", "--home", str(tmp_path / home), "--remove", words]) == 0
    assert not (tmp_path / home / "logs").exists()
    assert shared.exists() == remaining


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of one's own is a pty")
@pytest.mark.parametrize(("answer", "remaining"), [(b"\n", True), (b"n\n", True), (b"y\n", False)])
def test_at_a_terminal_one_is_asked_before_anything_is_removed(tmp_path, monkeypatch, capsys, answer, remaining):
    monkeypatch.setenv(system_folders.CACHE, str(tmp_path / "cache"))
    paths.Home(tmp_path).prepare().logs.mkdir()
    (tmp_path / "logs/waggle.log").write_bytes(b"x" * 2000)
    person, terminal = os.openpty()
    os.write(person, answer)
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main.main(["goodbye", "--home", str(tmp_path), "--remove", "log"]) == remaining
    os.close(person)
    assert "2.0 kB" in capsys.readouterr().out
    assert (tmp_path / "logs/waggle.log").exists() == remaining


def test_every_command_is_a_module_that_is_imported_when_it_is_chosen_alone():
    code = (
        "import sys; from waggle.cli import main; main.parse(['log']); "
        "print([name for name in sys.modules if name.startswith('waggle.cli.')])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "app"}
    )
    imported = {name.rpartition(".")[2] for name in ast.literal_eval(output.stdout)}
    assert imported == {"main", "window", "shared", "lazy_parser", "options", "outcome", "printing", "log"}
    assert list(main.COMMANDS) == DOORS


def test_verbose_may_stand_before_a_command_an_invite_or_nothing():
    assert [main.parse([*words]).verbose for words in ((), ("engine",), ("log",))] == [False] * 3
    assert [main.parse(["--verbose", *words]).verbose for words in ((), ("engine",), ("seed",))] == [True] * 3
    arguments = main.parse(["--verbose", "waggle://join?charter=ab"])
    assert (arguments.verbose, arguments.invite) == (True, "waggle://join?charter=ab")


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_verbose_logs_details_of_waggle_alone(tmp_path, level):
    words = ["--verbose"] if level == logging.DEBUG else []
    code = (
        "import logging, sys; from waggle.cli import main; from waggle.cli.shared import options; "
        "a = main.parse(sys.argv[1:]); options.start_log(a); "
        "logging.getLogger('waggle.engine').debug('a detail token=abc'); logging.getLogger('asyncio').debug('of a library')"
    )
    command = [sys.executable, "-c", code, "engine", "--home", str(tmp_path), *words]
    output = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "app"})
    written = "".join(path.read_text() for path in paths.Home(tmp_path).logs.glob("*"))
    assert ("a detail token=..." in output.stderr, "a detail token=..." in written) == (bool(words), bool(words))
    assert "of a library" not in output.stderr + written


WITHOUT_JSON = {  # commands that print no facts, or have a form of their own
    "seed", "stop", "top", "token", "cuda", "completion", "selftest", "log", "history", "race", "install-service",
}  # fmt: skip


@pytest.mark.parametrize("door", [door for door in DOORS if door not in WITHOUT_JSON])
def test_every_command_that_prints_facts_prints_them_as_json(door, capsys):
    with pytest.raises(SystemExit):
        main.main([door, "--help"])
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(("home", "forgotten"), [("usual", True), ("beside", False)])
def test_goodbye_to_all_forgets_the_token_of_the_hub_with_the_usual_home(tmp_path, monkeypatch, capsys, home, forgotten):
    """The keychain is one for all homes."""
    for variable, folder in ((system_folders.CACHE, "cache"), ("XDG_CONFIG_HOME", "config"), ("WAGGLE_HOME", "usual")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    tokens = ["hf_secret"]
    monkeypatch.setattr("waggle.core.hub_token.stored_token", lambda: tokens[0] if tokens else None)
    monkeypatch.setattr("waggle.core.hub_token.forget", tokens.clear)
    paths.Home(tmp_path / home).prepare()
    assert main.main(["goodbye", "--home", str(tmp_path / home), "--remove", "all"]) == 0
    assert (not tokens, "Hugging Face token from" in capsys.readouterr().out) == (forgotten, forgotten)
