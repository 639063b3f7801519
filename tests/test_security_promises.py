"""Every promise of SECURITY.md names the tests that hold it.

Whoever changes a sentence there has to look here: the keys are the beginnings of its sentences.
"""

import ast
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from waggle.core.paths import Home

ROOT = Path(__file__).resolve().parents[1]
APP = ROOT / "app/waggle"
SANDBOX = "tests/tasks/sandbox/test_verifier_hardening.py"
ATTACKS = "tests/hostile/test_attacks.py"
AUDIT = "tests/tasks/test_audit_results.py"
SHARES = "tests/hostile/test_shares.py"
CONTROL = "tests/engine/control/test_server.py"
REPUTATION = "tests/network/limits/test_reputation.py"
HERE = "tests/test_security_promises.py"

PROMISES: dict[str, tuple[str, ...]] = {
    "No code of others runs": (
        f"{ATTACKS}::test_code_and_lies_in_answers_are_judged_and_of_no_effect",
        "tests/models/test_backend.py::test_settings_of_a_stranger_choose_no_code",
        f"{SANDBOX}::test_code_that_upstream_would_run_earns_nothing_and_does_not_even_cost_the_child",
    ),
    "Only texts travel between peers": (
        "tests/hostile/test_decoders.py::test_every_input_kept_from_fuzzing_is_read_or_refused",
        "tests/hostile/test_decoders.py::test_bytes_near_a_valid_message_are_read_or_refused",
    ),
    "Nothing that comes from outside is unpickled, evaluated": (
        f"{HERE}::test_nothing_is_unpickled_or_evaluated",
        "tests/gui/application/test_main_window.py::test_every_focusable_widget_has_a_name_and_every_label_is_plain_text",
        "tests/gui/widgets/typeset/test_highlighted_text.py::test_markup_stays_text",
        "tests/gui/widgets/typeset/test_highlighted_text.py::test_tooltips_never_become_rich_text",
        "tests/network/web/test_server.py::test_the_web_port_answers_reading_alone_and_forbids_scripts",
    ),
    "Model weights are read from safetensors files only": (
        "tests/models/inspection/test_inspector.py::test_weights_that_are_missing_or_pickled_are_refused",
        "tests/models/storage/test_hub_download.py::test_a_model_with_pickles_only_is_refused",
        "tests/tasks/sandbox/test_template_process.py::test_what_gets_out_of_the_sandbox_finds_the_doors_closed",
    ),
    "Answers are judged in a sandboxed process": (
        f"{SANDBOX}::test_the_real_child_wears_what_its_level_says",
        f"{SANDBOX}::test_a_scorer_that_evaluates_text_dies_of_it_says_why_and_the_verifier_goes_on",
    ),
    "Before it reads the first one it gives up new files": (
        f"{SANDBOX}::test_without_any_tripwire_the_limits_refuse_files_sockets_and_programs",
        f"{SANDBOX}::test_without_any_tripwire_the_kernel_refuses_what_the_limits_do_not_bind",
        f"{SANDBOX}::test_a_file_open_before_the_limits_cannot_be_written",
        f"{SANDBOX}::test_forking_fails_where_the_kernel_can_refuse_it",
        "tests/tasks/sandbox/test_seccomp.py::test_what_is_named_is_refused_and_so_is_what_is_newer_or_of_another_abi",
    ),
    "Truth is local": (
        "tests/tasks/sandbox/test_verifier.py::test_questions_are_the_same_in_another_process_and_the_digest_says_so",
    ),
    "Each node generates every question and its answer": (
        "tests/tasks/sandbox/test_verifier.py::test_questions_are_the_same_in_another_process_and_the_digest_says_so",
        f"{ATTACKS}::test_code_and_lies_in_answers_are_judged_and_of_no_effect",
    ),
    "Messages are bounded": (
        f"{ATTACKS}::test_every_bad_payload_is_refused_for_its_own_reason_and_its_sender_not_asked_again",
        f"{ATTACKS}::test_what_drips_or_never_ends_is_cut_off_and_holds_nobody_up",
    ),
    "Sizes are checked before decompression and decoding": (
        "tests/hostile/test_decoders.py::test_endless_nesting_is_refused",
        "tests/hostile/test_directory.py::test_an_answer_of_a_million_pieces_is_not_unpacked",
        f"{ATTACKS}::test_every_bad_payload_is_refused_for_its_own_reason_and_its_sender_not_asked_again",
    ),
    "Nobody can speak for somebody else": (
        f"{ATTACKS}::test_whoever_presents_anothers_groups_is_never_that_other",
        f"{ATTACKS}::test_a_greeting_may_not_carry_what_another_announced",
    ),
    "Announcements are signed by their origin": (
        "tests/network/identity/test_keys.py::test_a_signature_holds_for_its_domain_message_and_signer_only",
        "tests/hostile/test_directory.py::test_an_answer_from_another_id_is_kept_under_none",
    ),
    "Relays and gateways can withhold or delay": (
        "tests/network/transport/gateway/test_server.py::test_what_a_lying_gateway_makes_up_is_not_believed",
        "tests/hostile/test_gateways.py::test_what_a_gateway_makes_up_is_passed_over_and_the_next_one_asked",
    ),
    "No peer dominates": (f"{SHARES}::test_of_places_and_gradient_nobody_gets_more_than_a_quarter_however_much_it_sends",),
    "Every peer and every address range has a quota": (
        "tests/network/limits/test_rate_limits.py::test_an_address_range_has_one_share_and_of_all_that_are_relayed_a_peer_has_a_quarter",
        "tests/network/limits/test_rate_limits.py::test_ever_new_names_have_a_fifth_of_the_verifiers_time_or_half_once_trusted_and_one_name_a_twentieth",
        "tests/hostile/test_directory.py::test_one_who_stores_made_up_names_fills_a_quarter_of_the_room_whatever_it_renews",
        "tests/sapo/test_selection.py::test_of_many_parties_none_gets_more_than_a_quarter_of_the_places",
        "tests/sapo/test_selection.py::test_where_there_are_few_parties_each_may_fill_an_equal_part",
        "tests/sapo/test_selection.py::test_the_share_holds_for_any_pulls",
    ),
    "Text that is strange beside a right answer": (
        "tests/hostile/test_poison.py::test_a_phrase_planted_in_right_answers_is_learned_by_nobody_who_has_bounds",
        "tests/sapo/test_selection_with_a_policy.py::test_a_planted_phrase_is_left_out_and_the_plain_answer_beside_it_learned",
    ),
    "A rule breaker is not asked again for a while": (
        f"{ATTACKS}::test_every_bad_payload_is_refused_for_its_own_reason_and_its_sender_not_asked_again",
        f"{REPUTATION}::test_each_offence_doubles_the_time_in_doubt_and_a_quiet_day_forgives",
    ),
    "You can mute or block any peer": (
        f"{ATTACKS}::test_a_muted_peer_is_not_learned_from_and_a_blocked_one_gets_nothing_either",
        "tests/network/limits/test_reputation_file.py::test_a_block_holds_after_a_restart_and_is_told_at_once",
    ),
    "Specialties are audited": (f"{AUDIT}::test_whatever_is_listed_was_shown_the_corpus_and_tried_nothing",),
    "A swarm may ask only questions whose scorers passed an audit": (
        f"{AUDIT}::test_a_charter_that_names_what_is_refused_is_refused_and_says_why",
        f"{AUDIT}::test_the_first_charter_names_only_what_is_listed",
        f"{AUDIT}::test_a_charter_may_not_name_a_level_with_false_answers",
        "tests/tasks/test_catalogue.py::test_a_level_has_the_settings_of_the_list_and_others_do_not_exist",
    ),
    "Private swarms are closed": (
        "tests/network/identity/test_membership.py::test_members_of_a_private_swarm_share_and_an_outsider_neither_announces_nor_pulls",
    ),
    "Members accept announcements of members only": (
        "tests/network/identity/test_membership.py::test_the_guard_of_a_private_swarm_keeps_its_directory_for_members",
        "tests/network/identity/test_membership.py::test_members_of_a_private_swarm_share_and_an_outsider_neither_announces_nor_pulls",
        "tests/network/test_questions_download.py::test_only_members_get_the_pieces_of_a_private_swarm",
    ),
    "Other users of your computer are kept out": (f"{CONTROL}::test_only_this_user_can_reach_the_socket",),
    "Waggle's folders, its control socket and its keys are yours alone": (
        f"{HERE}::test_the_folders_of_a_home_are_closed_to_others",
        f"{CONTROL}::test_only_this_user_can_reach_the_socket",
        f"{CONTROL}::test_a_port_that_anybody_can_reach_answers_nobody_without_the_secret",
        "tests/network/identity/test_keys.py::test_the_key_file_is_made_once_and_read_again",
        "tests/network/identity/test_membership.py::test_a_key_is_kept_for_its_owner_only_and_shown_nowhere",
        "tests/core/system/test_hide_arguments.py::test_an_invite_is_written_over_wherever_it_stands_and_nothing_else_is",
        "tests/core/system/test_hide_arguments.py::test_joining_in_a_terminal_hides_the_link_while_it_waits",
    ),
    "Reports and logs name nobody": (
        "tests/core/text/test_redaction.py::test_who_and_where_is_left_out",
        "tests/core/test_log.py::test_secrets_are_taken_out",
    ),
    "What `waggle doctor` and the page Help show": (
        "tests/cli/test_doctor.py::test_what_waggle_says_of_itself_names_neither_node_nor_folder",
        "tests/gui/pages/help/test_page.py::test_a_report_and_a_copied_log_name_neither_swarm_nor_node_nor_the_computer_behind_ssh",
    ),
    "Nothing leaves your computer by itself": (f"{HERE}::test_a_node_that_trains_alone_connects_to_nobody",),
    "No account, no telemetry, no automatic update": (
        f"{HERE}::test_a_node_that_trains_alone_connects_to_nobody",
        "tests/cli/test_update.py::test_what_ships_has_an_empty_key_slot_and_asks_nobody",
        "tests/gui/pages/help/test_page.py::test_whether_there_is_a_newer_version_is_asked_only_when_pressed_and_the_answer_is_shown",
    ),
}

# Parts of promises that no test here holds, and why.
UNHELD = {
    "Nothing leaves your computer by itself": "In a swarm, p2pd's own connections are not traced: it is a Go program.",
    "Before it reads the first one it gives up new files": "On macOS the tests run in the workflow, in no other place.",
    "Waggle's folders, its control socket and its keys are yours alone": "Windows has no such modes; a folder there inherits.",
}

PICKLES = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}
EVALUATORS = {"eval", "exec", "compile", "torch.load", "numpy.load", "np.load", "yaml.load", "os.system", "os.popen"}
UNSAFE = {"trust_remote_code": True, "allow_pickle": True, "weights_only": False, "shell": True}

# Runs at the start of each Python process: writes down that it started, and each address that it connects, sends to or looks up.
WATCH = """
import os, sys

_file = os.open(os.environ["CONNECTIONS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(_file, f"started {os.getpid()}\\n".encode())

def _watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        address = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments
        if isinstance(address, tuple):
            try:
                os.write(_file, f"{event} {address[0]}\\n".encode())
            except OSError:  # a sandbox that may write no more
                pass

sys.addaudithook(_watch)
"""
LOCAL = re.compile(r"(127\.\d+\.\d+\.\d+|::1|localhost|None)")


def promises() -> list[str]:
    """The sentences of the promises."""
    section = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("## What is promised")[1].split("\n## ")[0]
    entries = [" ".join(entry.replace("**", "").split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)]
    return [sentence for entry in entries for sentence in re.split(r"(?<=[.])\s+", entry)]


def test_the_promises_are_read_whole() -> None:
    assert len(promises()) > 25
    assert promises()[0] == "No code of others runs."


def test_every_promise_names_its_tests() -> None:
    unnamed = [sentence for sentence in promises() if not any(sentence.startswith(key) for key in PROMISES)]
    assert unnamed == []


def test_no_test_is_named_for_a_promise_that_is_no_more() -> None:
    assert [key for key in (*PROMISES, *UNHELD) if not any(sentence.startswith(key) for sentence in promises())] == []
    assert UNHELD.keys() <= PROMISES.keys()


@pytest.mark.parametrize("name", sorted({name for names in PROMISES.values() for name in names}))
def test_a_test_that_holds_a_promise_exists(name: str) -> None:
    path, function = name.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    (test,) = [
        each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == function
    ]  # fmt: skip
    seldom = ("slow", "quiet", "xfail", "skip")  # not run, or allowed to fail, where a change is tested
    assert {ast.unparse(mark).split("(")[0].removeprefix("pytest.mark.") for mark in test.decorator_list}.isdisjoint(seldom)


def is_unsafe(keyword: ast.keyword) -> bool:
    """Whether an argument allows what runs code; what is not written out might."""
    safe = isinstance(keyword.value, ast.Constant) and keyword.value.value != UNSAFE.get(keyword.arg or "")
    return keyword.arg in UNSAFE and not safe


def unsafe_lines(source: str) -> list[str]:
    """What in a module could run code that somebody else wrote."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                lines += [f"import {name.name}" for name in names if name.name.split(".")[0] in PICKLES]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in PICKLES:
                lines.append(f"from {module} import")
            case ast.Call(func=function, keywords=keywords):
                called = ast.unparse(function)
                lines += [called] if called in EVALUATORS else []
                lines += [f"{called}({keyword.arg})" for keyword in keywords if is_unsafe(keyword)]
    return lines


def test_nothing_is_unpickled_or_evaluated() -> None:
    unsafe = {str(path.relative_to(APP)): lines for path in APP.rglob("*.py") if (lines := unsafe_lines(path.read_text("utf-8")))}
    assert unsafe == {}


def test_what_would_run_code_of_others_is_noticed() -> None:
    calls = "eval(x)\ntorch.load(f)\nopen_model(f, trust_remote_code=True)\n"
    assert unsafe_lines(f"import pickle\nfrom dill import loads\n{calls}") == [
        "import pickle", "from dill import", "eval", "torch.load", "open_model(trust_remote_code)",
    ]  # fmt: skip
    assert unsafe_lines("re.compile(x)\nmodel.eval()\nopen_model(f, trust_remote_code=False)\n") == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_the_folders_of_a_home_are_closed_to_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = Home(tmp_path / "home").prepare()
    finally:
        os.umask(before)
    folders = [home.root, *(path for path in home.root.rglob("*") if path.is_dir())]
    assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in folders} == {path.name: "0o700" for path in folders}
    assert {home.control, home.charters, home.events, home.questions, home.model.checkpoints} <= {*folders}


def connections(tmp_path: Path, *command: str) -> tuple[int, set[str]]:
    """How many Python processes a command started, and with which other computers they wanted to speak."""
    (tmp_path / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    noted = tmp_path / "connections"
    environment = {**os.environ, "CONNECTIONS": str(noted), "PYTHONPATH": os.pathsep.join([str(tmp_path), str(APP.parent)])}
    subprocess.run([sys.executable, *command], env=environment, check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    lines = noted.read_text(encoding="utf-8").splitlines()
    others = {line for line in lines if not line.startswith("started ") and not LOCAL.fullmatch(line.split(" ", 1)[1])}
    return len({line for line in lines if line.startswith("started ")}), others


def test_a_node_that_trains_alone_connects_to_nobody(tmp_path: Path) -> None:
    processes, others = connections(tmp_path, "-m", "waggle", "selftest")
    assert processes >= 2, "the command and the engine; the sandboxed children start without this watch, and get no socket"
    assert others == set()


def test_who_connects_to_somebody_is_noticed(tmp_path: Path) -> None:
    sends = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {sends!r}])"
    assert connections(tmp_path, "-c", starts) == (2, {"socket.connect 192.0.2.1"})
