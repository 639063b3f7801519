"""The command that fuzzes: real, for a second; and what it writes down."""

import argparse
import resource
from pathlib import Path

import pytest

from waggle.core.errors import LabError
from waggle_lab.__main__ import main
from waggle_lab.security import decoders, fuzz
from waggle_lab.security.fuzz import Finding, Slice

FOUND = Finding(kind="crash", says="ValueError", input="00")


def slice_of(name: str, seconds: float, *findings: Finding) -> Slice:
    return Slice(
        decoder=name, ended="", seconds=seconds, executions=5, coverage=1, corpus=1, findings=findings, commit="c", machine="m"
    )


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fuzz.add_arguments(parser)
    return parser.parse_args(words)


def test_a_second_of_fuzzing_leaves_a_line_in_the_log_and_inputs_to_go_on_from(tmp_path, capsys):
    pytest.importorskip("atheris", reason="there is none for this system")
    log, kept = tmp_path / "log.jsonl", tmp_path / "kept"
    words = ("command", "--minutes", "0.02", "--corpus", str(tmp_path / "corpus"), "--log", str(log), "--keep", str(kept))
    assert fuzz.run(asked(*words)) == 0
    (slice_,) = fuzz.read(log)
    assert slice_.decoder == "command"
    assert slice_.executions > 0
    assert slice_.coverage > 0
    assert slice_.findings == ()
    assert "minutes without a finding" in capsys.readouterr().err
    assert 5 <= len(decoders.kept(kept, "command")) <= fuzz.KEPT


def test_time_counts_from_the_last_finding_on():
    slices = [slice_of("charter", 60), slice_of("charter", 9, FOUND), slice_of("charter", 30), slice_of("invite", 5)]
    clean = fuzz.clean_seconds(slices)
    assert (clean["charter"], clean["invite"], clean["record"]) == (30, 5, 0)
    assert "20 inputs in all" in fuzz.summary(slices)


def test_what_the_fuzzer_stopped_at_is_written_down_with_the_reason(tmp_path):
    path = tmp_path / "crash-0123"
    path.write_bytes(b"\xff\0")
    said = "INFO\n\n === Uncaught Python exception: ===\nValueError: no\nTraceback ...\n\n==7== ERROR: libFuzzer: target exited\n"
    assert fuzz.finding(path, said) == Finding(kind="crash", says="ValueError: no\nTraceback ...\n", input="ff00")
    (tmp_path / "timeout-0123").write_bytes(b"")
    stopped = fuzz.finding(tmp_path / "timeout-0123", "==7== ERROR: libFuzzer: timeout after 10 seconds\n")
    assert (stopped.kind, stopped.says) == ("timeout", "==7== ERROR: libFuzzer: timeout after 10 seconds")


@pytest.mark.parametrize("content", [b"{}\n", b"\xff\n", b"no log"])
def test_a_file_that_is_no_log_is_refused_and_left_as_it_is(tmp_path, content):
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)
    with pytest.raises(LabError, match="is not a slice of fuzzing"):
        fuzz.read(log)
    assert log.read_bytes() == content


def test_what_its_parent_once_needed_is_no_finding():
    """A process that needed two gigabytes before it started a fuzzer had each of them end at once."""

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    before, said, after = peak(), fuzz.limits(), peak()
    assert {f"-rss_limit_mb={fuzz.MEMORY_MB + mb}" for mb in range(before, after + 1)} & {*said}


@pytest.mark.parametrize("options", [["--seeds", "afile"], ["--keep", "afile"], ["--log", "afile/log.jsonl"]])
def test_places_are_looked_at_before_anything_is_fuzzed(options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("afile").touch()
    assert main(["fuzz", "reply", "--minutes", "0", "--corpus", "corpus", *options]) == 1
    said = capsys.readouterr().err
    assert said.startswith("waggle: ")
    assert "without a finding" not in said
