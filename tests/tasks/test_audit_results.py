"""The audit that ships with Waggle, and the datasets that charters may name."""

import msgspec
import pytest

from waggle.core.errors import CharterError
from waggle.tasks import audit_results, catalogue
from waggle.tasks.audit_results import Audit, AuditFinding, AuditHeading, LevelTruth
from waggle.tasks.charter import LONGEST_COMPLETION, REASONING_GYM, Charter, Specialty, check, decode, encode
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab.security import audit_child

AUDIT = Audit(
    heading=AuditHeading(reasoning_gym="1", python="3"),
    findings={
        "good": AuditFinding(dataset="good", listed=True, longest=400),
        "bad": AuditFinding(dataset="bad", listed=False, reasons=("it runs text", "it stalls"), longest=400),
    },
)


def test_a_level_is_checked_or_not():
    truth = {"easy": LevelTruth(checked=2000, false=3, constant=0.5), "standard": "unchecked"}
    known = msgspec.structs.replace(AUDIT, findings={"good": AuditFinding(dataset="good", listed=True, truth=truth)})
    assert [known.is_checked("good", level) for level in ("easy", "standard", "hard")] == [True, False, False]
    assert [known.false_keys("good", level) for level in ("easy", "standard", "hard")] == [3, 0, 0]
    assert not known.is_checked("new", "easy")


@pytest.mark.parametrize(
    "truth",
    [
        b'{"easy":"checked"}',
        b'{"easy":{"checked":1,"false":0}}',
        b'{"deadly":"unchecked"}',
        b'{"easy":{"checked":1,"false":0,"constant":0,"x":1}}',
    ],
)
def test_another_form_of_what_was_found_is_refused(truth):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"dataset":"good","listed":true,"truth":%s}' % truth, type=AuditFinding)


def test_no_level_that_a_charter_may_name_has_a_false_key_or_a_winning_constant():
    audit = audit_results.shipped_audit()
    for entry in catalogue.catalogue_entries():
        assert list(audit.findings[entry.dataset].truth) == list(entry.levels), entry.dataset
        for level, truth in audit.findings[entry.dataset].truth.items():
            assert entry.levels[level].checked == (truth != "unchecked")
            if truth != "unchecked":
                assert (truth.checked >= 2000, truth.false, truth.constant <= 0.55) == (True, 0, True), (entry.dataset, level)


def test_a_charter_may_not_name_a_level_with_false_answers(monkeypatch):
    shipped = audit_results.shipped_audit()
    truth = {"easy": LevelTruth(checked=2000, false=0, constant=0.5), "standard": LevelTruth(checked=2000, false=1, constant=0.5)}
    finding = msgspec.structs.replace(shipped.findings["bf"], truth=truth)
    changed = msgspec.structs.replace(shipped, findings={**shipped.findings, "bf": finding})
    monkeypatch.setattr(audit_results, "shipped_audit", lambda: changed)
    specialty = Specialty(dataset="bf", title="Tiny programs", levels=("easy",))
    check(Charter(name="Easy", specialties=(specialty,)))
    with pytest.raises(CharterError, match="names a level of bf with false answers"):
        check(Charter(name="Both", specialties=(msgspec.structs.replace(specialty, levels=("easy", "standard")),)))


def naming(*datasets: str, **changes) -> bytes:
    specialties = tuple(Specialty(dataset=dataset, title="One") for dataset in datasets)
    return encode(msgspec.structs.replace(first_swarm(), specialties=specialties, questions_digest="", **changes))


@pytest.mark.parametrize(
    ("dataset", "characters", "says"),
    [
        ("good", 400, ""),
        ("good", 401, "quick only up to 400 characters, and this charter allows 401"),
        ("bad", 400, "it runs text"),
        ("new", 400, "this Waggle has no such dataset"),
    ],
)
def test_a_refusal_says_why(dataset, characters, says):
    reason = AUDIT.refusal(dataset, characters)
    assert says in reason
    assert bool(reason) == bool(says)


def test_the_list_holds_every_dataset_of_the_reasoning_gym_that_is_installed_and_no_other():
    known = audit_child.catalogue()
    assert known.version == audit_results.shipped_audit().heading.reasoning_gym == REASONING_GYM
    assert list(audit_results.shipped_audit().findings) == known.datasets
    assert len(known.datasets) > 100


def test_whatever_is_listed_was_shown_the_corpus_and_tried_nothing():
    for finding in audit_results.shipped_audit().findings.values():
        assert finding.listed == (not finding.reasons)
        assert not finding.listed or (finding.answers > 1000 and finding.longest >= 400 and not finding.events), finding.dataset


def test_the_first_charter_names_only_what_is_listed():
    assert decode(encode(first_swarm())) == first_swarm()


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        ("puzzle24", "names puzzle24, which it may not: its scorer runs text as code"),
        ("n_queens", "its scorer runs text as code"),
        ("coin_flip", "busy for more than"),
        ("codeio", "cannot be made where answers are judged"),
        ("game_of_life_halting", "pays in full what is no answer"),
        ("no_such", "has no such dataset. Update Waggle"),
    ],
)
def test_a_charter_that_names_what_is_refused_is_refused_and_says_why(dataset, says):
    with pytest.raises(CharterError, match=says):
        decode(naming("bf", dataset))


def test_long_completions_are_no_reason_against_a_scorer_that_stays_quick():
    assert isinstance(decode(naming("bf", "gcd", completion_characters=LONGEST_COMPLETION)), Charter)


def test_a_list_that_was_cut_off_is_no_list(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_bytes(msgspec.json.encode(AUDIT.heading) + b'\n{"dataset":"good","lon')
    with pytest.raises(ValueError, match="truncated"):
        audit_results.read(path)
