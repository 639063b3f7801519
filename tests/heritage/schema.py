"""Every name that reaches a file, a message or a command line of Waggle, and the form of what stands under it.

msgspec takes tags from class names and keys from field names, so a renamed class can change a message without any error. This
module reads the real types and writes down what they mean on the wire, in no words of their own: class names appear only where
they are tags, module names never.

Left out are messages between a process and a child that it starts itself from the same installation (the verifier, the chat
template, the race), and files that ship with Waggle: both ends always have the same version.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

import waggle
from waggle.cli import update
from waggle.core import hub_token, settings
from waggle.core.message import Message, english
from waggle.core.peer_id import PEER_ID_PREFIX
from waggle.core.stored_data import KINDS, OF_CACHE, OF_HOME, Removal
from waggle.engine.control import windows_loopback
from waggle.engine.runtime.model_source import ModelRecord
from waggle.engine.storage.history import SCHEMA_SQL
from waggle.engine.system import memory_backoff
from waggle.gui.application import single_instance
from waggle.gui.application.window import window_state
from waggle.models.storage import checkpoint, hub_download, training_journal
from waggle.network.identity import backup, keys, membership
from waggle.network.joined_swarms import JoinedSwarms
from waggle.network.leaderboard.scores import SheetScore
from waggle.network.limits.reputation import PeerReputation
from waggle.network.messages import (
    announcement,
    answer_sheet,
    gateway_frames,
    gateway_paths,  # fmt: skip
    handshake,
    rollout_record,
)
from waggle.network.transport.hivemind import lan_discovery, network
from waggle.network.web.statistics import SwarmStatus
from waggle.protocol.commands import AnyCommand
from waggle.protocol.schedule import Wishes
from waggle.protocol.state import AnyEvent
from waggle.tasks import charter
from waggle.tasks.charter import Charter

# What each type is, and what reads it: a file that older versions wrote, or a node of another version.
FILES: dict[str, Any] = {
    "event": AnyEvent,  # events/*.jsonl, and what `waggle ctl` and a window on another computer hear
    "command": AnyCommand,
    "settings": settings.Settings,
    "wishes": Wishes,  # asked.json
    "window": window_state.WindowState,  # window.json
    "call": single_instance.StartRequest,  # a second window to the first
    "models": ModelRecord,  # models.json
    "frugality": memory_backoff.StoredBackoff,
    "swarms": JoinedSwarms,  # swarms.json
    "standings": list[PeerReputation],
    "marks": list[SheetScore],
    "known peers": tuple[str, ...],
    "checkpoint": checkpoint.CheckpointState,  # state.json
    "journal": training_journal.JournalEntry,
    "download": hub_download.DownloadPlan,  # plan.json
    "status": SwarmStatus,  # status.json of a node's web page
    "removal": tuple[Removal, ...],  # `waggle goodbye --json`
    "updates": update.Signed,
    "feed": update.Feed,
    "charter": Charter,
}
MESSAGES: dict[str, Any] = {
    "record": rollout_record._WireRecord,
    "announcement": announcement.Announcement,
    "greeting": handshake.Handshake,
    "sheet": answer_sheet._WireSheet,
    "welcome": gateway_frames.Welcome,
    "hello": gateway_frames.Hello,
    "ask": gateway_frames.Request,
    "answer": gateway_frames.Response,
}
COMMANDS = ("engine", "seed", "ctl", "export", "token", "fit", "selftest", "doctor", "log", "update", "cuda", "goodbye")


def schema() -> dict[str, Any]:
    """All of it, as JSON can hold it."""
    return {
        "files": _described(FILES),
        "messages": _described(MESSAGES),
        "names": names(),
        "home": {"kinds": list(KINDS)} | {kind: list(patterns) for kind, patterns in (OF_HOME | OF_CACHE).items()},
        "history": dict(map(_table, filter(str.strip, SCHEMA_SQL.split(";")))),
        "command line": {" ".join(["waggle", *command]): _options(*command) for command in ((), *((name,) for name in COMMANDS))},
    }


def text_of(schema: dict[str, Any]) -> str:
    """The schema as JSON with a line for each entry of a part, so that a difference can be read."""
    parts = []
    for name, part in schema.items():
        lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(part.items()))
        parts.append(json.dumps(name) + ": {\n  " + ",\n  ".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def names() -> dict[str, str]:
    """Constants that other nodes, other programs or files of this computer know by their value."""
    values: dict[str, object] = {
        "protocol": charter.PROTOCOL,
        "reasoning-gym of a charter": charter.REASONING_GYM,
        "handler of payloads": network.PAYLOAD,
        "handler of charters": network.CHARTER,
        "handler of greetings": network.HANDSHAKE,
        "handler of reach": network.REACH,
        "path of the gateway": gateway_paths.GATEWAY,
        "path of the charter": gateway_paths.CHARTER,
        "service on the local network": lan_discovery.KIND,
        "domain of announcements": announcement.DOMAIN,
        "domain of sheets": answer_sheet.DOMAIN,
        "domain of certificates": membership.DOMAIN,
        "domain of a gateway's client": gateway_frames.DOMAIN,
        "domain of a gateway": gateway_frames.PROOF,
        "domain of updates": update.DOMAIN,
        "head of a backup": backup.HEAD,
        "cost of a backup's key": backup.COST,
        "head of a key file": keys.FILE_PREFIX,
        "head of a peer id": PEER_ID_PREFIX,
        "greeting of the control port": windows_loopback.GREETING,
        "service in the keychain": hub_token.SERVICE,
        "user in the keychain": hub_token.USER,
        "head of a journal's entry": training_journal.HEAD.format,
    }
    return {name: str(value) for name, value in values.items()}


def _table(statement: str) -> tuple[str, str]:
    """The name of a table and the statement that makes it."""
    words = " ".join(statement.split())
    return words.partition(" (")[0].rpartition(" ")[2], words


def _described(types: dict[str, Any]) -> dict[str, Any]:
    kinds = zip(types, inspect.multi_type_info(types.values()), strict=True)
    return dict(place for name, kind in kinds for place in _places(name, kind))


def _places(path: str, kind: inspect.Type, **more: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place itself, with every form that a value may have there, then the places inside it."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    yield path, more | {"any": sorted(map(_form, kinds), key=repr)}
    is_root = "." not in path
    for form in kinds:
        if is_root or not (isinstance(form, inspect.StructType) and form.tag):  # an event in a State stands at the root, too
            yield from _inside(path, form)


def _inside(path: str, kind: inspect.Type) -> Iterator[tuple[str, dict[str, Any]]]:
    match kind:
        case inspect.Metadata():
            yield from _inside(path, kind.type)
        case inspect.StructType():
            start = path if kind.tag is None else f"{path}<{kind.tag}>"
            for field in kind.fields:
                more: dict[str, Any] = {"required": True} if field.required else {"default": _default(field)}
                yield from _places(f"{start}.{field.encode_name}", field.type, **more)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            yield from _places(f"{path}[]", kind.item_type)
        case inspect.TupleType():
            for place, item in enumerate(kind.item_types):
                yield from _places(f"{path}[{place}]", item)
        case inspect.DictType():
            yield from _places(f"{path}{{key}}", kind.key_type)
            yield from _places(f"{path}{{}}", kind.value_type)


def _form(kind: inspect.Type) -> dict[str, Any]:
    """What one kind of value looks like, without what is inside it."""
    match kind:
        case inspect.Metadata():
            return _form(kind.type)
        case inspect.StructType():
            form: dict[str, Any] = {"kind": "array" if kind.array_like else "object"}
            if kind.tag is not None:
                form |= {"tag": kind.tag, "tag_field": kind.tag_field}
            if kind.array_like:
                form["order"] = [field.encode_name for field in kind.fields]
            flags = {"strict": kind.forbid_unknown_fields, "omits_defaults": kind.cls.__struct_config__.omit_defaults}
            return form | {flag: True for flag, is_set in flags.items() if is_set}
        case inspect.LiteralType():
            return {"kind": "word", "words": sorted(kind.values)}
        case inspect.TupleType():
            return {"kind": "tuple", "length": len(kind.item_types)}
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return {"kind": "list"} | _bounds(kind, "min_length", "max_length")
        case inspect.IntType():
            return {"kind": "int"} | _bounds(kind, "gt", "ge", "lt", "le")
        case inspect.FloatType():  # typing takes 0 and 0.0 for the same bound, and keeps whichever comes first
            bounds = _bounds(kind, "gt", "ge", "lt", "le")
            return {"kind": "float"} | {bound: float(value) for bound, value in bounds.items()}
        case inspect.CustomType(cls=cls) if cls is Message:  # in files and between nodes it is its English text
            return {"kind": "text"}
        case inspect.StrType() | inspect.BytesType():
            kind_name = "text" if isinstance(kind, inspect.StrType) else "bytes"
            return {"kind": kind_name} | _bounds(kind, "min_length", "max_length", "pattern")
        case inspect.DictType() | inspect.BoolType() | inspect.NoneType() | inspect.AnyType():
            return {"kind": type(kind).__name__.removesuffix("Type").lower()}
    raise TypeError(f"{kind} is nothing that Waggle has written so far")


def _bounds(kind: inspect.Type, *bounds: str) -> dict[str, Any]:
    return {bound: value for bound in bounds if (value := getattr(kind, bound, None)) is not None}


def _default(field: inspect.Field) -> Any:
    """What stands for a field that is not there, as JSON has it."""
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return "unset" if value is msgspec.NODEFAULT else msgspec.to_builtins(value, str_keys=True, enc_hook=english)


def _options(*command: str) -> list[str]:
    """The options of a command and the words that it takes, as its help names them."""
    arguments = [sys.executable, "-m", "waggle", *command, "--help"]
    environment = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
    help_text = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
    words = (word for choices in re.findall(r"\{([\w,]+)\}", help_text) for word in choices.split(","))
    return sorted({*re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text), *words})
