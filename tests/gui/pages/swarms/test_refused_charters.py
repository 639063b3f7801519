"""Reasons why a charter is refused are translated, at once and whatever a stranger wrote into the charter."""

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from waggle.core.errors import CharterError
from waggle.gui.i18n import translator
from waggle.gui.i18n.formatting import tr
from waggle.tasks import audit_results, shipped_swarms
from waggle.tasks import charter as charters
from waggle.tasks.audit_results import AuditFinding
from waggle.tasks.charter import Specialty
from waggle_lab.security.audit import REASON_OF_EVENT

REASONS = {reason for finding in audit_results.shipped_audit().findings.values() for reason in finding.reasons}
SECONDS = 1.0  # of the processor: many times what any sentence takes
HOSTILE = " sets ".join("a" * 107) + " of ".join("a" * 161) + " to ".join("a" * 161)  # where each part of a pattern may end


@pytest.fixture(autouse=True)
def german(qapp: QApplication) -> Iterator[None]:
    translator.use("de")
    yield
    translator.use("en")


@pytest.mark.parametrize(
    "words",
    [HOSTILE, "This takes" + " days" * 390, "a. " * 30_000, " ".join(f"It takes {n} days." for n in range(9_000))],
    ids=["one pattern's parts", "patterns in patterns", "many sentences", "many different ones"],
)
def test_no_sentence_takes_long_to_be_found(words: str) -> None:
    began = time.process_time()
    assert tr(words)
    assert time.process_time() - began < SECONDS


def test_what_a_stranger_wrote_into_a_charter_is_quoted_in_short() -> None:
    with pytest.raises(CharterError) as refused:
        charters.decode(charters.encode(shipped_swarms.first_swarm())[:-1] + b',"%s":1}' % HOSTILE.encode())
    assert len(refused.value.title) < 200
    assert tr(refused.value.title).startswith("Diese Charta lässt sich nicht lesen: ")


@pytest.mark.parametrize("reason", sorted(REASONS | set(REASON_OF_EVENT.values())))
def test_why_a_dataset_may_not_be_named_is_german(reason: str) -> None:
    assert tr(reason) != reason
    assert not {"they", "its", "it", "seconds"} & set(tr(reason).replace("(", " ").split())
    assert "0." not in tr(reason)


def test_that_a_scorer_is_too_slow_for_a_charter_is_german() -> None:
    quick = AuditFinding(dataset="quick", listed=True, longest=2_000)
    reason = replace(audit_results.shipped_audit(), findings={"quick": quick}).refusal("quick", 20_000)
    assert tr(reason) == "sein Prüfer ist nur bis 2\u202f000 Zeichen schnell, und diese Charta erlaubt 20\u202f000"


@pytest.mark.parametrize("dataset", ["puzzle24", "rush_hour", "word_ladder", "tower_of_nowhere"])
def test_a_charter_that_names_what_it_may_not_is_refused_in_german(dataset: str) -> None:
    charter = replace(
        shipped_swarms.first_swarm(), specialties=(Specialty(dataset=dataset, title="One"),), completion_characters=20_000
    )
    with pytest.raises(CharterError) as refused:
        charters.check(charter)
    title, reason = tr(refused.value.title), refused.value.title.values[2]
    assert tr(reason) != reason
    assert title == f"First light nennt {dataset}, was nicht erlaubt ist: {tr(reason)}."
    assert tr(refused.value.advice) in (
        "Wer die Charta geschrieben hat, muss ein anderes Fachgebiet wählen.",
        "Aktualisiere Waggle, oder lass die Charta berichtigen.",
    )


def test_a_malformed_charter_is_refused_in_german() -> None:
    with pytest.raises(CharterError) as refused:
        charters.decode(b"{", expected=bytes(32))
    assert tr(refused.value.args[0]) == "Diese Charta ist fehlerhaft. Aktualisiere Waggle, oder lass die Charta berichtigen."
