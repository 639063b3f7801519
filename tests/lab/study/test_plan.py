"""Test configurations by name, and which runs of a study are missing."""

import dataclasses

import pytest

from practice.test_results import run
from waggle.core.errors import LabError, SettingsError
from waggle.practice.results import Book, Run
from waggle.sapo.sharing import strategy
from waggle.sapo.stages import BOUNDED, UNBOUNDED, Bounds, Node, RoundSettings
from waggle_lab.study import plan
from waggle_lab.study.comparison import FLOORED
from waggle_lab.study.plan import Part, Study, configuration


def test_the_papers_configurations_draw_what_they_train_on_and_count_every_difference():
    for name, local, external in (("8/0", 8, 0), ("6/2", 6, 2), ("4/4", 4, 4), ("2/6", 2, 6)):
        paper_configuration = configuration(name)
        assert (paper_configuration.local, paper_configuration.external, paper_configuration.questions) == (
            local,
            external,
            local,
        )
        assert (paper_configuration.strategy, paper_configuration.rule, paper_configuration.crumb_span) == ("plain", "grpo", 0.0)


def test_the_default_is_what_the_engine_does():
    rules = configuration("default").rules(RoundSettings().learning_rate)
    assert rules == RoundSettings()
    chosen = Node.__dataclass_fields__["sharing"].default_factory
    assert type(strategy(configuration("default").strategy).make()) is chosen


def test_the_control_with_equal_privilege_may_ask_three_times_as_much():
    control = configuration("8/0-filtered")
    assert (control.local, control.external, control.questions, control.most_questions, control.strategy) == (
        8,
        0,
        8,
        24,
        "filtered",
    )
    assert control.crumb_span == configuration("default").crumb_span, "the control has every privilege but sharing"


def test_strategy_rule_and_crumbs_may_be_named():
    gated = configuration("4/4:gated:dapo:crumbs=0.2")
    assert (gated.strategy, gated.rule, gated.crumb_span) == ("gated", "dapo", 0.2)
    assert configuration("4/4:replay").rule == "grpo"
    mixed = configuration("4/4:gated:grpo+ppo:crumbs=0.2")
    assert [gated.name for gated in mixed.update_rules] == ["grpo", "ppo"]
    assert mixed.crumb_span == 0.2


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "8",
        "0/8",
        "4/4:",
        "4/4:magic",
        "a/b",
        "4/4:gated:magic",
        "4/4:gated:grpo+magic",
        "4/4:gated:grpo+",
        "-1/2",
        "4/4:gated:dapo:crumbs=x",
        "4/4:questions=0",
        "4/4:questions=65",
        "4/4:form=x",
        "4/4:form=2",
        "4/4:form=0.25:form=0.1",
        "magic:form=0.25",
        "4/4:updates=1",
        "4/4:updates=5",
        "4/4:updates=2:updates=2",
        "4/4:prompt=magic",
        "4/4:temperature=4.5",
        "4/4:temperature=0.0",
        "4/4:temperature=nan",
        "4/4:rate=fast",
        "4/4:rate=0e-5",
        "4/4:rate=9e-0",
        "4/4:crumbs=5",
        "4/4:crumbs=-0.2",
        "8/0:questions=4",
        "4/4:magic=1",
    ],
)
def test_what_is_no_configuration_is_refused_with_a_sentence(wrong):
    with pytest.raises((LabError, SettingsError)):
        configuration(wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("4/4:updates=9", "updates is a whole number from 2 to 4"),
        ("4/4:temperature=0.0", "temperature is a number from 0.1 to 4"),
        ("4/4:prompt=magic", "Choose from plain, "),
        ("4/4:magic=1", "There are crumbs, "),
        ("8/0:questions=4", "draws only 4 questions"),
    ],
)
def test_a_wrong_option_is_refused_with_what_it_can_be(wrong, says):
    with pytest.raises(LabError, match=says):
        configuration(wrong)


def test_a_number_may_be_written_in_any_way():
    assert {configuration(f"8/0:rate={text}").learning_rate for text in ("1e-05", "1e-5", "0.00001")} == {1e-5}
    assert configuration("8/0:temperature=2").temperature == 2.0


def test_every_configuration_may_pay_for_the_form():
    assert configuration("default:form=0.25").rules(1e-4).form_pay == 0.25
    assert configuration("8/0:plain:grpo:crumbs=0.2:form=0.1").rules(1e-4).form_pay == 0.1


def test_any_configuration_may_take_several_steps_a_round():
    several = configuration("4/4:gated:gspo:form=0.25:updates=4")
    assert (several.updates, several.form_pay, several.rule) == (4, 0.25, "gspo")
    assert several.rules(1e-4).updates == 4
    assert configuration("default").rules(1e-4).updates == 1
    assert configuration("default").rules(1e-4).form_pay == 0.0


def test_any_configuration_may_say_how_models_are_asked_and_how_fast_they_learn():
    changed = configuration("default:prompt=chat_example:temperature=0.7:rate=3e-5")
    assert (changed.prompt_form, changed.temperature, changed.learning_rate) == ("chat_example", 0.7, 3e-5)
    assert changed.rules(3e-5).temperature == 0.7
    assert configuration("default").prompt_form == "", "as the app would choose"


def test_the_order_of_the_options_does_not_matter():
    names = ("4/4:gated:form=0.25:updates=2:crumbs=0.2", "4/4:gated:crumbs=0.2:updates=2:form=0.25")
    first, second = ({**dataclasses.asdict(configuration(name).rules(1e-4))} for name in names)
    assert first == second


def test_a_configuration_with_a_rate_of_its_own_is_played_at_it_and_not_swept(tmp_path):
    parts = (Part(setting="sparse", rounds=200, seeds={"8/0:rate=3e-5": (1,), "8/0": (1,)}),)
    missing = list(Study(parts=parts).missing(Book(tmp_path / "runs.jsonl", Run)))
    own = [(key.seed, key.learning_rate, key.rounds) for key in missing if key.configuration == "8/0:rate=3e-5"]
    assert own == [(1, 3e-5, 200)]
    assert {key.seed for key in missing if key.configuration == "8/0"} == {plan.SWEEP_SEED}


def test_a_strategy_may_have_digits_in_its_name(monkeypatch):
    monkeypatch.setattr(plan, "strategy", lambda name: dataclasses.replace(strategy("replay"), name=name))
    assert configuration("4/4:replay2").strategy == "replay2"


def test_peers_are_believed_as_published_except_in_the_default():
    assert {configuration(name).rules(1e-4).bounds for name in ("8/0", "8/0-filtered", "4/4", "4/4:gated")} == {UNBOUNDED}
    assert configuration("default").rules(1e-4).bounds == BOUNDED
    bounds = {name: configuration(f"default-{name}").rules(1e-4).bounds for name in ("share", "surprise", "without-balance")}
    assert bounds == {
        "share": Bounds(surprise=False, one_sided=False),
        "surprise": Bounds(share=1.0, one_sided=False),
        "without-balance": Bounds(one_sided=False),
    }, "the first two have one bound each, the last one has all but one"


def study(**changes) -> Study:
    parts = (Part(setting="sparse", rounds=200, seeds={"8/0": (1, 2), "default": (1,)}),)
    return Study(parts=parts, **changes)


def with_area(book: Book[Run], key, height: float) -> None:
    import msgspec

    example = run()
    book.keep(
        msgspec.structs.replace(
            example, key=key, measured_at=(0, key.rounds), held_out=((height, height),), specialty_held_out=((height, height),)
        )
    )


def test_each_configuration_is_reported_at_the_best_rate_of_its_own_sweep(tmp_path):
    book = Book(tmp_path / "runs.jsonl", Run)
    first = list(study().missing(book))
    assert {(key.configuration, key.learning_rate) for key in first} == {(c, r) for c in ("8/0", "default") for r in plan.RATES}
    assert {(key.seed, key.rounds, key.split) for key in first} == {(plan.SWEEP_SEED, plan.SWEEP_ROUNDS, "dev")}
    heights = {("8/0", 2.5e-4): 0.1, ("8/0", 5e-4): 0.3, ("8/0", 1e-3): 0.2}
    for key in first:
        if key.configuration == "8/0":
            with_area(book, key, heights["8/0", key.learning_rate])
    next_runs = list(study().missing(book))
    reported = [key for key in next_runs if key.split == "test"]
    assert [(key.configuration, key.seed, key.learning_rate, key.rounds) for key in reported] == [
        ("8/0", 1, 5e-4, 200),
        ("8/0", 2, 5e-4, 200),
    ]
    assert {key.configuration for key in next_runs if key.split == "dev"} == {"default"}, "its sweep comes first"
    with_area(book, reported[0], 0.5)
    assert [key.seed for key in study().missing(book) if key.split == "test"] == [2]


def test_one_rate_needs_no_sweep(tmp_path):
    keys = list(study(rates=(3e-4,)).missing(Book(tmp_path / "runs.jsonl", Run)))
    assert [(key.configuration, key.seed, key.learning_rate, key.split) for key in keys] == [
        ("8/0", 1, 3e-4, "test"),
        ("8/0", 2, 3e-4, "test"),
        ("default", 1, 3e-4, "test"),
    ]


def test_a_run_of_the_sweep_that_is_reported_too_is_counted_once(tmp_path):
    seeds = {"8/0": (plan.SWEEP_SEED, 1)}
    study_with_shared_run = Study(parts=(Part(setting="sparse", rounds=plan.SWEEP_ROUNDS, seeds=seeds),), split="dev")
    book = Book(tmp_path / "runs.jsonl", Run)
    while missing := list(study_with_shared_run.missing(book)):
        with_area(book, missing[0], 0.1)
    assert study_with_shared_run.total() == sum(played.key.rounds for played in book.runs) == 4 * plan.SWEEP_ROUNDS


def test_the_paper_study_is_what_was_promised():
    paper_study = plan.paper()
    sparse = paper_study.parts[0]
    assert (sparse.setting, sparse.rounds) == ("sparse", 600)
    assert {name: len(seeds) for name, seeds in sparse.seeds.items()} == {
        "8/0": 5, "8/0-filtered": 5, "6/2": 3, "4/4": 3, "2/6": 3, "default": 5, FLOORED: 3,
    }  # fmt: skip
    assert [part.setting for part in paper_study.parts[1:4]] == ["identical", "diversified", "heterogeneous"]
    assert all(part.rounds == 200 and {len(seeds) for seeds in part.seeds.values()} == {3} for part in paper_study.parts[1:])
    used = {seed for part in paper_study.parts for seeds in part.seeds.values() for seed in seeds}
    chosen_by = {seed for part in plan.options().parts for seeds in part.seeds.values() for seed in seeds}
    assert not used & (chosen_by | {plan.SWEEP_SEED}), "what defaults were chosen by is never reported"
    assert paper_study.split == "test"
    assert plan.options().split == "dev"
