"""Run in a copy of the product with the grader of docs/adding/: make a swarm with it, and judge answers; or see it refused."""

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from waggle.core.errors import CharterError
from waggle.tasks.charter import decode, encode
from waggle.tasks.graders import graders
from waggle.tasks.new_charter import new_charter
from waggle.tasks.question_file.preview import packed_file, preview_of
from waggle.tasks.question_file.reader import read_questions
from waggle.tasks.questions import QuestionKey
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.verifier import Verifier

NAME, CHARTER = "clock", Path("charter.json")

if sys.argv[1:] == ["refuse"]:
    with pytest.raises(CharterError, match=r"needs the grader clock, which this Waggle does not have\. Update Waggle"):
        decode(CHARTER.read_bytes())
    sys.exit()

check, score = graders()[NAME].check, graders()[NAME].score
assert check("14:05") == check("2:05 PM") == ""
assert "time of day" in check("noon")
assert score("2:05 pm.", "14:05", 0) == score("14:05", "2:05pm", 0) == score("12:00 am", "0:00", 0) == 1
assert score("2:05", "14:05", 0) == score("24:00", "0:00", 0) == score("", "0:00", 0) == score("9" * 20_000, "0:00", 0) == 0

questions = [{"question": f"How late is it {i} minutes after noon?", "answer": f"{12 + i // 60}:{i % 60:02d}"} for i in range(60)]
table = read_questions("clock.jsonl", "\n".join(map(json.dumps, questions)).encode(), grader=NAME)
assert preview_of(table).grader_title == "Time of day"
assert NAME in preview_of(table).possible_graders
own = packed_file(table)
charter = new_charter("Clocks", {}, files=[("Clocks", own.file)])
CHARTER.write_bytes(encode(charter))
with closing(Verifier(charter, files={own.file.dataset: own.pieces})) as verifier:
    (question,) = verifier.questions([QuestionKey(own.file.dataset, 7)])
    (answer,) = verifier.answers([question.key])
    texts = [f"<answer>{answer}.</answer>", "<answer>3:77</answer>"]
    verdicts = verifier.judge((question, Completion(text=text, ended=True)) for text in texts)
    assert [verdict.reward for verdict in verdicts] == [1.0, 0.0], verdicts
