"""The type, the range and the meaning of every setting. Types and ranges come from the settings' own annotations."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect

from waggle.cli.preferences.meanings import MEANINGS
from waggle.core import settings
from waggle.core.errors import SettingsError
from waggle.core.settings import Settings, Value
from waggle.engine.runtime.live_settings import applies_at_once

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class SettingType:
    """A setting: its key `section.name`, what values it takes, in words, and when a change of it applies."""

    key: str
    annotation: Any
    kind: inspect.Type
    default: Value

    @property
    def meaning(self) -> str:
        return MEANINGS.get(self.key, "")

    @property
    def at_once(self) -> bool:
        """Whether a change applies while the engine runs. All others need a new start."""
        return applies_at_once(self.key)

    @property
    def values(self) -> str:
        """The values that it takes, in words: "a whole number from 5 to 100"."""
        return _words(self.kind)

    def parse(self, text: str) -> Value:
        """The value that a person wrote; None (the default) for nothing. Raises SettingsError."""
        if not text:
            return None
        _, value = settings.assignment(f"{self.key}={text}")
        try:
            parsed: Value = msgspec.convert(self._as_meant(text, value), self.annotation)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise SettingsError(
                f"{self.key} cannot be {text}.", f"It is {self.values}. The default is {value_text(self.default)}."
            ) from error
        return parsed

    def _as_meant(self, text: str, value: Value) -> object:
        """The value in the form of this setting: words with commas are a list, `on` is true, digits may be a text."""
        match self.kind:
            case inspect.BoolType() if text.lower() in (*TRUE, *FALSE):
                return text.lower() in TRUE
            case inspect.VarTupleType() if not isinstance(value, list | tuple):
                return [word.strip() for word in text.split(",") if word.strip()]
            case inspect.StrType() | inspect.LiteralType() if not isinstance(value, str):
                return text
            case inspect.IntType() if isinstance(value, bool):  # true is no number
                return text
        return value


def setting_types() -> Iterator[SettingType]:
    """All settings, in the order of the settings file."""
    for section, part in get_type_hints(Settings).items():
        for name, annotation in get_type_hints(part, include_extras=True).items():
            default: Value = getattr(getattr(Settings(), section), name)
            yield SettingType(f"{section}.{name}", annotation, _unwrapped(inspect.type_info(annotation)), default)


def setting_type(key: str) -> SettingType:
    """The setting of this key. Raises SettingsError for an unknown one, and names what was probably meant."""
    known = {setting.key: setting for setting in setting_types()}
    if key in known:
        return known[key]
    names = [each for each in known if each.endswith(f".{key}")]
    close = [*names, *difflib.get_close_matches(key, known, n=3)]
    advice = f"Did you mean {' or '.join(dict.fromkeys(close))}?" if close else "`waggle settings` lists all of them."
    raise SettingsError(f"There is no setting {key}.", advice)


def value_text(value: Value) -> str:
    """A value as a person writes it on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value) or "(none)"
    return f"{value:g}" if isinstance(value, float) else str(value) or "(none)"


def _unwrapped(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, kind.values))}"
        case inspect.IntType() | inspect.FloatType():
            return f"a {'whole ' if isinstance(kind, inspect.IntType) else ''}number{_range(kind)}"
        case inspect.VarTupleType():
            most = f", at most {kind.max_length}" if kind.max_length else ""
            of = "days of 24 hours (# or .)" if getattr(_unwrapped(kind.item_type), "pattern", None) else "words"
            return f"{of} with commas between them{most}"
        case _:
            return "a text"


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    low = f"from {kind.ge:g}" if kind.ge is not None else f"above {kind.gt:g}" if kind.gt is not None else ""
    high = f"to {kind.le:g}" if kind.le is not None else f"below {kind.lt:g}" if kind.lt is not None else ""
    return f" {low} {high}".rstrip() if low else f" up {high}".rstrip() if high else ""
