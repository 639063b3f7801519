"""Every choice a person can make, with its default and its reason. A TOML file, checked strictly, never half applied."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from waggle.core import paths
from waggle.core.errors import SettingsError
from waggle.core.module_names import module_names

MAX_CHARACTERS = 10_000  # of a settings file: the time that reading one takes grows with the square of its length
NO_TOML = (ValueError, RecursionError)  # TOMLDecodeError, and what tomllib raises for endless numbers and endless nesting
Positive = Annotated[int, msgspec.Meta(ge=1)]
Percent = Annotated[int, msgspec.Meta(ge=5, le=100)]
Hours = Annotated[str, msgspec.Meta(pattern=r"^[#.]{24}\Z")]  # of one day: # may contribute, . may not
UPDATE_RULES = module_names("rl/update_rules")
LIVE_SHARING_STRATEGIES = module_names("sapo/sharing")  # a live swarm carries all that these need
SHARING_STRATEGIES = tuple(sorted((*LIVE_SHARING_STRATEGIES, *module_names("sapo/sharing/sender_logp"))))
if TYPE_CHECKING:
    UpdateRule: TypeAlias = str
    SharingStrategy: TypeAlias = str
else:  # a file in one of these folders is a choice, for msgspec to check
    UpdateRule, SharingStrategy = Literal[UPDATE_RULES], Literal[SHARING_STRATEGIES]
Value = bool | int | float | str | tuple[str, ...] | None  # of one setting; None: back to its default


class SwarmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With whom. Without seeds a node waits to be found; `solo` never opens the network at all."""

    solo: bool = False
    seeds: tuple[str, ...] = ()  # multiaddresses with a peer id: /ip4/192.0.2.1/tcp/4001/p2p/12D3...
    host: str = "0.0.0.0"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0  # 0: any free one
    lan: bool = False  # find others on the local network; whoever is on it then sees that Waggle runs here, and in which swarm
    upnp: bool = False  # ask the router to let calls through: not without being asked to
    through: Literal["auto", "relay", "direct"] = "auto"  # through the seeds: where a router blocks calls, always, never
    gateways: tuple[str, ...] = ()  # ws:// or wss:// addresses, # and a peer id behind; where peers cannot be spoken to
    light: bool = False  # take part through gateways in any case: where a network blocks everything but the web
    leaderboard: bool = False  # publish this model's answers to the swarm's exams, and mark those of others who do
    my_answers: Literal["ask", "no", "yes"] = "ask"  # on Try it; shared, marked human, only with "yes"
    charter: str = ""  # a charter file, or its hash, asked of the seeds; empty: the swarm that ships with Waggle


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A port for browsers: the status page of the swarm. Off unless chosen, and then for this computer alone."""

    host: str = "127.0.0.1"  # 0.0.0.0: for everybody who can reach this computer
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0  # 0: none
    gateway: bool = False  # let those take part through it whose network lets nothing but the web through


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained: a transformers folder, or a model of the hub; neither: the starter that ships with Waggle."""

    folder: str = ""
    name: str = ""  # owner/name, or owner/name@revision: Qwen/Qwen2.5-0.5B-Instruct
    training: Literal["auto", "full", "lean", "lora"] = "auto"  # auto: all of it where memory allows, see models.shared
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of the products; auto: bfloat16 where it is faster here


class LearningSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One round: draw `questions`, keep `local` of them and `external` groups of peers, learn once (SAPO, algorithm 1).

    `local` and `external` follow what there is to learn: own groups that teach nothing give way to peers' that do, and where
    peers offer too few, own groups take their places.
    """

    questions: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    local: Annotated[int, msgspec.Meta(ge=0, le=64)] = 4
    external: Annotated[int, msgspec.Meta(ge=0, le=64)] = 4
    group_size: Annotated[int, msgspec.Meta(ge=2, le=16)] = 8
    rule: UpdateRule = "grpo"  # how rewards become a gradient: one file each in rl/update_rules/
    sharing: SharingStrategy = "adaptive"  # which groups of peers count, and how much: one file each in sapo/sharing/
    specialties: tuple[str, ...] = ()  # what to ask about, of the swarm's; empty: all of them
    max_new_tokens: Annotated[int, msgspec.Meta(ge=0, le=2048)] = 0  # of an answer; 0: 24 for the starter, 160 for other models
    temperature: Annotated[float, msgspec.Meta(gt=0.0, le=4.0)] = 1.0
    top_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0  # only the likeliest tokens that together have so much
    learning_rate: Annotated[float, msgspec.Meta(ge=0.0, le=1e-2)] = 0.0  # 0: 5e-4 for the starter, less for larger models
    warmup_steps: Annotated[int, msgspec.Meta(ge=0)] = 10  # AdamW's first steps are all sign and no size
    held_out_every: Positive = 25  # rounds between two honest scores
    held_out_questions: Annotated[int, msgspec.Meta(ge=1, le=200)] = 30  # of each specialty


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When this computer contributes. A rule whose answer this computer does not tell holds nothing back."""

    idle_minutes: Annotated[int, msgspec.Meta(ge=0, le=240)] = 0  # without keyboard and mouse; 0: also while it is used
    only_on_power: bool = True  # not on battery
    week: Annotated[tuple[Hours, ...], msgspec.Meta(max_length=7)] = ()  # Monday first; empty: always
    not_while: Annotated[tuple[str, ...], msgspec.Meta(max_length=50)] = ()  # programs, by the names of their files
    not_full_screen: bool = True  # a game, a film, a talk
    not_metered: bool = True
    below_celsius: Annotated[int, msgspec.Meta(ge=0, le=110)] = 85  # of the processor; 0: however warm
    kwh_a_day: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 0.0  # a budget of energy, as estimated; 0: none


class ComputerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of this computer."""

    threads: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0  # cores; 0: a quarter of them, so that it stays pleasant to use
    device: Literal["auto", "cpu", "cuda", "xpu", "mlx"] = "auto"  # auto: MLX on Apple Silicon, else the GPU torch finds, or none
    priority: Literal["lowest", "low", "normal"] = "lowest"  # who goes first when others want the processor too
    cpu_percent: Percent = 100  # of the time
    gpu_percent: Percent = 50  # of the time; a screen that is drawn by the same GPU stutters above
    # while it contributes; 0: estimated, see protocol/energy_estimate.py
    watts: Annotated[float, msgspec.Meta(ge=0.0, le=5000.0)] = 0.0
    price_kwh: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] = 0.0  # in your own currency; 0: not known
    memory_gb: Annotated[float, msgspec.Meta(ge=0.0, le=4096.0)] = 0.0  # 0: what the model needs
    traffic_kb: Annotated[int, msgspec.Meta(ge=0)] = 0  # kB a second, each way, beside a little to stay connected; 0: no limit
    # saved states and models; the oldest go first, the last good one never; 0: no limit
    disk_gb: Annotated[float, msgspec.Meta(ge=0.0, le=10_000.0)] = 20.0


class WindowSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the window looks and what it does by itself. A closed window goes to the tray, where there is one."""

    welcomed: bool = False  # the questions of the first start were answered or skipped
    theme: Literal["system", "light", "dark", "high_contrast"] = "system"
    language: Literal["system", "en", "de"] = "system"
    text_percent: Annotated[int, msgspec.Meta(ge=80, le=200)] = 100
    less_motion: Literal["system", "on", "off"] = "system"  # on: counts and highlights in place of movement
    close_to_tray: bool = True
    notify_problems: bool = True
    notify_discoveries: bool = True
    read_out: bool = False  # each minute what happened in it, to a screen reader


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    swarm: SwarmSettings = SwarmSettings()
    web: WebSettings = WebSettings()
    model: ModelSettings = ModelSettings()
    learning: LearningSettings = LearningSettings()
    when: ScheduleSettings = ScheduleSettings()
    computer: ComputerSettings = ComputerSettings()
    window: WindowSettings = WindowSettings()


def profiles(cores: int) -> dict[str, dict[str, Value]]:
    """Named presets of when and how much, gentlest first, for a computer of so many cores. The first one is the default."""
    polite = {"when.only_on_power": True, "when.not_full_screen": True, "when.not_metered": True}
    return {
        "quiet": polite | {
            "when.below_celsius": 85, "computer.threads": 0, "computer.priority": "lowest", "computer.gpu_percent": 50,
        },
        "balanced": polite | {
            "when.below_celsius": 90, "computer.threads": max(1, cores // 2), "computer.priority": "low",
            "computer.gpu_percent": 80,
        },
        "full": polite | {
            "when.not_full_screen": False, "when.below_celsius": 0, "computer.threads": cores, "computer.priority": "normal",
            "computer.gpu_percent": 100,
        },
    }  # fmt: skip


def profile_of(settings: Settings, cores: int) -> str:
    """The profile that the settings amount to, or "custom"."""
    for name, preset in profiles(cores).items():
        if all(value_of(settings, key) == value for key, value in preset.items()):
            return name
    return "custom"


def value_of(settings: Settings, key: str) -> Value:
    """What `section.name` is set to; raises SettingsError."""
    section, _, name = key.partition(".")
    if section not in _names(settings) or name not in _names(getattr(settings, section)):
        raise SettingsError(f"There is no setting {key}.", _meant(name, section))
    value: Value = getattr(getattr(settings, section), name)
    return value


def read(path: Path, overrides: tuple[str, ...] = ()) -> Settings:
    """The settings of a file (a missing one means all defaults) with `key=value` overrides; raises SettingsError.

    A file that cannot be used is left exactly as it is.
    """
    return _overridden(_known(_table(path)), overrides, str(path))


def _overridden(stored: dict[str, Any], overrides: tuple[str, ...], source: str) -> Settings:
    """What the `source` says, with overrides on top; raises SettingsError, which blames the one that is wrong."""
    if not overrides:
        return _checked(stored, source)
    table = deepcopy(stored)
    for override in overrides:
        _override(table, override)
    try:
        return _checked(table, "the command line")
    except SettingsError:
        _checked(stored, source)  # raises where that itself is wrong
        raise


def named(path: Path, keys: Iterable[str]) -> dict[str, Value]:
    """What a file says of each `section.name`, None where it says nothing; raises SettingsError."""
    table = _table(path)
    values: dict[str, Value] = {}
    for key in keys:
        section, _, name = key.partition(".")
        part = table.get(section)
        value = part.get(name) if isinstance(part, dict) else None
        values[key] = tuple(value) if isinstance(value, list) else value
    return values


def change(path: Path, values: Mapping[str, Value], overrides: tuple[str, ...] = ()) -> Settings:
    """Set `section.name` to values (None: back to the default) in the file, all or none; the settings with `overrides` on top.

    Raises SettingsError, the file then being as it was.
    """
    table = _table(path)
    for key, value in values.items():
        value_of(Settings(), key)
        section, _, name = key.partition(".")
        part = table.setdefault(section, {})
        if not isinstance(part, dict):
            raise SettingsError(f"In {path}: {section} is no section.", "Mend that line, or rename the file.")
        part.pop(name, None)
        if value is not None:
            part[name] = list(value) if isinstance(value, tuple) else value
    stored = _known(table)
    _checked(stored, "these settings")
    changed = _overridden(stored, overrides, "these settings")
    import tomli_w

    text = tomli_w.dumps({section: part for section, part in table.items() if part})
    if len(text) > MAX_CHARACTERS:
        raise SettingsError("These settings are too long to be kept.", "Shorten the lists in them.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        paths.write_atomically(path, text.encode())
    except OSError as error:
        raise SettingsError(f"The settings cannot be written: {error.strerror}.", f"Check {path}.") from error
    return changed


def _table(path: Path) -> dict[str, Any]:
    """What the file says, unchecked; raises SettingsError."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad begins with a mark
    except FileNotFoundError:
        pass  # nobody has chosen anything yet
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("The settings file cannot be read.", f"Check that {path} is yours to read ({error}).") from error
    if len(text) > MAX_CHARACTERS:
        raise SettingsError(f"The settings file {path} is too long.", "All settings fit on a page: is this the right file?")
    try:
        return tomllib.loads(text)
    except NO_TOML as error:
        raise SettingsError(
            "The settings file cannot be read.", f"{path} is not valid TOML: {error}. Mend that line, or rename the file."
        ) from error


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used, to a name that none has yet; that name. Raises SettingsError."""
    names = (path.with_name(f"{path.name}.broken{end}") for end in ("", *(f"-{number}" for number in range(2, 1000))))
    try:
        free = next(name for name in names if not os.path.lexists(name))
        return path.rename(free)
    except (OSError, StopIteration) as error:
        raise SettingsError("The settings file cannot be set aside.", f"Check {path}.") from error


def _known(table: dict[str, Any]) -> dict[str, Any]:
    """Without what a newer version wrote, which stays in the file for it: names like none here, so no slip is passed over."""
    sections = _names(Settings())
    parts = {name: part for name, part in table.items() if name in sections or _close(name, sections)}
    for name in sections & parts.keys():
        if isinstance(part := parts[name], dict):
            names = _names(getattr(Settings(), name))
            parts[name] = {key: value for key, value in part.items() if key in names or _close(key, names)}
    return parts


def assignment(text: str) -> tuple[str, Value]:
    """`section.name=value` as a key and its value; nothing after the sign means the default. Raises SettingsError."""
    key, equals, value = text.partition("=")
    if not equals or key.count(".") != 1:
        raise SettingsError(f"{text} is not of the form section.name=value.", "For example: swarm.port=4001")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except NO_TOML:
        parsed = value or None  # a bare word is a string: nobody wants to quote paths twice on a command line
    return key.strip(), parsed


def holds(override: str, settings: Settings) -> bool:
    """Whether what a `key=value` of the command line says is so in these settings."""
    try:
        return _overridden(msgspec.to_builtins(settings), (override,), "these settings") == settings
    except SettingsError:
        return False


def _override(table: dict[str, Any], override: str) -> None:
    key, value = assignment(override)
    section, _, name = key.partition(".")
    part = table.setdefault(section, {})
    if isinstance(part, dict):  # else the check below refuses the file
        part[name] = value_of(Settings(), key) if value is None else value


def _checked(table: dict[str, Any], source: str) -> Settings:
    try:
        settings = msgspec.convert(table, Settings)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: a key that is no text
        raise SettingsError(f"In {source}: {_plain(str(error))}.", _nearest(str(error)) or "Nothing was changed.") from error
    if settings.model.folder and settings.model.name:
        raise SettingsError("model.folder and model.name are both set.", "Remove the one that should not be used.")
    if len(settings.when.week) not in (0, 7):
        raise SettingsError(f"when.week has {len(settings.when.week)} days.", "It needs seven, Monday first, or none.")
    learning = settings.learning
    if learning.local + learning.external == 0:
        raise SettingsError("learning.local and learning.external cannot both be 0.", "The default is 4 and 4.")
    if learning.local > learning.questions:
        raise SettingsError(
            f"learning.local is {learning.local}, but only {learning.questions} questions are drawn.",
            "Lower learning.local or raise learning.questions.",
        )
    return settings


def _plain(message: str) -> str:
    """msgspec's sentence with its JSON path written as a settings key."""
    where = re.search(r" - at `\$\.?([^`]*)`", message)
    key = where.group(1) if where else ""
    what = re.sub(r" - at `[^`]*`", "", message).replace("Object contains unknown field", "unknown setting")
    return f"{key}: {what}" if key else what


def _nearest(message: str) -> str:
    unknown = re.search(r"unknown field `(.+?)`(?: - at `\$\.?([^`]*)`)?", message)
    return _meant(unknown.group(1), unknown.group(2)) if unknown else ""


def _meant(name: str, section: str | None) -> str:
    """Which setting was meant by one that there is not, or which there are."""
    known = _names(getattr(Settings(), section)) if section in _names(Settings()) else _names(Settings())
    close = _close(name, known)
    return f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(sorted(known))}."


def _names(part: msgspec.Struct) -> set[str]:
    return {field.name for field in msgspec.structs.fields(type(part))}


def _close(name: str, known: set[str]) -> list[str]:
    """The name that was meant, if any: seed is like seeds."""
    return difflib.get_close_matches(name, sorted(known), n=1)
