"""The hardening of the verifier's child: each part in a process of its own, then real attacks on the real child."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import waggle
from waggle.core.errors import CharterError, VerifierError, VerifierGone
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox import child_process, messages
from waggle.tasks.sandbox import verifier as verifying
from waggle.tasks.sandbox.child_process import ChildProcess
from waggle.tasks.sandbox.hardening import TRIPPED
from waggle.tasks.sandbox.messages import DatasetLevels
from waggle.tasks.sandbox.verifier import UNJUDGED, Verifier
from waggle.tasks.shipped_swarms import first_swarm

SCORER = """
import ctypes, os, socket, subprocess, sys
from waggle.tasks.sandbox import hardening

OBEYS = {
    "eval": lambda: eval("1 + 1"),
    "exec": lambda: exec("x = 1"),
    "run": lambda: exec(CODE),
    "import": lambda: __import__("colorsys"),
    "open": lambda: open("trap", "w"),
    "read": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "list": lambda: os.listdir("."),
    "remove": lambda: os.remove("trap"),
    "socket": lambda: socket.socket(),
    "resolve": lambda: socket.gethostbyname(b"localhost"),
    "fork": lambda: os.fork(),
    "system": lambda: os.system("touch trap"),
    "popen": lambda: subprocess.Popen(["touch", "trap"]),
    "become": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), 0),
    "native": lambda: ctypes.CDLL(None),
    "unhook": lambda: sys.addaudithook(print),
    "nothing": lambda: id(hardening),
}
CODE = compile("import os", "text", "exec")

def told(event):
    os.write(1, event.encode())
"""
TRIPS = {
    "eval": "compile",
    "exec": "compile",
    "run": "exec",
    "import": "import",
    "open": "open",
    "read": "open",
    "list": "os.listdir",
    "remove": "os.remove",
    "socket": "socket.__new__",
    "resolve": "socket.gethostbyname",
    "fork": "os.fork",
    "system": "os.system",
    "popen": "subprocess.Popen",
    "become": "os.exec",
    "kill": "os.kill",
    "native": "ctypes.dlopen",
    "unhook": "sys.addaudithook",
}
NOBODY = 65534
ATTEMPTS = (
    "os.unlink('kept')", "os.rename('kept', 'moved')", "os.truncate('kept', 0)", "os.ftruncate(own, 0)", "os.chmod('kept', 0)",
    "os.utime('kept', (0, 0))", "os.link('kept', 'twin')", "os.symlink('kept', 'twin')", "os.mkdir('made')", "os.mkfifo('made')",
    "os.setxattr('kept', 'user.a', b'b')", "os.kill(os.getpid(), 0)", "os.setpriority(os.PRIO_PROCESS, 0, 19)",
    "os.execv('/bin/true', ['true'])", "os.fork() or os._exit(0)", "os.posix_spawn('/bin/true', ['true'], {})",
    "resource.prlimit(os.getpid(), resource.RLIMIT_CPU, (1, 1))", "socket.socket()", "os.pidfd_open(os.getpid())",
    "native('shmat', -1, 0, 0)", "native('shmctl', -1, 0, 0)", "native('msgsnd', -1, b'12345678', 0, 0)",
    "native('msgrcv', -1, b'12345678', 0, 0, 0)", "native('msgctl', -1, 0, 0)", "native('semop', -1, b'123456', 1)",
    "native('semctl', -1, 0, 0)", "native('mq_unlink', b'/none')", "os.chroot('/')", "socket.sethostname(socket.gethostname())",
)  # fmt: skip
BREAK_OUT = f"""
own, system = os.open("kept", os.O_RDWR), ctypes.CDLL(None, use_errno=True)

def native(name, *given):
    if getattr(system, name)(*given) == -1:
        raise OSError(ctypes.get_errno(), name)

level, refused = hardening.drop_privileges(), 0
for attempt in {ATTEMPTS!r}:
    try:
        eval(attempt)
        os.write(1, attempt.encode())
    except PermissionError:
        refused += 1
os.write(1, f"{{level}} refused {{refused}}".encode())
"""
unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits; hardening.py says so")


def run(body: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = dict(os.environ, PYTHONPATH=str(Path(waggle.__file__).parents[1]))
    return subprocess.run(
        [sys.executable, "-c", SCORER + body], cwd=folder, env=environment, capture_output=True, timeout=60, check=False
    )


def completion_of(text: str) -> Completion:
    return Completion(text=f"<answer>{text}</answer>", ended=True)


def levels_of(*datasets: str) -> tuple[DatasetLevels, ...]:
    """These datasets with their default settings, also those that no charter may name."""
    return tuple(DatasetLevels(dataset, ({},)) for dataset in datasets)


@pytest.mark.parametrize(("text", "event"), TRIPS.items())
def test_an_armed_scorer_that_obeys_a_text_ends_at_once_and_names_what_it_tried(text, event, tmp_path):
    done = run(f"hardening.install_tripwire(told)\nOBEYS[{text!r}]()\nos.write(1, b'went on')", tmp_path)
    assert (done.returncode, done.stdout.decode()) == (TRIPPED, event)
    assert list(tmp_path.iterdir()) == []


def test_a_scorer_that_does_nothing_forbidden_goes_on(tmp_path):
    assert (
        run("hardening.install_tripwire(told)\nOBEYS['nothing']()\nos.write(1, b'went on')\nos._exit(0)", tmp_path).stdout
        == b"went on"
    )


def test_the_tripwire_rests_only_inside_its_context_even_when_that_raises(tmp_path):
    body = """
unarmed = hardening.install_tripwire(told)
try:
    with unarmed():
        os.write(1, b"%d " % OBEYS["eval"]())
        raise ValueError
except ValueError:
    OBEYS["eval"]()
"""
    done = run(body, tmp_path)
    assert (done.returncode, done.stdout) == (TRIPPED, b"2 compile")


def test_a_child_whose_last_words_fail_ends_all_the_same(tmp_path):
    assert run("hardening.install_tripwire(lambda event: 1 / 0)\nOBEYS['open']()", tmp_path).returncode == TRIPPED


@unix
@pytest.mark.parametrize("text", ["open", "read", "socket", "list", "popen"])
def test_without_any_tripwire_the_limits_refuse_files_sockets_and_programs(text, tmp_path):
    attempt = f"try:\n    OBEYS[{text!r}]()\nexcept OSError as error:\n    os.write(1, type(error).__name__.encode())"
    done = run("hardening.drop_privileges()\n" + attempt, tmp_path)
    assert done.stdout in (b"OSError", b"PermissionError")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the filter of system calls is Linux's")
def test_without_any_tripwire_the_kernel_refuses_what_the_limits_do_not_bind(tmp_path):
    """As a user without any right but to its own folder, and where the tests run as root, as root too."""
    for user in {os.getuid(), NOBODY} if os.getuid() == 0 else {os.getuid()}:
        (folder := tmp_path / str(user)).mkdir()
        (folder / "kept").write_text("words")
        for path in (folder, folder / "kept"):
            os.chown(path, user, -1)
        done = run(f"import resource\nif os.getuid() != {user}:\n    os.setuid({user})\n{BREAK_OUT}", folder)
        assert done.stdout.decode() == f"filtered refused {len(ATTEMPTS)}", done.stderr
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("kept", "words")]


@unix
def test_a_file_open_before_the_limits_cannot_be_written(tmp_path):
    body = "out = os.open('kept', os.O_CREAT | os.O_WRONLY)\nhardening.drop_privileges()\nos.write(out, b'stolen')"
    assert run(body, tmp_path).returncode != 0
    assert (tmp_path / "kept").read_bytes() == b""


@unix
def test_no_place_is_free_for_another_file_below_the_highest_nor_where_one_is_closed(tmp_path):
    (tmp_path / "kept").write_text("words")
    body = """
os.dup2(1, 40)
hardening.drop_privileges()
for close in (False, True):
    if close:
        os.close(0)
    for attempt in (
        lambda: os.open("kept", os.O_RDONLY), lambda: os.open("kept", os.O_WRONLY | os.O_TRUNC),
        lambda: os.open("made", os.O_WRONLY | os.O_CREAT), lambda: os.dup(1), lambda: os.dup2(1, 0), os.pipe,
    ):
        try:
            attempt()
            os.write(1, b"went on ")
        except OSError:
            os.write(1, b"refused ")
"""
    assert run(body, tmp_path).stdout.split() == [b"refused"] * 12
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept", "words")]


@unix
def test_forking_fails_where_the_kernel_can_refuse_it(tmp_path):
    body = (
        "level = hardening.drop_privileges()\ntry:\n    os.fork() or os._exit(0)\nexcept OSError:\n    os.write(1, b'refused ')\n"
    )
    done = run(body + "os.write(1, level.encode())", tmp_path)
    if os.getuid() == 0 and done.stdout == b"limited":
        pytest.skip("NPROC does not bind root: the tripwire alone refuses a fork")
    assert done.stdout.startswith(b"refused")


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit is kept on Linux only")
def test_a_memory_bomb_ends_in_an_error_and_not_in_swap(tmp_path):
    body = (
        "hardening.limit_memory()\nhardening.drop_privileges()\n"
        "try:\n    [0] * (1 << 40)\nexcept MemoryError:\n    os.write(1, b'refused')"
    )
    assert run(body, tmp_path).stdout == b"refused"


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit and /proc are Linux")
def test_the_real_child_wears_what_its_level_says(verifier):
    import resource

    assert resource.prlimit(verifier.pid, resource.RLIMIT_FSIZE) == (0, 0)
    assert resource.prlimit(verifier.pid, resource.RLIMIT_CORE) == (0, 0)
    assert resource.prlimit(verifier.pid, resource.RLIMIT_NOFILE) == (0, 0)
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{verifier.pid}/status").read_text().splitlines())
    assert (verifier.sandbox, status["Seccomp"]) == ("filtered", "2")


def test_code_that_upstream_would_run_earns_nothing_and_does_not_even_cost_the_child(verifier, tmp_path):
    trap = tmp_path / "ran"
    (question,), child = verifier.questions([QuestionKey("binary_matrix", 3)]), verifier.pid
    texts = [
        f"__import__('os').system('touch {trap}')",
        f"[[__import__('pathlib').Path({str(trap)!r}).touch()]]",
        f"(lambda: open({str(trap)!r}, 'w'))()",
        f"().__class__.__base__.__subclasses__()[{{}}] or {str(trap)!r}",
        "[" * 5000,
    ]
    verdicts = verifier.judge_strangers([(question, completion_of(text)) for text in texts])
    assert [verdict.reward for verdict in verdicts] == [0.0] * len(texts)
    assert (trap.exists(), verifier.pid) == (False, child)


@pytest.mark.parametrize("dataset", ["countdown", "puzzle24"])
def test_a_scorer_that_evaluates_text_dies_of_it_says_why_and_the_verifier_goes_on(dataset, tmp_path):
    trap, reasons = tmp_path / "ran", []
    own = Verifier(first_swarm(), datasets=levels_of(dataset, "bf"), restarted=reasons.append)
    try:
        attacked, honest = own.questions([QuestionKey(dataset, 3), QuestionKey("bf", 3)])
        (answer,) = own.answers([QuestionKey("bf", 3)])
        attack = completion_of(f"__import__('os').system('touch {trap}')")
        with pytest.raises(VerifierError, match="a scorer tried compile on a text"):
            own.judge_strangers([(honest, completion_of(answer)), (attacked, attack)])
        verdicts = own.judge([(honest, completion_of(answer)), (attacked, attack)])
        assert verdicts[0].reward == 1.0
        assert verdicts[1] == UNJUDGED
        assert set(reasons) == {"a scorer tried compile on a text"}
        assert not trap.exists()
    finally:
        own.close()


def test_an_endless_answer_and_a_kill_are_told_apart_and_the_child_comes_back(monkeypatch):
    monkeypatch.setattr(verifying, "BATCH_SECONDS", 240.0)  # however little of the processor it gets meanwhile
    reasons: list[str] = []
    own = Verifier(first_swarm(), datasets=levels_of("coin_flip", "bf"), restarted=reasons.append)
    try:
        coin, honest = own.questions([QuestionKey("coin_flip", 3), QuestionKey("bf", 3)])
        with pytest.raises(VerifierError, match="no answer within 2 s of work") as blamed:
            own.judge_strangers([(coin, completion_of("1e999999999"))])
        assert not isinstance(blamed.value, VerifierGone)
        os.kill(own.pid, signal.SIGTERM)
        (answer,) = own.answers([QuestionKey("bf", 3)])
        assert own.judge_strangers([(honest, completion_of(answer))])[0].reward == 1.0
        assert reasons[0] == "no answer within 2 s of work"
        assert reasons[1].startswith("it ended with ")
        assert len(reasons) == 2
    finally:
        own.close()


def test_a_text_that_takes_memory_without_end_ends_the_child_where_the_kernel_gives_it(monkeypatch):
    """As on macOS, whose kernel does: the parent looks. Here what the child has anyway is too much."""
    asking = ChildProcess("waggle.tasks.sandbox.verifier_process", messages.reply)
    try:
        asking.ask(messages.Prepare(levels_of("coin_flip")), 60.0)
        monkeypatch.setattr(child_process, "MEMORY_BYTES", 1 << 20)
        with pytest.raises(EOFError, match="took more than"):
            asking.ask(messages.Judge([(QuestionKey("coin_flip", 3), "<answer>1e999999999</answer>", True)]), 60.0)
        assert asking.process.poll() is not None
    finally:
        asking.end()


def test_questions_are_still_made_behind_closed_doors_also_those_that_need_a_file_of_words():
    own = Verifier(first_swarm(), datasets=levels_of("basic_arithmetic", "word_sorting", "spell_backward"))
    try:
        child = own.pid
        for dataset in ("basic_arithmetic", "word_sorting", "spell_backward"):
            keys = [QuestionKey(dataset, 10**6 + i) for i in range(20)]
            items = [(q, completion_of(answer)) for q, answer in zip(own.questions(keys), own.answers(keys), strict=True)]
            assert all(verdict.reward == 1.0 for verdict in own.judge_strangers(items))
        assert own.pid == child
    finally:
        own.close()


@unix
def test_a_specialty_that_opens_a_file_for_every_question_is_refused_in_words():
    with pytest.raises(CharterError, match="cannot be made here"):
        Verifier(first_swarm(), datasets=levels_of("group_anagrams"))


@pytest.mark.parametrize("name", ["{trap}", "../data/words3to10.txt"])
def test_a_setting_that_names_another_file_than_those_that_ship_with_reasoning_gym_reads_nothing(name, tmp_path):
    (trap := tmp_path / "secret").write_text("thesecret\n")
    reads = DatasetLevels("spell_backward", ({"data_file": name.format(trap=trap), "max_word_len": 500},))
    with pytest.raises(CharterError, match="reasoning-gym has no file"):
        Verifier(first_swarm(), datasets=(reads,)).close()
