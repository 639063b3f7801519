"""`waggle-lab truth`: a line for each level, what resumes and what does not, and refusals in words."""

import argparse

import msgspec
import pytest

from waggle.core import paths
from waggle.core.errors import LabError, VerifierError
from waggle.tasks import audit_results
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
    figures = dict(line.split() for line in capsys.readouterr().out.splitlines()[-11:])
    assert {name: figures[name] for name in ("levels_audited", "levels_checked", "levels_unchecked", "false_keys_max")} == {
        "levels_audited": "3", "levels_checked": "3", "levels_unchecked": "0", "false_keys_max": "0",
    }  # fmt: skip
    assert float(figures["constant_wins_max"]) < 0.55


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


def test_what_was_found_is_noted_in_the_list_of_audited_datasets(tmp_path):
    listed = tmp_path / "audit.jsonl"
    listed.write_bytes((paths.resources() / "audit.jsonl").read_bytes())
    before = audit_results.read(listed)
    words = ["--datasets", "chain_sum", "--levels", "easy,hard", "--seeds", "20", "--out", str(tmp_path / "truth.jsonl")]
    assert audit.run(arguments([*words, "--write-audit", str(listed)])) == 0
    after = audit_results.read(listed)
    assert {level: (truth.checked, truth.false) for level, truth in after.findings["chain_sum"].truth.items()} == {
        "easy": (20, 0),
        "hard": (20, 0),
    }
    assert [before.findings[name] == finding for name, finding in after.findings.items()].count(False) == 1
    with pytest.raises(LabError, match="cannot be changed"):
        audit.run(arguments([*words, "--resume", "--write-audit", str(tmp_path / "none.jsonl")]))


def test_a_level_without_an_oracle_or_a_report_is_noted_as_unchecked(tmp_path, monkeypatch):
    listed = tmp_path / "audit.jsonl"
    listed.write_bytes((paths.resources() / "audit.jsonl").read_bytes())
    monkeypatch.setattr(audit, "oracles", dict)
    words = ["--datasets", "chain_sum", "--levels", "easy", "--seeds", "20", "--out", str(tmp_path / "truth.jsonl")]
    assert audit.run(arguments([*words, "--write-audit", str(listed)])) == 0
    assert audit_results.read(listed).findings["chain_sum"].truth == {"easy": "unchecked"}
    audit.write_truth(listed, audit.chosen_levels(["gcd"], ["hard"]), {}, 20)
    assert audit_results.read(listed).findings["gcd"].truth == {"hard": "unchecked"}


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
