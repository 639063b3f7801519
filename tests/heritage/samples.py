"""One whole value of every type that schema.py lists, every field of it set: written once by an old version, read by this one."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from heritage.schema import FILES, MESSAGES
from waggle.core.message import Message, english, unpacked_message

BINARY = {*MESSAGES, "marks", "journal"}  # msgpack, all others are JSON
FITTING = {  # by the pattern of a text
    r"^[0-9a-f]{64}\Z": "5e" * 32,
    r"^([0-9a-f]{64})?\Z": "5e" * 32,
    r"^[#.]{24}\Z": "######......######......",
    r"^[0-9A-Za-z.+-]*\Z": "0.1.0",
    r"^[0-9A-Za-z.+-]{1,20}\Z": "0.1.25",
    r"^[0-9]{1,5}(\.[0-9]{1,5}){2}\Z": "0.2.0",
    r"^[a-z0-9]{1,20}\Z": "linux",
    r"^[a-z0-9_]{1,64}\Z": "basic_arithmetic",
    r"^\d{4}-\d\d-\d\d\Z": "2026-11-26",
    r"^https://[!-~]{1,500}\Z": "https://example.org/waggle",
}


def samples() -> dict[str, Any]:
    """What stands in a file (JSON), or travels (the hex digits of msgpack), by type; of a union, by type and tag."""
    types = FILES | MESSAGES
    kinds = dict(zip(types, inspect.multi_type_info(types.values()), strict=True))
    return {
        name: msgspec.msgpack.encode(value, enc_hook=english).hex()
        if root in BINARY
        else json.loads(msgspec.json.encode(value, enc_hook=english))
        for root, kind in kinds.items()
        for name, value in _of_root(root, kind)
    }


def read_again(name: str, recorded: Any) -> Any:
    """A recorded sample as this version reads it and writes it again, in the same form."""
    root = name.partition("<")[0]
    kind = (FILES | MESSAGES)[root]
    if root in BINARY:
        return msgspec.msgpack.encode(msgspec.msgpack.decode(bytes.fromhex(recorded), type=kind)).hex()
    read = msgspec.json.decode(json.dumps(recorded), type=kind, dec_hook=unpacked_message)
    return json.loads(msgspec.json.encode(read, enc_hook=english))


def _of_root(name: str, kind: inspect.Type) -> Iterator[tuple[str, Any]]:
    if isinstance(kind, inspect.UnionType):
        for form in kind.types:
            assert isinstance(form, inspect.StructType), "what several kinds of messages share a name for is tagged"
            yield f"{name}<{form.tag}>", _value(form, name)
    else:
        yield name, _value(kind, name)


def _other_than(default: Any, kind: inspect.Type, name: str) -> Any:
    """A value that shows whether it was read: not what stands there anyway."""
    match kind:
        case inspect.BoolType():
            return default is not True
        case inspect.LiteralType():
            return max((word for word in kind.values if word != default), key=str)
    return _value(kind, name)


def _value(kind: inspect.Type, name: str) -> Any:
    """Something that the type allows; texts say where they stand."""
    match kind:
        case inspect.Metadata():
            return _value(kind.type, name)
        case inspect.StructType():
            return kind.cls(**{field.name: _other_than(field.default, field.type, field.name) for field in kind.fields})
        case inspect.UnionType():
            return _value(next(form for form in kind.types if not isinstance(form, inspect.NoneType)), name)
        case inspect.LiteralType():
            return max(kind.values, key=str)
        case inspect.TupleType():
            return tuple(_value(item, name) for item in kind.item_types)
        case inspect.VarTupleType() | inspect.ListType():
            values = [_value(kind.item_type, name)] * max(1, kind.min_length or 0)
            return values if isinstance(kind, inspect.ListType) else tuple(values)
        case inspect.DictType():
            return {_value(kind.key_type, name): _value(kind.value_type, name)}
        case inspect.BoolType():
            return True
        case inspect.IntType() | inspect.FloatType():
            low = kind.ge if kind.ge is not None else 0 if kind.gt is None else kind.gt
            high = kind.le if kind.le is not None else low + 8 if kind.lt is None else kind.lt - 1
            middle = (low + min(high, low + 8)) / 2
            return middle if isinstance(kind, inspect.FloatType) else int(middle)
        case inspect.StrType():
            return FITTING[kind.pattern] if kind.pattern else name[: kind.max_length or len(name)]
        case inspect.CustomType(cls=cls) if cls is Message:
            return Message(name)
        case inspect.BytesType():
            return bytes(range(kind.max_length if kind.max_length and kind.max_length < 256 else max(5, kind.min_length or 0)))
    raise TypeError(f"{name} is {kind}, which nothing was written for yet")
