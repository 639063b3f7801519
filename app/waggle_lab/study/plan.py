"""The plan of a study: which swarms are played, in which configurations, and which runs are still to do.

A configuration's learning rate is the best of the same small sweep for everybody: scored on dev questions with a seed of
its own, before any run that is reported.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from waggle.core.errors import LabError
from waggle.practice.results import Book, Key, Run
from waggle.practice.simulated_swarm import Weather
from waggle.rl.advantage import CRUMB_SPAN
from waggle.rl.update_rules import rule
from waggle.rl.update_rules.interface import Rule
from waggle.sapo.sharing import strategy
from waggle.sapo.stages import BOUNDED, UNBOUNDED, Bounds, RoundSettings
from waggle_lab.study.comparison import ALONE, CONFIGURATIONS, DEFAULT, FILTERED, FLOORED, arms, best_rate

RATES = (2.5e-4, 5e-4, 1e-3)
SWEEP_SEED, SWEEP_ROUNDS = 100, 100
DEFAULTS = {  # what each bound on peers costs: the default without it
    DEFAULT: BOUNDED,
    "default-unbounded": UNBOUNDED,
    "default-share": Bounds(surprise=False),
    "default-surprise": Bounds(share=1.0),
}
MOST = 64  # groups of a training set
NAME = re.compile(
    r"^(\d+)/(\d+)(?::([a-z_]\w*))?(?::([a-z_]\w*(?:\+[a-z_]\w*)*))?(?::crumbs=(\d+(?:\.\d+)?))?(?::questions=(\d+))?$"
)


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """How every node of a swarm learns. `questions` are drawn a round; up to `most_questions` where few groups teach."""

    name: str
    local: int
    external: int
    questions: int
    most_questions: int = 0
    strategy: str = "plain"
    rule: str = "grpo"  # or several with +: node i takes the i-th, in turn
    crumb_span: float = 0.0  # as published: any difference in reward counts
    bounds: Bounds = UNBOUNDED  # as published: peers are believed

    @property
    def updates(self) -> tuple[Rule, ...]:
        """Of node i: updates[i % len]."""
        return tuple(map(rule, self.rule.split("+")))

    def rules(self, learning_rate: float) -> RoundSettings:
        return RoundSettings(
            questions=self.questions,
            local=self.local,
            external=self.external,
            learning_rate=learning_rate,
            crumb_span=self.crumb_span,
            rule=self.updates[0],
            bounds=self.bounds,
        )


def configuration(name: str) -> Configuration:
    """`default` (or without its bounds on peers), `8/0-filtered`, or I/J[:strategy[:rule[+rule]]][:crumbs=X][:questions=N].

    For example 4/4:gated:dapo, or 4/4:gated:grpo+ppo, where every second node learns by PPO. Raises LabError or SettingsError.
    """
    if name in DEFAULTS:
        usual = RoundSettings()
        return Configuration(
            name=name, local=usual.local, external=usual.external, questions=usual.questions, strategy="adaptive",
            rule=usual.rule.name, crumb_span=usual.crumb_span, bounds=DEFAULTS[name],
        )  # fmt: skip
    if name == FILTERED:
        return Configuration(
            name=name, local=8, external=0, questions=8, most_questions=24, strategy="filtered", crumb_span=CRUMB_SPAN
        )
    found = NAME.match(name)
    questions = int(found[6] or found[1]) if found else 0
    if not found or int(found[1]) < 1 or int(found[1]) + int(found[2]) > MOST or not 1 <= questions <= MOST:
        raise LabError(
            f"{name} is not a configuration.", "For example: 8/0, 4/4, 4/4:gated, 4/4:gated:dapo:crumbs=0.2:questions=8, default."
        )
    local, external = int(found[1]), int(found[2])
    return Configuration(
        name=name,
        local=local,
        external=external,
        questions=questions,
        strategy=strategy(found[3] or "plain").name,
        rule="+".join(rule(name).name for name in (found[4] or "grpo").split("+")),
        crumb_span=float(found[5] or 0.0),
    )


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: what its nodes begin from, and the seeds of each configuration."""

    setting: str
    rounds: int
    seeds: Mapping[str, tuple[int, ...]]
    models: str = ""  # the setting of `starters` whose models these are; empty: the setting's own
    folders: tuple[str, ...] = ()  # model folders instead of those: node i begins from folders[i % len]
    asked: int = 0  # specialties that each node asks about; 0: all of the charter's


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole study; everything that decides its numbers."""

    parts: tuple[Part, ...]
    split: str = "test"
    rates: tuple[float, ...] = RATES  # one rate: no sweep
    nodes: int = 8
    charter: str = ""  # a file; empty: the swarm that ships with Waggle
    longest: int = RoundSettings().max_new  # tokens of an answer
    weather: Weather = msgspec.field(default_factory=Weather)
    held_out: int = 16  # questions of each specialty at every point of a curve
    final_held_out: int = 32  # and for the score at the end
    measure_every: int = 25

    @property
    def configurations(self) -> dict[str, Configuration]:
        """What every name stands for today: a study whose names meant something else is another study."""
        return {name: configuration(name) for part in self.parts for name in part.seeds}

    def missing(self, book: Book[Run]) -> Iterator[Key]:
        """The runs that can be played now and have not been: first each configuration's sweep, then what it is reported on."""
        for part in self.parts:
            for name, seeds in part.seeds.items():
                sweep = self._sweep(part, name)
                yet = [key for key in sweep if key not in book]
                yield from yet
                if yet:
                    continue
                rate = best_rate(arms([book[key] for key in sweep])) if sweep else self.rates[0]
                yield from (key for seed in seeds if (key := self._key(part, name, seed, rate)) not in book)

    def total(self) -> int:
        """Rounds of all runs, played or not."""
        return sum(self._rounds(part, name) for part in self.parts for name in part.seeds)

    def _rounds(self, part: Part, name: str) -> int:
        """Of one configuration; a run of its sweep that is one of those reported is played once."""
        sweep = self._sweep(part, name)
        reported = [self._key(part, name, seed, RATES[0]) for seed in part.seeds[name]]
        swept = {msgspec.structs.replace(key, learning_rate=RATES[0]) for key in sweep}
        return sum(key.rounds for key in sweep) + sum(key.rounds for key in reported if key not in swept)

    def _sweep(self, part: Part, name: str) -> list[Key]:
        if len(self.rates) == 1:
            return []
        return [
            Key(setting=part.setting, configuration=name, seed=SWEEP_SEED, learning_rate=rate, rounds=SWEEP_ROUNDS, split="dev")
            for rate in self.rates
        ]

    def _key(self, part: Part, name: str, seed: int, rate: float) -> Key:
        return Key(setting=part.setting, configuration=name, seed=seed, learning_rate=rate, rounds=part.rounds, split=self.split)


FIVE, THREE = (1, 2, 3, 4, 5), (1, 2, 3)


def paper() -> Study:
    """The paper's table, extended: six configurations in four settings, and one in which nodes ask about few specialties."""
    many = (ALONE, FILTERED, DEFAULT)
    sparse = {name: FIVE if name in many else THREE for name in (*CONFIGURATIONS, FLOORED)}
    others = [
        Part(setting=name, rounds=200, seeds=dict.fromkeys(CONFIGURATIONS, THREE))
        for name in ("identical", "diversified", "heterogeneous")
    ]
    partial = Part(setting="partial", rounds=200, seeds=dict.fromkeys((ALONE, DEFAULT), THREE), models="sparse", asked=3)
    return Study(parts=(Part(setting="sparse", rounds=600, seeds=sparse), *others, partial))


FULL = ":crumbs=0.2:questions=8"  # a floor for crumbs, and more groups drawn and shared than are trained on
SHARERS = ("plain", "own_probability", "truncated_importance", "capability", "gated", "adaptive", "informative", "replay")
OPTIONS = (
    *("8/0", FLOORED, "4/4", "4/4:plain:grpo:crumbs=0.2", "4/4:gated:grpo:crumbs=0.2"),
    *(f"4/4:{name}" for name in (*SHARERS[1:], "balanced", "guard")),
    *(f"4/4:{name}:grpo{FULL}" for name in SHARERS),
    *(f"4/4:gated:{update}{more}" for update in ("dr_grpo", "dapo", "ppo") for more in ("", FULL)),
)
CONTENDERS = (
    *("8/0", "4/4", "4/4:gated", f"4/4:gated:grpo{FULL}", f"4/4:gated:dr_grpo{FULL}"),
    *(f"4/4:adaptive:grpo{FULL}", f"4/4:informative:grpo{FULL}", f"4/4:replay:grpo{FULL}"),
)


def options() -> Study:
    """What defaults are chosen by: every strategy and update rule, on dev questions and seeds that no report uses."""
    sparse, dense = dict.fromkeys(OPTIONS, (101, 102)), dict.fromkeys(CONTENDERS, (101,))
    parts = (Part(setting="sparse", rounds=120, seeds=sparse), Part(setting="identical", rounds=120, seeds=dense))
    return Study(parts=parts, split="dev", rates=(5e-4,))
