"""The verifier with people's own questions, with its real child."""

import hashlib
from collections.abc import Iterator

import msgspec
import pytest
import zstandard

from tasks.question_file.questions import packed_sums
from waggle.core.errors import CharterError
from waggle.core.system.process_memory import resident_bytes
from waggle.tasks.charter import MOST_FILES
from waggle.tasks.new_charter import new_charter
from waggle.tasks.question_file import packed, rules
from waggle.tasks.question_file.description import QuestionFile
from waggle.tasks.question_file.preview import PackedFile, packed_file
from waggle.tasks.question_file.reader import read_questions
from waggle.tasks.question_file.rules import Row
from waggle.tasks.questions import Question, QuestionKey, split_of
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox import hardening
from waggle.tasks.sandbox.exam import exam_of
from waggle.tasks.sandbox.verifier import Verifier

SUMS = packed_sums(200)
DATASET = SUMS.file.dataset
MIXED = new_charter("Both", {"bf": ["easy"]}, files=[("Sums", SUMS.file)])


@pytest.fixture(scope="module")
def own_verifier() -> Iterator[Verifier]:
    verifier = Verifier(MIXED, files={DATASET: SUMS.pieces})
    yield verifier
    verifier.close()


def judged(verifier: Verifier, question: Question, answer: str) -> float:
    (verdict,) = verifier.judge([(question, Completion(text=f"so <answer>{answer}</answer>", ended=True))])
    return verdict.reward


def test_a_seed_picks_a_row_and_the_true_answer_pays(own_verifier):
    rows = packed.unpack(b"".join(SUMS.pieces), SUMS.file)
    keys = [QuestionKey(DATASET, seed) for seed in (0, 7, 207, (1 << 63) - 1)]
    questions = own_verifier.questions(keys)
    assert [question.text for question in questions] == [rows[key.seed % 200].question for key in keys]
    assert own_verifier.answers(keys) == [rows[key.seed % 200].answer for key in keys]
    assert [
        judged(own_verifier, question, f"= {answer}.0")
        for question, answer in zip(questions, own_verifier.answers(keys), strict=True)
    ] == [1.0] * 4
    assert judged(own_verifier, questions[0], "-1") == 0.0
    assert judged(own_verifier, questions[0], "nan") == 0.0


def test_datasets_of_the_catalogue_work_beside_a_file(own_verifier):
    key = QuestionKey("bf", 3)
    (question,), (answer,) = own_verifier.questions([key]), own_verifier.answers([key])
    assert judged(own_verifier, question, answer) == 1.0


def test_a_level_that_a_file_does_not_have_is_refused(own_verifier):
    with pytest.raises(CharterError, match="cannot be made"):
        own_verifier.questions([QuestionKey(DATASET, 1, 1)])


def test_reserved_questions_are_held_out_and_examined(own_verifier):
    rows = packed.unpack(b"".join(SUMS.pieces), SUMS.file)
    expected = [row.question for row in rows if rules.split(row.question) == "test"]
    assert [question.text for question in own_verifier.held_out(DATASET, "test", 100)] == expected
    exam = [question for question in exam_of(own_verifier, MIXED, 5).questions if question.dataset == DATASET]
    assert len(exam) == min(8, len(expected))
    assert {split_of(question.dataset, question.text) for question in exam} == {"test"}


def test_the_digest_is_made_of_a_files_first_questions():
    rows = packed.unpack(b"".join(SUMS.pieces), SUMS.file)
    digest = hashlib.sha256("\0".join(row.question for row in rows[:64]).encode()).hexdigest()
    plain = new_charter("Mine", {}, files=[("Sums", SUMS.file)])
    verifier = Verifier(msgspec.structs.replace(plain, questions_digest=digest), files={DATASET: SUMS.pieces})
    try:
        verifier.check_charter()
    finally:
        verifier.close()


def test_a_killed_child_gets_the_file_again(own_verifier):
    before = own_verifier.questions([QuestionKey(DATASET, 1)])
    own_verifier._child.process.kill()
    assert own_verifier.questions([QuestionKey(DATASET, 1)]) == before


def test_a_charter_whose_file_is_missing_or_damaged_is_refused():
    with pytest.raises(CharterError, match="The questions of Sums are not on this computer yet"):
        Verifier(MIXED)
    with pytest.raises(CharterError, match="Piece 1 of the questions is damaged"):
        Verifier(MIXED, files={DATASET: [SUMS.pieces[0][:-1] + b"x"]})


def test_the_largest_file_takes_a_small_part_of_the_childs_memory():
    rows = [Row(f"{i} {chr(0x1F600 + i % 50) * 150}", "x") for i in range(50_000)]  # four bytes a character, also in memory
    pieces = packed.pack(rows)
    digests = tuple(map(packed.piece_hash, pieces))
    file = QuestionFile(pieces=digests, packed_bytes=sum(map(len, pieces)), questions=len(rows), grader="text")
    charter = new_charter("Large", {}, files=[("Large", file)])
    verifier = Verifier(charter, files={file.dataset: pieces})
    try:
        assert resident_bytes(verifier.pid) < hardening.MEMORY_BYTES / (2 * MOST_FILES)
    finally:
        verifier.close()


def hostile(raw: bytes) -> PackedFile:
    """A file whose hashes are right and whose content is not."""
    piece = zstandard.compress(raw)
    file = msgspec.structs.replace(SUMS.file, pieces=(packed.piece_hash(piece),), packed_bytes=len(piece), samples=())
    return PackedFile(pieces=(piece,), file=file)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (bytes(1 << 30), "its size is not allowed"),
        (b"x" * (10 << 20), "does not have the 200 questions"),
        ('["a\u202e","1"]\n'.encode() * 200, r"line 1: the question contains U\+202E"),
        (b"[" * 200_000 + b"\n" * 200, "line 1 is malformed"),
    ],
    ids=["bomb", "one line", "bidirectional", "nested"],
)
def test_a_hostile_file_is_refused_in_words_by_the_child(raw, says):
    bad = hostile(raw)
    charter = new_charter("Bad", {}, files=[("Sums", bad.file)])
    with pytest.raises(CharterError, match=says) as refused:
        Verifier(charter, files={bad.file.dataset: bad.pieces})
    assert refused.value.advice == packed.NEW_FILE


def test_two_files_with_one_question_are_refused_before_any_is_used():
    rows = b"".join(b"%d?,%d\n" % (i, i) for i in range(40))
    other = packed_file(read_questions("other.csv", b"question,answer\nWhat is  3 + 3?,7\n" + rows))
    charter = new_charter("Two", {}, files=[("Sums", SUMS.file), ("Other", other.file)])
    with pytest.raises(CharterError, match=r'files 1 and 2 .* both have the question "What is 3 \+ 3\?"'):
        Verifier(charter, files={DATASET: SUMS.pieces, other.file.dataset: other.pieces})
