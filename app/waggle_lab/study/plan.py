"""The plan of a study: the swarms to play, their configurations, and which runs are still missing.

Every configuration gets the best learning rate of its own sweep. All sweeps try the same rates, on dev questions and with a seed
that no reported run uses, before the first reported run.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from waggle.core.errors import LabError
from waggle.models.shared.training_mode import Method
from waggle.practice.results import Book, Key, Run
from waggle.practice.simulated_swarm import Weather
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.update_rules import rule
from waggle.rl.update_rules.interface import Rule
from waggle.sapo.prompt_form import FORMS
from waggle.sapo.sharing import strategy
from waggle.sapo.stages import BOUNDED, UNBOUNDED, Bounds, RoundSettings
from waggle_lab.study.comparison import ALONE, CONFIGURATIONS, DEFAULT, FILTERED, FLOORED, arms, best_rate

RATES = (2.5e-4, 5e-4, 1e-3)
SWEEP_SEED, SWEEP_ROUNDS = 100, 100
BOUNDS_OF_DEFAULTS = {  # the default, and the default without some of its bounds on peers
    DEFAULT: BOUNDED,
    "default-unbounded": UNBOUNDED,
    "default-share": Bounds(surprise=False, one_sided=False),
    "default-surprise": Bounds(share=1.0, one_sided=False),
    "default-without-balance": Bounds(one_sided=False),
}
MAX_GROUPS = 64  # in a training set
CONFIGURATION_PATTERN = re.compile(r"^(\d+)/(\d+)(?::([a-z_]\w*))?(?::([a-z_]\w*(?:\+[a-z_]\w*)*))?$")


class Option(NamedTuple):
    """What `:NAME=VALUE` behind a configuration's name sets: a field of `Configuration`."""

    field: str
    kind: type[int] | type[float] | type[str]
    least: float = 0.0  # of a number, as `most`
    most: float = 0.0

    def read(self, name: str, text: str) -> Any:
        """The value that a text stands for; raises LabError, which says what values there are."""
        if self.kind is str:
            if text in FORMS:
                return text
            raise LabError(f":{name}={text} is not a form to ask in.", f"Choose from {', '.join(FORMS)}.")
        with contextlib.suppress(ValueError):
            value = int(text) if self.kind is int else float(text)
            if self.least <= value <= self.most:  # also refuses nan
                return value
        number = "a whole number" if self.kind is int else "a number"
        raise LabError(f":{name}={text} cannot be used.", f"{name} is {number} from {self.least:g} to {self.most:g}.")


NAME_OPTIONS = {
    "crumbs": Option("crumb_span", float, 0.0, 1.0),
    "questions": Option("questions", int, 1, MAX_GROUPS),
    "form": Option("form_pay", float, 0.0, 0.99),
    "updates": Option("updates", int, 2, 4),
    "prompt": Option("prompt_form", str),
    "temperature": Option("temperature", float, 0.1, 4.0),
    "rate": Option("learning_rate", float, 1e-9, 1e-1),
}


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes learn. Each draws `questions` a round, and up to `most_questions` if few groups have an advantage."""

    name: str
    local: int
    external: int
    questions: int
    most_questions: int = 0
    strategy: str = "plain"
    rule: str = "grpo"  # or several, joined by +: the nodes take them in turn
    crumb_span: float = 0.0  # 0 as in the paper: any difference in reward counts
    bounds: Bounds = UNBOUNDED  # as in the paper: peers are trusted
    form_pay: float = 0.0  # 0 as in the paper: only right answers are paid
    updates: int = 1  # optimizer steps a round
    prompt_form: str = ""  # how models of one's own are asked; empty: as the app would
    temperature: float = 1.0  # of a node's own groups
    learning_rate: float = 0.0  # 0: one of the study's

    @property
    def update_rules(self) -> tuple[Rule, ...]:
        """The update rules; node i uses update_rules[i % len(update_rules)]."""
        return tuple(map(rule, self.rule.split("+")))

    def rules(self, learning_rate: float) -> RoundSettings:
        return RoundSettings(
            questions=self.questions,
            local=self.local,
            external=self.external,
            learning_rate=learning_rate,
            crumb_span=self.crumb_span,
            rule=self.update_rules[0],
            bounds=self.bounds,
            form_pay=self.form_pay,
            updates=self.updates,
            temperature=self.temperature,
        )


def configuration(name: str) -> Configuration:
    """Read a name: a key of BOUNDS_OF_DEFAULTS, `8/0-filtered`, or I/J[:strategy[:rule[+rule]]]; behind it, NAME_OPTIONS.

    For example 4/4:gated:dapo, or 4/4:gated:grpo+ppo:crumbs=0.2, where every second node uses PPO. `:form=X` pays X for an answer
    in its tags (see `JudgedGroup.form_pay`), `:updates=N` takes N optimizer steps a round. Raises LabError or SettingsError.
    """
    base, *options = re.split(r":(?=\w+=)", name)
    changes: dict[str, Any] = {}
    for text in options:
        key, _, value = text.partition("=")
        option = NAME_OPTIONS.get(key)
        if option is None:
            raise LabError(f"{name}: there is no option {key}.", f"There are {', '.join(NAME_OPTIONS)}.")
        if option.field in changes:
            raise LabError(f"{name} says {key} twice.", "Leave one of them out.")
        changes[option.field] = option.read(key, value)
    read = msgspec.structs.replace(_without_options(base, name), name=name, **changes)
    if read.questions < read.local:
        raise LabError(
            f"{name} learns from {read.local} of its own groups, but draws only {read.questions} questions.", "Raise questions=."
        )
    return read


def _without_options(base: str, name: str) -> Configuration:
    if base in BOUNDS_OF_DEFAULTS:
        defaults = RoundSettings()
        return Configuration(
            name=name, local=defaults.local, external=defaults.external, questions=defaults.questions, strategy="adaptive",
            rule=defaults.rule.name, crumb_span=defaults.crumb_span, bounds=BOUNDS_OF_DEFAULTS[base],
        )  # fmt: skip
    if base == FILTERED:
        return Configuration(
            name=name, local=8, external=0, questions=8, most_questions=24, strategy="filtered", crumb_span=CRUMB_SPAN
        )
    match = CONFIGURATION_PATTERN.match(base)
    if not match or int(match[1]) < 1 or int(match[1]) + int(match[2]) > MAX_GROUPS:
        raise _no_configuration(name)
    return Configuration(
        name=name,
        local=int(match[1]),
        external=int(match[2]),
        questions=int(match[1]),
        strategy=strategy(match[3] or "plain").name,
        rule="+".join(rule(name).name for name in (match[4] or "grpo").split("+")),
    )


def _no_configuration(name: str) -> LabError:
    return LabError(
        f"{name} is not a configuration.", "For example: 8/0, 4/4, 4/4:gated, 4/4:gated:dapo:crumbs=0.2:questions=8, default."
    )


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a study: the models that its nodes start from, and the seeds of each configuration."""

    setting: str
    rounds: int
    seeds: Mapping[str, tuple[int, ...]]
    models: str = ""  # the setting of `setting_models` that has the models; empty: this setting
    folders: tuple[str, ...] = ()  # use these model folders instead: node i starts from folders[i % len(folders)]
    methods: tuple[Method, ...] = ("full",)  # node i trains by methods[i % len(methods)]
    specialties_per_node: int = msgspec.field(default=0, name="asked")  # how many a node asks about; 0: all of the charter's


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole study: everything that its numbers depend on."""

    parts: tuple[Part, ...]
    split: str = "test"
    rates: tuple[float, ...] = RATES  # one rate: no sweep
    nodes: int = 8
    charter: str = ""  # a file; empty: the first swarm, which ships with Waggle
    longest: int = RoundSettings().max_new  # tokens of a completion
    weather: Weather = msgspec.field(default_factory=Weather)
    held_out: int = 16  # questions of each specialty, for every point of a held-out curve
    final_held_out: int = 32  # questions of each specialty, for the score at the end
    measure_every: int = 25  # rounds
    device: str = "cpu"

    @property
    def configurations(self) -> dict[str, Configuration]:
        """The meaning of every name today. study.json records it: if a name changes its meaning, it is another study."""
        return {name: configuration(name) for part in self.parts for name in part.seeds}

    def missing(self, book: Book[Run]) -> Iterator[Key]:
        """The missing runs that can be played now: first the sweep of a configuration, then its reported runs."""
        for part in self.parts:
            for name, seeds in part.seeds.items():
                sweep = self._sweep(part, name)
                unfinished = [key for key in sweep if key not in book]
                yield from unfinished
                if unfinished:
                    continue
                rate = (
                    best_rate(arms([book[key] for key in sweep])) if sweep else configuration(name).learning_rate or self.rates[0]
                )
                yield from (key for seed in seeds if (key := self._key(part, name, seed, rate)) not in book)

    def total(self) -> int:
        """The rounds of all runs, played or not."""
        return sum(self._rounds(part, name) for part in self.parts for name in part.seeds)

    def _rounds(self, part: Part, name: str) -> int:
        """The rounds of one configuration; a run that is part of the sweep and is reported too is played once."""
        sweep = self._sweep(part, name)
        reported = [self._key(part, name, seed, RATES[0]) for seed in part.seeds[name]]
        swept = {msgspec.structs.replace(key, learning_rate=RATES[0]) for key in sweep}
        return sum(key.rounds for key in sweep) + sum(key.rounds for key in reported if key not in swept)

    def _sweep(self, part: Part, name: str) -> list[Key]:
        if len(self.rates) == 1 or configuration(name).learning_rate:
            return []
        return [
            Key(setting=part.setting, configuration=name, seed=SWEEP_SEED, learning_rate=rate, rounds=SWEEP_ROUNDS, split="dev")
            for rate in self.rates
        ]

    def _key(self, part: Part, name: str, seed: int, rate: float) -> Key:
        return Key(setting=part.setting, configuration=name, seed=seed, learning_rate=rate, rounds=part.rounds, split=self.split)


FIVE, THREE = (1, 2, 3, 4, 5), (1, 2, 3)


def paper() -> Study:
    """The table of the SAPO paper (arXiv 2509.08721), extended by configurations and by the setting `partial`."""
    five_seeds = (ALONE, FILTERED, DEFAULT)
    sparse = {name: FIVE if name in five_seeds else THREE for name in (*CONFIGURATIONS, FLOORED)}
    other_parts = [
        Part(setting=name, rounds=200, seeds=dict.fromkeys(CONFIGURATIONS, THREE))
        for name in ("identical", "diversified", "heterogeneous")
    ]
    partial = Part(
        setting="partial", rounds=200, seeds=dict.fromkeys((ALONE, DEFAULT), THREE), models="sparse", specialties_per_node=3
    )
    return Study(parts=(Part(setting="sparse", rounds=600, seeds=sparse), *other_parts, partial))


CRUMB_FLOOR_AND_SURPLUS = (
    ":crumbs=0.2:questions=8"  # as in the default: small differences do not count, and more groups are drawn than are trained on
)
SHARING_STRATEGIES = (
    "plain",
    "own_probability",
    "truncated_importance",
    "capability",
    "gated",
    "adaptive",
    "informative",
    "replay",
)
OPTIONS = (
    *("8/0", FLOORED, "4/4", "4/4:plain:grpo:crumbs=0.2", "4/4:gated:grpo:crumbs=0.2"),
    *(f"4/4:{name}" for name in (*SHARING_STRATEGIES[1:], "balanced", "guard")),
    *(f"4/4:{name}:grpo{CRUMB_FLOOR_AND_SURPLUS}" for name in SHARING_STRATEGIES),
    *(f"4/4:gated:{update}{more}" for update in ("dr_grpo", "dapo", "ppo") for more in ("", CRUMB_FLOOR_AND_SURPLUS)),
)
CONTENDERS = (
    *("8/0", "4/4", "4/4:gated", f"4/4:gated:grpo{CRUMB_FLOOR_AND_SURPLUS}", f"4/4:gated:dr_grpo{CRUMB_FLOOR_AND_SURPLUS}"),
    *(
        f"4/4:adaptive:grpo{CRUMB_FLOOR_AND_SURPLUS}",
        f"4/4:informative:grpo{CRUMB_FLOOR_AND_SURPLUS}",
        f"4/4:replay:grpo{CRUMB_FLOOR_AND_SURPLUS}",
    ),
)


# Published rules for learning from others' rollouts beside our own, and the node alone with as many and with twice the questions.
# `--configurations published` stands for these.
PUBLISHED = "published"
PUBLISHED_RULES = (
    *("8/0:plain:grpo:crumbs=0.2", "8/0:filtered:grpo:crumbs=0.2:questions=16"),
    *(f"4/4:{name}:grpo{CRUMB_FLOOR_AND_SURPLUS}" for name in ("plain", "gated", "adaptive", "own_probability", "replay")),
    *(f"4/4:{name}:grpo{CRUMB_FLOOR_AND_SURPLUS}" for name in ("luffy", "success_gated")),
    *(
        f"4/4:{name}:grpo{CRUMB_FLOOR_AND_SURPLUS}"
        for name in ("truncated_importance", "capability", "f_tis", "off_policy_mask", "topr")
    ),
)


def names_in(listed: str) -> list[str]:
    """The names between commas. `published` stands for all of PUBLISHED_RULES, and `published:updates=4` for them with it."""
    names = list[str]()
    for name in listed.split(","):
        word, colon, options = name.partition(":")
        names += [f"{rule}{colon}{options}" for rule in PUBLISHED_RULES] if word == PUBLISHED else [name]
    return names


def options() -> Study:
    """The study that chooses the defaults: every strategy and update rule, on dev questions and unreported seeds."""
    sparse, dense = dict.fromkeys(OPTIONS, (101, 102)), dict.fromkeys(CONTENDERS, (101,))
    parts = (Part(setting="sparse", rounds=120, seeds=sparse), Part(setting="identical", rounds=120, seeds=dense))
    return Study(parts=parts, split="dev", rates=(5e-4,))
