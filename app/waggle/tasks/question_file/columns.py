"""Finds the question and the answer in one record of a file, whichever of the usual columns it has."""

import json
from collections.abc import Mapping
from typing import Any

from waggle.core.message import Message, as_message
from waggle.tasks.answer_text import Digits, json_value, scalar
from waggle.tasks.question_file.rules import Row, tidy

MOST_COLUMNS = 50
QUESTION_COLUMNS = ("question", "prompt", "messages")
ANSWER_COLUMN = "answer"
ROLES = ("system", "user", "assistant")
FINAL_ANSWER = "####"  # in answers of GSM8K, before what is graded


class RowFault(Exception):
    """Why a record cannot be used: `reason` in words that follow a line number, `advice` as a sentence."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason, self.advice = as_message(reason), as_message(advice)


def row_of(record: Mapping[str, Any]) -> Row:
    """The question and the answer of a record, in which names of columns are in lower case. Raises RowFault."""
    present = [column for column in QUESTION_COLUMNS if record.get(column) not in (None, "")]
    if not present:
        raise RowFault("there is no question", Message("Name its column %1, and fill it in.", _or(QUESTION_COLUMNS)))
    if len(present) > 1:
        raise RowFault(Message("it has both a %1 and a %2", present[0], present[1]), "Leave one of these columns out.")
    question, reply = _question(record[present[0]], present[0])
    answer = record.get(ANSWER_COLUMN)
    text = reply if answer in (None, "") else _answer(answer)
    if not text.strip():
        raise RowFault("there is no answer", Message("Name its column %1, and fill it in.", ANSWER_COLUMN))
    return Row(tidy(question), tidy(_final(tidy(text))))


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _question(value: Any, column: str) -> tuple[str, str]:
    """The question, and the assistant's answer to it if a conversation has one."""
    if isinstance(value, str) and column == "messages":  # in a table
        try:
            value = json_value(value)
        except ValueError as error:
            raise RowFault("the messages are not JSON", 'Write them as [{"role": "user", "content": "..."}].') from error
    if isinstance(value, list):
        return _conversation(value)
    text = scalar(value)
    if text is None:
        raise RowFault("the question is not a text", "Write it in quotes.")
    return text, ""


def _conversation(turns: list[Any]) -> tuple[str, str]:
    """The last turn of the user after that of the system, and the assistant's turn after it."""
    messages = [(_field(turn, "role"), _field(turn, "content")) for turn in turns]
    if any(role not in ROLES for role, _ in messages):
        raise RowFault("a message has an unknown role", Message("Use %1.", _or(ROLES)))
    users = [i for i, (role, _) in enumerate(messages) if role == "user"]
    if not users:
        raise RowFault("no message is the user's", "The last one of the user is the question.")
    system = [content for role, content in messages if role == "system"]
    replies = [content for role, content in messages[users[-1] :] if role == "assistant"]
    return "\n\n".join([*system, messages[users[-1]][1]]), replies[0] if replies else ""


def _field(turn: Any, name: str) -> str:
    value = turn.get(name) if isinstance(turn, dict) else None
    if not isinstance(value, str):
        raise RowFault(
            Message("a message has no %1 that is a text", name), 'Write messages as [{"role": "user", "content": "..."}].'
        )
    return value


def _answer(value: Any) -> str:
    """An answer as a text; lists and objects of plain values as JSON."""
    if (text := scalar(value)) is not None:
        return text
    try:
        if isinstance(value, list):
            return f"[{', '.join(map(_literal, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{_literal(name)}: {_literal(each)}" for name, each in value.items()) + "}"
    except TypeError as error:
        raise RowFault(
            "the answer has lists or objects within", "Answers are plain values, or one list or object of them."
        ) from error
    raise RowFault("the answer is not a text, a number, a list or an object", "Write a text in quotes, or a number.")


def _literal(value: Any) -> str:
    """A plain value in JSON. Raises TypeError for a list or an object."""
    if isinstance(value, (list, dict)):
        raise TypeError
    return str(value) if isinstance(value, Digits) else json.dumps(value, ensure_ascii=False)


def _final(answer: str) -> str:
    """What follows #### on the last line of an answer in GSM8K's form; else the whole answer."""
    last = answer.rpartition("\n")[2].strip()
    return last.removeprefix(FINAL_ANSWER) if last.startswith(FINAL_ANSWER) and last.strip("# ") else answer
