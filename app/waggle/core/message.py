"""A sentence for a person as an id with values, so that each language can say it in words of its own.

The id is the English sentence, with %1, %2 ... where the values stand. Whoever has something to say makes a `Message`; the
window looks its id up in the catalog of the person's language, and everybody else reads it as English text.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

LONGEST = 2000  # characters of a text in a message
PLACE = re.compile(r"%(\d|n)")
WITH_FULL_STOP = re.compile(r"%(\d|n)(\.(?=\s|$))?")


def plain(words: str) -> str:
    """The text on one line, with bounded length, and with U+FFFD for control, bidirectional and invisible characters.

    It may quote a stranger, and is shown in a terminal, in the log and in the window.
    """
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    line = cut if cut.isprintable() else " ".join(cut.splitlines())
    return line if line.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in line)


def filled(words: str, values: Sequence[str], amount: str = "") -> str:
    """The words with their values in place, all in one pass: a value may contain "%1". A place without a value stays.

    A value that is a sentence, such as the words of another program, ends with its own full stop and gets no second one.
    """

    def value(place: re.Match[str]) -> str:
        text = _value_at(place, values, amount)
        full_stop = place[2] or ""
        return text if text.endswith(".") else text + full_stop

    return WITH_FULL_STOP.sub(value, words)


def _value_at(place: re.Match[str], values: Sequence[str], amount: str) -> str:
    """What stands for a place: its value, or without one the place itself."""
    if place[1] == "n":
        return amount or "%n"
    number = int(place[1])
    return values[number - 1] if 0 < number <= len(values) else f"%{place[1]}"


class Figure(NamedTuple):
    """A number that each language writes in its own way, rounded to `digits` after the decimal sign. In English: 1,234.5."""

    number: float
    digits: int = 0

    def __str__(self) -> str:
        return f"{self.number:,.{self.digits}f}"


class Message(str):
    """A sentence, or a part of one, that can be translated. As a `str` it is English on one line, of bounded length.

    A value may be a `Message`, which is translated too, or a `Figure`; integers and texts stay as they are in every language.
    Anything else becomes its text. Texts become `plain`, because they may quote a stranger.

    The `amount` of something decides between the forms of a plural and stands for %n; `singular` is then the English for 1.
    """

    id: str
    values: tuple["Value", ...]
    singular: str
    amount: int | None

    def __new__(cls, id: str, *values: object, singular: str = "", amount: int | None = None) -> "Message":  # noqa: A002
        plain_values = tuple(each if isinstance(each, int | Figure | Message) else plain(str(each)) for each in values)
        words = singular if amount == 1 and singular else id
        message = super().__new__(cls, plain(filled(words, [str(each) for each in plain_values], f"{amount or 0:,}")))
        message.id, message.values, message.singular, message.amount = plain(id), plain_values, plain(singular), amount
        return message

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (_packed(self),)


def counted(amount: int, singular: str, many: str, *values: object) -> Message:
    """A message whose words depend on the amount of something, which stands for %n in both."""
    return Message(many, *values, singular=singular, amount=amount)


Value = str | int | Figure | Message
NOTHING = Message("")


def as_message(words: str) -> Message:
    """Words that may be no `Message` yet: they are translated where the catalog has them whole."""
    if isinstance(words, Message):
        return words
    return Message("%1", words) if PLACE.search(words) else Message(plain(words))


def in_turn(*parts: str) -> Message:
    """The parts that are not empty, one after another, with a space between."""
    messages = [as_message(part) for part in parts if part]
    return messages[0] if len(messages) == 1 else Message(_turns(len(messages)), *messages)


def turns_of(words: str) -> tuple[Message, ...]:
    """The parts of a message that `in_turn` put together; else itself."""
    message = as_message(words)
    parts = tuple(value for value in message.values if isinstance(value, Message))
    return parts if len(parts) > 1 and message.id == _turns(len(parts)) else (message,)


def _turns(number: int) -> str:
    return " ".join(f"%{place}" for place in range(1, number + 1))


class _Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A message between processes. One without values is just a text."""

    id: str
    values: "tuple[str | int | Figure | _Packed, ...]" = ()
    singular: str = ""
    amount: int | None = None


def packed_message(value: object) -> object:
    """For `enc_hook` of msgspec: what stands for a message between processes that pass it on."""
    if isinstance(value, Message):
        return _packed(value) if value.values or value.amount is not None else str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded")


def _packed(message: Message) -> _Packed:
    values = tuple(_packed(each) if isinstance(each, Message) else each for each in message.values)
    return _Packed(message.id, values, message.singular, message.amount)


def english(value: object) -> object:
    """For `enc_hook` of msgspec, where a program or a file of ours reads plain text: the message in English."""
    if isinstance(value, Message):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded")


def unpacked_message(kind: type, value: object) -> object:
    """For `dec_hook` of msgspec: the message again. Raises ValidationError for what is none."""
    if kind is not Message:
        raise NotImplementedError(f"{kind.__name__} cannot be decoded")
    return as_message(value) if isinstance(value, str) else _unpacked(msgspec.convert(value, _Packed))


def _unpacked(packed: _Packed) -> Message:
    values = (_unpacked(each) if isinstance(each, _Packed) else each for each in packed.values)
    return Message(packed.id, *values, singular=packed.singular, amount=packed.amount)
