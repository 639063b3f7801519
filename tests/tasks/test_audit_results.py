"""The audit that ships with Waggle, and the datasets that charters may name."""

import msgspec
import pytest

from waggle.core.errors import CharterError
from waggle.tasks import audit_results
from waggle.tasks.audit_results import Audit, AuditFinding, AuditHeading
from waggle.tasks.charter import LONGEST_COMPLETION, REASONING_GYM, Charter, Specialty, decode, encode, first_swarm
from waggle_lab.security.audit_child import catalogue

AUDIT = Audit(
    heading=AuditHeading(reasoning_gym="1", python="3"),
    findings={
        "good": AuditFinding(dataset="good", listed=True, longest=400),
        "bad": AuditFinding(dataset="bad", listed=False, reasons=("it runs text", "it stalls"), longest=400),
    },
)


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
    known = catalogue()
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
