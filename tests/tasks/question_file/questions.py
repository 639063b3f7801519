"""Files of questions for tests."""

import json

from waggle.tasks.question_file.preview import PackedFile, packed_file
from waggle.tasks.question_file.reader import read_questions


def sums(count: int = 40) -> bytes:
    """JSON lines with sums; of 40, four are reserved."""
    return "\n".join(json.dumps({"question": f"What is {i} + {i}?", "answer": 2 * i}) for i in range(count)).encode()


def packed_sums(count: int = 40, **choices) -> PackedFile:
    return packed_file(read_questions("sums.jsonl", sums(count), **choices))
