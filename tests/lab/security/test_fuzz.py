"""Test `waggle-lab fuzz`: a real second of it, and what it records."""

import argparse
import resource
from pathlib import Path

import pytest

from waggle.core.errors import LabError
from waggle_lab.__main__ import main
from waggle_lab.security import decoders, fuzz
from waggle_lab.security.fuzz import Finding, FuzzRun

CRASH = Finding(kind="crash", says="ValueError", input="00")


def run_of(name: str, seconds: float, *findings: Finding) -> FuzzRun:
    return FuzzRun(
        decoder=name, ended="", seconds=seconds, executions=5, coverage=1, corpus=1, findings=findings, commit="c", machine="m"
    )


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fuzz.add_arguments(parser)
    return parser.parse_args(words)


def test_a_second_of_fuzzing_leaves_a_line_in_the_log_and_inputs_to_go_on_from(tmp_path, capsys):
    pytest.importorskip("atheris", reason="there is none for this system")
    log, corpus_folder = tmp_path / "log.jsonl", tmp_path / "kept"
    words = (
        "command",
        "--minutes",
        "0.02",
        "--corpus",
        str(tmp_path / "corpus"),
        "--log",
        str(log),
        "--keep",
        str(corpus_folder),
    )
    assert fuzz.run(parse(*words)) == 0
    (run,) = fuzz.read(log)
    assert run.decoder == "command"
    assert run.executions > 0
    assert run.coverage > 0
    assert run.findings == ()
    assert "minutes without a finding" in capsys.readouterr().err
    assert 5 <= len(decoders.read_corpus(corpus_folder, "command")) <= fuzz.CORPUS_INPUTS


def test_time_counts_from_the_last_finding_on():
    runs = [run_of("charter", 60), run_of("charter", 9, CRASH), run_of("charter", 30), run_of("invite", 5)]
    clean = fuzz.clean_seconds(runs)
    assert (clean["charter"], clean["invite"], clean["record"]) == (30, 5, 0)
    assert "20 inputs in all" in fuzz.summary(runs)


def test_what_the_fuzzer_stopped_at_is_written_down_with_the_reason(tmp_path):
    path = tmp_path / "crash-0123"
    path.write_bytes(b"\xff\0")
    output = (
        "INFO\n\n === Uncaught Python exception: ===\nValueError: no\nTraceback ...\n\n==7== ERROR: libFuzzer: target exited\n"
    )
    assert fuzz.read_finding(path, output) == Finding(kind="crash", says="ValueError: no\nTraceback ...\n", input="ff00")
    (tmp_path / "timeout-0123").write_bytes(b"")
    stopped = fuzz.read_finding(tmp_path / "timeout-0123", "==7== ERROR: libFuzzer: timeout after 10 seconds\n")
    assert (stopped.kind, stopped.says) == ("timeout", "==7== ERROR: libFuzzer: timeout after 10 seconds")


@pytest.mark.parametrize("content", [b"{}\n", b"\xff\n", b"no log"])
def test_a_file_that_is_no_log_is_refused_and_left_as_it_is(tmp_path, content):
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)
    with pytest.raises(LabError, match="is not a run of fuzzing"):
        fuzz.read(log)
    assert log.read_bytes() == content


def test_what_its_parent_once_needed_is_no_finding():
    """A process that needed two gigabytes before it started a fuzzer had each of them end at once."""

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    before, options, after = peak(), fuzz.libfuzzer_limits(), peak()
    assert {f"-rss_limit_mb={fuzz.MEMORY_MB + mb}" for mb in range(before, after + 1)} & {*options}


@pytest.mark.parametrize("options", [["--seeds", "afile"], ["--keep", "afile"], ["--log", "afile/log.jsonl"]])
def test_places_are_looked_at_before_anything_is_fuzzed(options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("afile").touch()
    assert main(["fuzz", "reply", "--minutes", "0", "--corpus", "corpus", *options]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("waggle: ")
    assert "without a finding" not in errors
