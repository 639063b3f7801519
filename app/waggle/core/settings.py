"""The settings, with their defaults and reasons, in a TOML file.

A value in the file that cannot be used costs that value, for this run: its default holds, `unusable` names it, and the file
stays as it is. Only what decides with whom and what this computer trains (MUST_BE_RIGHT) has to be right, because its default
could be more open than what a person chose. Changes and the command line are checked strictly, and applied completely or not.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_type_hints

import msgspec

from waggle.core import damaged_file, paths
from waggle.core.errors import SettingsError
from waggle.core.message import Message, in_turn
from waggle.core.module_names import module_names
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of

MAX_CHARACTERS = 10_000  # of a settings file: the time to parse one grows with the square of its length
NO_TOML = (ValueError, RecursionError)  # TOMLDecodeError, and what tomllib raises for huge numbers and deep nesting
USUAL_QUESTIONS = 8  # of a round
Positive = Annotated[int, msgspec.Meta(ge=1)]
Percent = Annotated[int, msgspec.Meta(ge=5, le=100)]
Hours = Annotated[str, msgspec.Meta(pattern=r"^[#.]{24}\Z")]  # of one day: # may contribute, . may not
UPDATE_RULES = module_names("rl/update_rules")
LIVE_SHARING_STRATEGIES = module_names("sapo/sharing")  # a live swarm carries all that these need
SHARING_STRATEGIES = tuple(sorted((*LIVE_SHARING_STRATEGIES, *module_names("sapo/sharing/sender_logp"))))
if TYPE_CHECKING:
    UpdateRule: TypeAlias = str
    SharingStrategy: TypeAlias = str
else:  # msgspec checks that the setting names a file in one of these folders
    UpdateRule, SharingStrategy = Literal[UPDATE_RULES], Literal[SHARING_STRATEGIES]
Value = bool | int | float | str | tuple[str, ...] | None  # of one setting; None: its default
ALL_DEFAULTS = "# All settings have their defaults.\n"  # the file's text then: an empty one was lost, and nobody chose that
MUST_BE_RIGHT = ("swarm", "web", "model.folder", "model.name")  # sections and settings


class SwarmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With whom to train. A node without seeds waits for others to find it; a `solo` node opens no network."""

    solo: bool = False
    seeds: tuple[str, ...] = ()  # multiaddresses with a peer id: /ip4/192.0.2.1/tcp/4001/p2p/12D3...
    host: str = "0.0.0.0"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0  # 0: any free one
    lan: bool = False  # find others on the local network; everybody there then sees that Waggle runs here, and in which swarm
    upnp: bool = False  # ask the router to let calls through; only if a person wants it
    through: Literal["auto", "relay", "direct"] = "auto"  # be called through the seeds: if a router blocks calls, always, never
    gateways: tuple[str, ...] = ()  # ws:// or wss://, optionally with # and a peer id; if peers cannot be reached directly
    light: bool = False  # use only gateways, for networks that block everything but the web
    leaderboard: bool = False  # publish this model's answers to the swarm's exams, and grade those of others
    my_answers: Literal["ask", "no", "yes"] = "ask"  # share answers that a person writes in the playground, marked as human
    charter: str = ""  # a charter file, or a hash to ask the seeds for; empty: the swarm that ships with Waggle


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A port for browsers with the status page of the swarm. It is off by default, and then open to this computer only."""

    host: str = "127.0.0.1"  # 0.0.0.0: open to everybody who can reach this computer
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0  # 0: none
    gateway: bool = False  # serve light clients there
    class_page: bool = False  # serve /class and /join, with an invite: who can open them sees chosen names, and can join


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to train: a transformers folder or a model of the hub; if neither is set, the starter that ships with Waggle."""

    folder: str = ""
    name: str = ""  # owner/name, or owner/name@revision: Qwen/Qwen2.5-0.5B-Instruct
    training: Literal["auto", "full", "lean", "lora", "qlora"] = "auto"  # auto: all weights if memory allows, see models.shared
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of matrix products; auto: bfloat16 if it is faster here
    # how it is asked (sapo/prompt_form.py); auto: the form in which most of its answers can be read
    prompt_form: Literal["auto", "plain", "example", "example_opened", "chat", "chat_example", "chat_example_opened"] = "auto"


class LearningSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One round: draw `questions`, learn from `local` of their groups and `external` groups of peers (SAPO, algorithm 1).

    Both numbers are targets: external groups replace local ones that teach nothing, and local groups fill up if peers offer too
    few.
    """

    questions: Annotated[int, msgspec.Meta(ge=1, le=64)] = USUAL_QUESTIONS  # 8: 6 or 4 if a round would take long
    local: Annotated[int, msgspec.Meta(ge=0, le=64)] = 4
    external: Annotated[int, msgspec.Meta(ge=0, le=64)] = 4
    group_size: Annotated[int, msgspec.Meta(ge=2, le=16)] = 8
    rule: UpdateRule = "grpo"  # how rewards become a gradient: a file of rl/update_rules/
    sharing: SharingStrategy = "adaptive"  # which external groups count, and how much: a file of sapo/sharing/
    specialties: tuple[str, ...] = ()  # the swarm's specialties to ask about; empty: all
    max_new_tokens: Annotated[int, msgspec.Meta(ge=0, le=2048)] = 0  # of an answer; 0: what readable ones need
    temperature: Annotated[float, msgspec.Meta(gt=0.0, le=4.0)] = 1.0
    top_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0  # nucleus sampling
    learning_rate: Annotated[float, msgspec.Meta(ge=0.0, le=1e-2)] = 0.0  # 0: 5e-4 for the starter, less for larger models
    form_pay: Literal["auto", "on", "off"] = "auto"  # pay a little for an answer in its tags; auto: not for the starter
    updates: Annotated[int, msgspec.Meta(ge=1, le=4)] = 1  # steps a round, each on a part of its groups (sapo/minibatches.py)
    # of a node that trains alone: with the same one, a run can be repeated (engine/storage/run_file.py); 0: random
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] = 0
    warmup_steps: Annotated[int, msgspec.Meta(ge=0)] = 10  # AdamW's first steps are equally large for all weights
    # rounds between two held-out scores; 25: by time, except for the starter (engine/runtime/held_out_schedule.py)
    held_out_every: Positive = 25
    held_out_questions: Annotated[int, msgspec.Meta(ge=1, le=200)] = 30  # of each specialty


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When this computer contributes. A rule that cannot be checked on this computer counts as fulfilled."""

    idle_minutes: Annotated[int, msgspec.Meta(ge=0, le=240)] = 0  # since the last key or mouse movement; 0: also while it is used
    only_on_power: bool = True  # not on battery
    week: Annotated[tuple[Hours, ...], msgspec.Meta(max_length=7)] = ()  # Monday first; empty: always
    not_while: Annotated[tuple[str, ...], msgspec.Meta(max_length=50)] = ()  # programs that run, by their file names
    not_full_screen: bool = True  # a game, a film, a presentation
    not_metered: bool = True
    below_celsius: Annotated[int, msgspec.Meta(ge=0, le=110)] = 85  # of the processor; 0: at any temperature
    kwh_a_day: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 0.0  # a budget of estimated energy; 0: none


class ComputerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of this computer to use."""

    threads: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0  # cores; 0: a quarter, at least 1, so that it stays pleasant to use
    device: Literal["auto", "cpu", "cuda", "xpu", "mlx"] = "auto"  # auto: MLX on Apple Silicon, else the GPU torch finds, or none
    priority: Literal["lowest", "low", "normal"] = "lowest"  # of our processes, against other programs
    keep_awake: Literal["no", "on_power", "always"] = "no"  # hold off the system's sleep while it contributes
    cpu_percent: Percent = 100  # of the time
    gpu_percent: Percent = 50  # of the time; above 50, a screen on the same GPU stutters
    # consumption while it contributes; 0: estimated, see protocol/figures/energy_estimate.py
    watts: Annotated[float, msgspec.Meta(ge=0.0, le=5000.0)] = 0.0
    price_kwh: Annotated[float, msgspec.Meta(ge=0.0, le=1e3)] = 0.0  # in your own currency; 0: not known
    memory_gb: Annotated[float, msgspec.Meta(ge=0.0, le=4096.0)] = 0.0  # 0: what the model needs
    traffic_kb: Annotated[int, msgspec.Meta(ge=0)] = 0  # kB/s each way, beside a little to stay connected; 0: no limit
    # for saved states and models; the oldest are removed first, the newest good one never; 0: no limit
    disk_gb: Annotated[float, msgspec.Meta(ge=0.0, le=10_000.0)] = 20.0


class WindowSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the window looks, and what it does by itself. A closed window goes to the tray if the desktop has one."""

    welcomed: bool = False  # the welcome questions were answered or skipped
    theme: Literal["system", "light", "dark", "high_contrast"] = "system"
    language: Literal["system", "en", "de", "pl"] = "system"
    text_percent: Annotated[int, msgspec.Meta(ge=80, le=200)] = 100
    less_motion: Literal["system", "on", "off"] = "system"  # on: counters and highlights instead of animation
    close_to_tray: bool = True
    at_login: Literal["nothing", "window", "engine"] = "nothing"  # what starts when this user logs in (core/login_start.py)
    notify_problems: bool = True
    notify_discoveries: bool = True
    suggest_swarm: bool = True  # that suits a chosen model better; false once such a suggestion was dismissed
    read_out: bool = False  # every minute, tell a screen reader what happened


class TrackingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the figures of rounds are written for tools of research, whose libraries are named in core/research_library.py."""

    # of the rounds from now on, in these tools and in the history; empty: of model, swarm and learning settings
    run: Annotated[str, msgspec.Meta(max_length=60)] = ""
    tensorboard: str = ""  # a folder with a folder for each run
    wandb: str = ""  # a folder for offline runs of Weights & Biases
    trackio: str = ""  # a folder with the database of Trackio


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    swarm: SwarmSettings = SwarmSettings()
    web: WebSettings = WebSettings()
    model: ModelSettings = ModelSettings()
    learning: LearningSettings = LearningSettings()
    when: ScheduleSettings = ScheduleSettings()
    computer: ComputerSettings = ComputerSettings()
    window: WindowSettings = WindowSettings()
    tracking: TrackingSettings = TrackingSettings()


def profiles(cores: int) -> dict[str, dict[str, Value]]:
    """The profiles: presets of when and how much, gentlest first. The first is the default. `cores` are this computer's."""
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
    """The profile whose values the settings have, or "custom"."""
    for name, preset in profiles(cores).items():
        if all(value_of(settings, key) == value for key, value in preset.items()):
            return name
    return "custom"


def value_of(settings: Settings, key: str) -> Value:
    """The value of `section.name`. Raises SettingsError."""
    section, _, name = key.partition(".")
    if section not in _names(settings) or name not in _names(getattr(settings, section)):
        raise SettingsError(Message("There is no setting %1.", key), _advice_for(name, section))
    value: Value = getattr(getattr(settings, section), name)
    return value


def read(path: Path, overrides: tuple[str, ...] = ()) -> Settings:
    """The settings of a file (defaults if it does not exist) with `key=value` overrides. Raises SettingsError.

    Defaults hold where the file has values that cannot be used (see `unusable`). The file is not changed.
    """
    return _with_overrides(_usable(_known_names(_table(path)), str(path))[0], overrides, str(path))


def unusable(path: Path) -> tuple[SettingsError, ...]:
    """What `read` passes over in a file: an error for each value, which nobody has to raise. Raises SettingsError as `read`."""
    return _usable(_known_names(_table(path)), str(path))[1]


def _with_overrides(stored: dict[str, Any], overrides: tuple[str, ...], source: str) -> Settings:
    """The stored settings with overrides. Raises SettingsError, which names the one of both that is wrong."""
    if not overrides:
        return _check(stored, source)
    table = deepcopy(stored)
    for override in overrides:
        _override(table, override)
    try:
        return _check(table, "the command line")
    except SettingsError:
        _check(stored, source)  # raises if the stored settings are wrong
        raise


def stored_values(path: Path, keys: Iterable[str]) -> dict[str, Value]:
    """The values in a file of each `section.name`, None if it is not set. Raises SettingsError."""
    table = _table(path)
    values: dict[str, Value] = {}
    for key in keys:
        section, _, name = key.partition(".")
        part = table.get(section)
        value = part.get(name) if isinstance(part, dict) else None
        values[key] = tuple(value) if isinstance(value, list) else value
    return values


def change(path: Path, values: Mapping[str, Value], overrides: tuple[str, ...] = ()) -> Settings:
    """Set `section.name` to values (None: the default) in the file, and return the settings with `overrides`.

    Raises SettingsError; then the file has not changed.
    """
    table = _table(path)
    for key, value in values.items():
        value_of(Settings(), key)
        section, _, name = key.partition(".")
        part = table.setdefault(section, {})
        if not isinstance(part, dict):
            raise SettingsError(Message("In %1: %2 is no section.", path, section), "Mend that line, or rename the file.")
        part.pop(name, None)
        if value is not None:
            part[name] = list(value) if isinstance(value, tuple) else value
    stored, _ = _usable(_known_names(table), "these settings", keep=values)
    _check(stored, "these settings")
    changed = _with_overrides(stored, overrides, "these settings")
    import tomli_w

    text = tomli_w.dumps({section: part for section, part in table.items() if part}) or ALL_DEFAULTS
    if len(text) > MAX_CHARACTERS:
        raise SettingsError("These settings are too long to be kept.", "Shorten the lists in them.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        paths.write_atomically(path, text.encode())
    except OSError as error:
        raise SettingsError(
            Message("The settings %1 cannot be written: %2.", path, fault_of(error).reason), fault_of(error).advice
        ) from error
    return changed


def _table(path: Path) -> dict[str, Any]:
    """The file's content, unchecked. Raises SettingsError."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad writes a byte order mark
    except FileNotFoundError:
        return {}  # no setting was changed yet
    except OSError as error:
        raise SettingsError(
            Message("The settings file %1 cannot be read: %2.", path, fault_of(error).reason), fault_of(error).advice
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            Message("The settings file %1 cannot be read: it is not in UTF-8.", path), "Save it as UTF-8, or rename it."
        ) from error
    if not text.strip():  # training alone, for example, was a choice: the defaults are more open
        raise SettingsError(
            Message("The settings file %1 is empty, so what you chose is lost.", path),
            "Put a copy of it back, or rename it to begin with the default settings.",
        )
    if len(text) > MAX_CHARACTERS:
        raise SettingsError(
            Message("The settings file %1 is too long.", path), "All settings fit on a page: is this the right file?"
        )
    try:
        return tomllib.loads(text)
    except NO_TOML as error:
        raise SettingsError(
            "The settings file cannot be read.",
            Message("%1 is not valid TOML: %2. Mend that line, or rename the file.", path, error),
        ) from error


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used to a free name, and return it. Raises SettingsError."""
    try:
        return file_moves.rename(path, damaged_file.free_name(path.with_name(f"{path.name}.broken")))
    except OSError as error:
        fault = fault_of(error)
        raise SettingsError(Message("The settings file %1 cannot be set aside: %2.", path, fault.reason), fault.advice) from error


def _known_names(table: dict[str, Any]) -> dict[str, Any]:
    """The table without unknown names, which a newer version may have written. Names close to a known one stay: a slip."""
    sections = _names(Settings())
    parts = {name: part for name, part in table.items() if name in sections or _close(name, sections)}
    for name in sections & parts.keys():
        if isinstance(part := parts[name], dict):
            names = _names(getattr(Settings(), name))
            parts[name] = {key: value for key, value in part.items() if key in names or _close(key, names)}
    return parts


def _usable(table: dict[str, Any], source: str, *, keep: Iterable[str] = ()) -> tuple[dict[str, Any], tuple[SettingsError, ...]]:
    """The table without values that cannot be used, and why; those that must be right, and those to `keep`, stay in it."""
    usable, reasons = deepcopy(table), list[SettingsError]()
    while True:
        try:
            msgspec.convert(usable, Settings)
        except msgspec.ValidationError as error:
            section, name = _place(str(error))
            key = f"{section}.{name}" if name else section
            part = usable.get(section) if name else usable
            meant = section if section in _names(Settings()) else next(iter(_close(section, _names(Settings()))), section)
            must_be_right = meant in MUST_BE_RIGHT or key in MUST_BE_RIGHT
            if must_be_right or key in keep or not isinstance(part, dict) or part.pop(name or section, part) is part:
                return usable, tuple(reasons)
            reasons.append(
                SettingsError(
                    Message("The setting %1 cannot be used, so Waggle uses the default.", key),
                    in_turn(Message("In %1: %2.", source, _plain(str(error))), _nearest(str(error))),
                )
            )
        except UnicodeEncodeError:  # a key with lone surrogates, which `_check` explains
            return usable, tuple(reasons)
        else:
            return usable, tuple(reasons)


def _place(message: str) -> tuple[str, str]:
    """The section and the name of what msgspec refuses; no name if it is the section as a whole."""
    where = re.search(r" - at `\$\.?([^`]*)`", message)
    unknown = re.search(r"unknown field `(.+?)`", message)
    path = ".".join(filter(None, (where and where.group(1), unknown and unknown.group(1))))
    section, _, name = path.partition(".")
    return section, re.split(r"[.\[]", name, maxsplit=1)[0]


def assignment(text: str) -> tuple[str, Value]:
    """`section.name=value` as a key and a value; no value means the default. Raises SettingsError."""
    key, equals, value = text.partition("=")
    if not equals or key.count(".") != 1:
        raise SettingsError(Message("%1 is not of the form section.name=value.", text), "For example: swarm.port=4001")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except NO_TOML:
        parsed = value or None  # a bare word is a string, so that paths need no second quotes on a command line
    return key.strip(), parsed


def override(key: str, value: Value) -> str:
    """The `section.name=value` that `assignment` reads as this key and value. Raises SettingsError for other kinds of values."""
    import tomli_w

    if value is None:
        return f"{key}="
    try:
        text = tomli_w.dumps({"value": list(value) if isinstance(value, tuple) else value})
    except TypeError:
        raise SettingsError(
            Message("%1 cannot be %2.", key, repr(value)), "A setting is a truth value, a number, a text or a list."
        ) from None
    return f"{key}={text.partition('=')[2].strip()}"


def matches_override(override: str, settings: Settings) -> bool:
    """Whether these settings have the value that a `key=value` of the command line sets."""
    try:
        return _with_overrides(msgspec.to_builtins(settings), (override,), "these settings") == settings
    except SettingsError:
        return False


def _override(table: dict[str, Any], override: str) -> None:
    key, value = assignment(override)
    section, _, name = key.partition(".")
    part = table.setdefault(section, {})
    if isinstance(part, dict):  # if not, `_check` refuses it
        part[name] = value_of(Settings(), key) if value is None else value


def _check(table: dict[str, Any], source: str) -> Settings:
    try:
        settings = msgspec.convert(table, Settings)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # UnicodeEncodeError: a key with lone surrogates
        raise SettingsError(
            Message("In %1: %2.", source, _plain(str(error))), _nearest(str(error)) or "Nothing was changed."
        ) from error
    if settings.model.folder and settings.model.name:
        raise SettingsError("model.folder and model.name are both set.", "Remove the one that should not be used.")
    if len(settings.when.week) not in (0, 7):
        raise SettingsError(Message("when.week has %1 days.", len(settings.when.week)), "It needs seven, Monday first, or none.")
    learning = settings.learning
    if learning.local + learning.external == 0:
        raise SettingsError("learning.local and learning.external cannot both be 0.", "The default is 4 and 4.")
    if learning.local > learning.questions:
        raise SettingsError(
            Message("learning.local is %1, but only %2 questions are drawn.", learning.local, learning.questions),
            "Lower learning.local or raise learning.questions.",
        )
    return settings


def _plain(message: str) -> str:
    """msgspec's message, with its JSON path written as a setting's name."""
    where = re.search(r" - at `\$\.?([^`]*)`", message)
    key = where.group(1) if where else ""
    what = re.sub(r" - at `[^`]*`", "", message).replace("Object contains unknown field", "unknown setting")
    return f"{key}: {what}" if key else what


def _nearest(message: str) -> str:
    if wrong := re.search(r"Invalid enum value '.*' - at `\$\.(\w+)\.(\w+)`", message):
        section, name = wrong.groups()
        return Message("There are %1.", ", ".join(get_args(get_type_hints(type(getattr(Settings(), section)))[name])))
    unknown = re.search(r"unknown field `(.+?)`(?: - at `\$\.?([^`]*)`)?", message)
    return _advice_for(unknown.group(1), unknown.group(2)) if unknown else ""


def _advice_for(name: str, section: str | None) -> str:
    """Advice for an unknown setting: the one that was probably meant, or all that exist."""
    known = _names(getattr(Settings(), section)) if section in _names(Settings()) else _names(Settings())
    close = _close(name, known)
    return f"Did you mean {close[0]}?" if close else Message("Known here: %1.", ", ".join(sorted(known)))


def _names(part: msgspec.Struct) -> set[str]:
    return set(part.__struct_fields__)


def _close(name: str, known: set[str]) -> list[str]:
    """The known name that is close to an unknown one, if any: seed is close to seeds."""
    return difflib.get_close_matches(name, sorted(known), n=1)
