"""Test the control socket."""

import asyncio
import errno
import inspect
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from gui.recorded import ready
from protocol.text.test_status_text import READY
from waggle.cli import ctl, main, remove_data
from waggle.cli.control import pause
from waggle.cli.control.status import describe
from waggle.cli.shared import engine
from waggle.core.errors import EngineError
from waggle.core.paths import LONGEST_SOCKET, Home
from waggle.engine import lifecycle
from waggle.engine.control import command_queue
from waggle.engine.control import server as control
from waggle.protocol import commands, events, json_lines
from waggle.protocol.state import State

ONLY_UNIX = pytest.mark.skipif(not control.UNIX, reason="there is a port of the loopback instead")


async def obey(command):
    return (events.CommandDone(id=command.id),)


@pytest.fixture(params=[pytest.param("a unix socket", marks=ONLY_UNIX), "a port and a secret, as on Windows"])
async def home(tmp_path, request, monkeypatch):
    monkeypatch.setattr(control, "UNIX", request.param == "a unix socket")
    new_home = Home(tmp_path / "h").prepare()
    async with control.serve(new_home, obey):
        yield new_home


async def test_a_command_is_answered_through_the_socket(home):
    answers = await asyncio.to_thread(control.send_command, home, commands.Resume(id="42"))
    assert answers == [events.CommandDone(id="42")]


def test_whoever_asks_waits_longer_than_the_engine_takes_to_say_why_it_does_not():
    waits = inspect.signature(control.send_command).parameters["seconds"].default
    assert waits > command_queue.RESTART_SECONDS + lifecycle.PAUSE_SECONDS


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists instead of modes")
async def test_only_this_user_can_reach_the_socket(home):
    assert stat.S_IMODE(home.control.stat().st_mode) == 0o700


async def test_a_port_that_anybody_can_reach_answers_nobody_without_the_secret(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "UNIX", False)
    home = Home(tmp_path / "h").prepare()
    async with control.serve(home, obey) as server:
        for line in (b"\n", b"guess\n", json_lines.line(commands.Resume(id="1"))):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(line + json_lines.line(commands.Resume(id="2")))
            assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize("note", [b"", b"1 2 3", b"port secret", b"99999 secret"])
def test_a_damaged_note_of_the_port_is_an_engine_that_does_not_run(tmp_path, monkeypatch, note):
    monkeypatch.setattr(control, "UNIX", False)
    home = Home(tmp_path / "h").prepare()
    (home.control / "engine.port").write_bytes(note)
    with pytest.raises(EngineError, match="No engine is running"):
        control.send_command(home, commands.Status(id="1"))


async def test_a_port_that_another_program_has_since_a_kill_is_no_engine(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "UNIX", False)
    home = Home(tmp_path / "h").prepare()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    stranger = await asyncio.start_server(answer, "127.0.0.1", 0)
    (home.control / "engine.port").write_bytes(b"%d secret" % stranger.sockets[0].getsockname()[1])
    assert not await asyncio.to_thread(control.is_running, home)
    stranger.close()


def test_of_two_engines_that_start_at_once_one_has_the_folder_until_it_dies(tmp_path):
    home = Home(tmp_path / "h").prepare()
    code = (
        "import sys, pathlib\n"
        "from waggle.engine.control import server as control\n"
        "from waggle.core.errors import EngineError\n"
        "from waggle.core.paths import Home\n"
        "try:\n"
        "    held = control.claim_home(Home(pathlib.Path(sys.argv[1])))\n"
        "except EngineError as error:\n"
        "    print(error.title, flush=True)\n"
        "else:\n"
        "    print('mine', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    starts = [
        subprocess.Popen([sys.executable, "-c", code, home.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    lines = {start.stdout.readline().strip(): start for start in starts}
    assert set(lines) == {"mine", "Another engine, or a seed, is running for this folder."}
    lines["mine"].kill()
    control.claim_home(home, seconds=10).release()
    for start in starts:
        start.communicate()


async def test_a_socket_left_behind_by_a_killed_engine_is_no_obstacle(tmp_path):
    home = Home(tmp_path / "h").prepare()
    control.socket_path(home).touch()
    async with control.serve(home, obey):
        assert await asyncio.to_thread(control.is_running, home)


async def test_nonsense_is_refused_in_words():
    (refused,) = await control.answer_line(b"nonsense\n", obey)
    assert isinstance(refused, events.CommandRefused)
    assert refused.at == pytest.approx(time.time(), abs=60), "a journal says when"


@pytest.mark.parametrize("until", ["1e300", "-1"])
async def test_a_moment_that_no_clock_can_show_is_refused(until):
    (refused,) = await control.answer_line(b'{"type":"Pause","id":"a","until":%s}' % until.encode(), obey)
    assert isinstance(refused, events.CommandRefused)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (sqlite3.OperationalError("disk I/O error"), "OperationalError"),
    ],
)
async def test_what_nobody_expected_is_refused_in_words_and_logged_whole(caplog, error, why):
    async def obey(_command):
        raise error

    (refused,) = await control.answer_line(json_lines.line(commands.ListModels(id="7")), obey)
    assert (refused.id, refused.title) == ("7", f"The engine could not do that: {why}.")
    assert caplog.records[0].exc_info[1] is error
    caplog.clear()


def test_the_weather_is_that_of_now_not_of_the_last_event():
    state = State(
        at=60.0,
        phase="paused",
        ready=ready(at=60.0),
        reach="connected",
        peers={"p": events.PeerInfo(id="p", name="P", received=1)},
    )
    assert "online." in describe(state, 61.0)
    assert "hardly anything new arrives" in describe(state, 6000.0)


def test_a_span_of_ages_is_refused_in_words():
    assert pause.seconds_of("90m") == 5400.0
    with pytest.raises(EngineError, match="too long"):
        pause.seconds_of("99999999999999d")


@pytest.mark.parametrize(
    ("words_given", "words"),
    [
        ("pause 1h", "Write `waggle ctl pause --for 1h`"),
        ("status all", "`waggle ctl status` knows no all"),
        ("resume now please", "knows no now please"),
        ("pause --for 1h --until-away", "not both"),
        ("pause --for=", "Nothing is no span of time"),
        ("stop --after-round", "`waggle ctl stop` knows no --for, --until-away or --after-round"),
        ("resume --for 2h", "They belong to `waggle ctl pause`"),
        ("status --until-away", "knows no"),
    ],
)
def test_a_word_that_would_do_nothing_is_refused_with_what_to_write(words_given, words):
    with pytest.raises(EngineError, match=words):
        ctl.run(main.parse(["ctl", *words_given.split()]))


def test_a_pause_may_end_after_a_while_and_begin_after_the_round():
    command = pause.command_of(main.parse(["pause", "--for", "1h", "--after-round"]))
    assert (command.seconds, command.until, command.after_round, command.until_away) == (3600.0, None, True, False)


@pytest.mark.skipif(sys.platform == "win32", reason="it listens at a Unix socket")
def test_a_status_of_a_stuck_engine_is_given_up_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "STATUS_SECONDS", 0.1)
    home = Home(tmp_path).prepare()
    path = control.socket_path(home)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as stuck:  # it is connected to, and never answers
        stuck.bind(str(path))
        stuck.listen()
        began = time.monotonic()
        with pytest.raises(EngineError, match="does not answer"):
            engine.status(home)
    assert time.monotonic() - began < control.ANSWER_SECONDS / 4


def test_without_an_engine_one_is_told_how_to_start_it(tmp_path):
    with pytest.raises(EngineError, match="No engine is running"):
        control.send_command(Home(tmp_path), commands.Status(id="1"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows calls what is below a file absent")
def test_a_folder_that_cannot_be_looked_into_is_named_with_the_reason(tmp_path):
    (tmp_path / "file").touch()
    home = Home(tmp_path / "file")
    with pytest.raises(EngineError, match="cannot be asked: Not a directory"):
        control.send_command(home, commands.Status(id="1"))
    with pytest.raises(NotADirectoryError):
        control.is_running(home)


@ONLY_UNIX
def test_a_long_folder_name_still_gets_a_socket(tmp_path):
    path = control.socket_path(Home(tmp_path / ("x" * 200)))
    assert len(str(path)) <= LONGEST_SOCKET
    assert path != control.socket_path(Home(tmp_path / ("y" * 200)))


async def test_a_folder_that_takes_no_socket_is_named_with_the_reason(tmp_path, monkeypatch):
    """As FAT, exFAT and many network folders do."""

    async def refuse(*_, **__):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(asyncio, "start_unix_server" if control.UNIX else "start_server", refuse)
    with pytest.raises(EngineError) as caught:
        async with control.serve(Home(tmp_path).prepare(), obey):
            pass
    assert caught.value.title == f"The engine cannot listen in {tmp_path}: Operation not permitted."
    assert caught.value.advice == "Not every disk takes sockets: choose a folder on another with --home."


@pytest.fixture
def far(tmp_path, monkeypatch):
    """A home whose path is too long for a socket, and another folder for temporary files."""
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        yield Home(tmp_path / ("x" * 90)).prepare()


@ONLY_UNIX
async def test_an_engine_of_a_long_folder_name_is_found_by_this_user_alone_and_goodbye_takes_its_place_away(far):
    async with control.serve(far, obey):
        assert await asyncio.to_thread(control.send_command, far, commands.Resume(id="42")) == [events.CommandDone(id="42")]
    place = control.socket_path(far).parent
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert not place.is_relative_to(far.root)
    remove_data._stop(far)
    assert not place.exists()


@ONLY_UNIX
@pytest.mark.parametrize("prepared", ["a folder of another user", "a folder for everybody", "a link", "a file"])
async def test_neither_an_engine_nor_who_asks_it_uses_a_place_where_another_user_could_listen(far, prepared, monkeypatch):
    if prepared == "a folder of another user":
        monkeypatch.setattr(os, "getuid", lambda: 1_234_567)
    place = control.socket_path(far).parent
    if prepared == "a file":
        place.touch()
    elif prepared == "a link":
        far.control.chmod(0o700)
        place.symlink_to(far.control)
    else:
        place.mkdir()
        place.chmod(0o777 if prepared == "a folder for everybody" else 0o700)
    with pytest.raises(EngineError, match="not yours alone"):
        control.send_command(far, commands.Status(id="1"))
    with pytest.raises(EngineError, match="not yours alone"):
        await control._listen(far, lambda reader, writer: None)
    remove_data._stop(far)
    assert place.exists(), "what is not ours is left alone"


def test_status_says_how_sure_a_held_out_score_is():
    state = State(ready=READY, held_out=(events.HeldOutScore(round=3, at=0.0, right=3, total=63, exam="few", early=True),))
    assert "Held-out score: 3 of a first 63 after round 3, 95% interval: 2% to 13%." in describe(state, 1.0)
    whole = State(ready=READY, held_out=(events.HeldOutScore(round=25, at=0.0, right=90, total=270, exam="all"),))
    assert "Held-out score: 90 of 270 after round 25, 95% interval: 28% to 39%." in describe(whole, 1.0)
