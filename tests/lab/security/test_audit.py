"""Test the audit on real scorers: dangerous ones, and ones that Waggle has made safe."""

import argparse
import math
from contextlib import closing

import pytest

from waggle.core.errors import LabError
from waggle.tasks.audit_results import read
from waggle.tasks.sandbox import messages
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.__main__ import main
from waggle_lab.security import audit, hostile_texts
from waggle_lab.security.audit_child import AuditChild, UnusableDataset


def test_upstreams_scorer_of_binary_matrix_is_caught_evaluating_text_and_the_text_is_not_run(tmp_path):
    trap = tmp_path / "ran"
    with closing(AuditChild(messages.ExamineDataset("binary_matrix", upstream=True))) as child:
        assert child.score(1, f"__import__('pathlib').Path({str(trap)!r}).touch()").events == ["compile"]
        assert not trap.exists()
    with closing(AuditChild(messages.ExamineDataset("binary_matrix"))) as child:
        assert child.score(1, "__import__('os')").events == []


@pytest.mark.parametrize("dataset", ["puzzle24", "spiral_matrix"])
def test_a_scorer_that_evaluates_text_is_caught_by_the_corpus(dataset):
    with closing(AuditChild(messages.ExamineDataset(dataset))) as child:
        assert any(child.score(1, text).events for text in hostile_texts.fixed())


def test_a_scorer_that_stalls_over_a_short_text_takes_forever_and_the_child_starts_again():
    with closing(AuditChild(messages.ExamineDataset("coin_flip"))) as child:
        assert child.score(1, "1e999999999").seconds == math.inf
        assert child.score(1, "1/2").seconds < audit.QUICK_SECONDS


@pytest.mark.parametrize("dataset", ["composite", "word_ladder"])
def test_a_dataset_that_cannot_work_in_the_sandbox_is_unusable(dataset):
    with pytest.raises(UnusableDataset):
        AuditChild(messages.ExamineDataset(dataset))


def test_an_interrupted_audit_goes_on_with_what_is_missing_and_counts(tmp_path, capsys):
    out = tmp_path / "audit.jsonl"
    assert main(["audit", "--datasets", "codeio", "--out", str(out)]) == 0
    with pytest.raises(LabError, match="holds an audit already"):
        audit.run(arguments(["--datasets", "bf", "--out", str(out)]))
    assert main(["audit", "--datasets", "codeio,bf", "--out", str(out), "--resume"]) == 0
    assert capsys.readouterr().out.endswith("datasets_audited 2\nlisted 1\nrefused 1\n")
    findings = read(out).findings
    assert list(findings) == ["bf", "codeio"]
    assert findings["bf"].listed
    assert findings["bf"].longest == audit.ANSWER_LENGTHS[-1]
    assert findings["codeio"].reasons == (
        "its questions cannot be made where answers are judged (they need codeio.jsonl.gz opened)",
    )


def test_a_dataset_that_does_not_exist_and_a_file_that_is_no_audit_are_refused_in_words(tmp_path):
    with pytest.raises(LabError, match="has no dataset no_such"):
        audit.run(arguments(["--datasets", "no_such", "--out", str(tmp_path / "new")]))
    other = tmp_path / "other"
    other.write_bytes(b"not an audit")
    with pytest.raises(LabError, match="is no audit"):
        audit.run(arguments(["--datasets", "bf", "--out", str(other), "--resume"]))


def arguments(words: list[str]):
    parser = argparse.ArgumentParser()
    audit.add_arguments(parser)
    return parser.parse_args(words)


def test_the_corpus_is_bounded_by_the_length_that_is_asked_for():
    assert audit.ANSWER_LENGTHS[0] == first_swarm().completion_characters
    for length in audit.ANSWER_LENGTHS:
        texts = [*hostile_texts.growing(length), *hostile_texts.swollen("12 34", length)]
        assert all(length / 2 < len(text) <= length for text in texts)
    assert all(len(text) <= audit.ANSWER_LENGTHS[0] for text in hostile_texts.fixed())
    assert len(set(hostile_texts.fixed())) == len(hostile_texts.FIXED_TEXTS)
