"""`waggle-lab truth`: a line for each level, what resumes and what does not, and refusals in words."""

import argparse

import msgspec
import pytest

from waggle.core.errors import LabError, VerifierError
from waggle_lab.__main__ import main
from waggle_lab.truth import audit


def arguments(words: list[str]):
    parser = argparse.ArgumentParser()
    audit.add_arguments(parser)
    return parser.parse_args(words)


def test_each_level_has_a_line_and_an_interrupted_audit_continues(tmp_path, capsys, monkeypatch):
    out, calls = tmp_path / "truth.jsonl", []
    upstream = audit.audit_level

    def counted(dataset, level, settings, **more):
        calls.append(level)
        return upstream(dataset, level, settings, **more)

    monkeypatch.setattr(audit, "audit_level", counted)
    assert main(["truth", "--datasets", "chain_sum", "--levels", "easy", "--seeds", "20", "--out", str(out)]) == 0
    first = out.read_bytes()
    assert main(["truth", "--datasets", "chain_sum", "--seeds", "20", "--resume", "--out", str(out)]) == 0
    assert calls == ["easy", "standard", "hard"]
    reports = audit.read(out)
    assert list(reports) == [("chain_sum", "easy"), ("chain_sum", "hard"), ("chain_sum", "standard")]
    assert out.read_bytes().splitlines()[0] == first.strip()
    assert all((report.checked, report.false_keys, report.unreadable) == (20, 0, 0) for report in reports.values())
    assert capsys.readouterr().out.endswith("levels_audited 3\nunsound 0\nunchecked 0\nfailed 0\n")


@pytest.mark.parametrize("change", [{"seeds": 19}, {"settings": {"max_terms": 3}}, {"truth": "unchecked"}])
def test_a_line_about_something_else_is_measured_again(tmp_path, monkeypatch, change):
    out = tmp_path / "truth.jsonl"
    words = ["--datasets", "chain_sum", "--levels", "easy", "--seeds", "20", "--out", str(out)]
    audit.run(arguments(words))
    (report,) = audit.read(out).values()
    out.write_bytes(msgspec.json.encode(msgspec.structs.replace(report, **change)))
    calls = []
    monkeypatch.setattr(audit, "audit_level", lambda *_, **__: calls.append(1) or report)
    audit.run(arguments([*words, "--resume"]))
    assert calls == [1]
    audit.run(arguments([*words, "--resume"]))
    assert calls == [1]


def test_a_level_that_cannot_be_checked_does_not_stop_the_others(tmp_path, capsys, monkeypatch):
    upstream = audit.audit_level

    def broken(dataset, level, settings, **more):
        if level == "easy":
            raise VerifierError("no questions")
        return upstream(dataset, level, settings, **more)

    monkeypatch.setattr(audit, "audit_level", broken)
    words = ["--datasets", "chain_sum", "--levels", "easy,hard", "--seeds", "20", "--out", str(tmp_path / "truth.jsonl")]
    assert audit.run(arguments(words)) == 1
    assert list(audit.read(tmp_path / "truth.jsonl")) == [("chain_sum", "hard")]
    captured = capsys.readouterr()
    assert captured.out.endswith("failed 1\n")
    assert "chain_sum easy could not be checked: no questions" in captured.err


def test_unknown_names_and_files_are_refused_in_words(tmp_path):
    out = tmp_path / "truth.jsonl"
    with pytest.raises(LabError, match="no dataset no_such"):
        audit.run(arguments(["--datasets", "no_such", "--out", str(out)]))
    with pytest.raises(LabError, match="no level fiendish"):
        audit.run(arguments(["--levels", "fiendish", "--out", str(out)]))
    out.write_bytes(b"not an audit")
    with pytest.raises(LabError, match="holds an audit already"):
        audit.run(arguments(["--datasets", "gcd", "--out", str(out)]))
    with pytest.raises(LabError, match="is no audit"):
        audit.run(arguments(["--datasets", "gcd", "--out", str(out), "--resume"]))
