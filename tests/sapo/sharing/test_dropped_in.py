"""A sharing strategy and an update rule need one file each: those of docs/adding/, dropped into a copy of the product."""

from pathlib import Path

from product_copy import copy_product, drop_in, run_python

CHOOSE_BOTH = """
import pathlib, sys
import numpy as np
from waggle.core import settings
from waggle.gui.pages.settings.rows import SECTIONS
from waggle.rl import update_rules
from waggle.rl.update_rules.interface import ScoredGroup
from waggle.sapo import sharing
from waggle.sapo.sharing.interface import Candidates
from waggle.tasks.questions import Question, QuestionId
from waggle.tasks.rollout_group import Completion, Group, JudgedGroup, Verdict

strategy_name, rule_name = sys.argv[1:]
path = pathlib.Path("settings.toml")
settings.change(path, {"learning.sharing": strategy_name, "learning.rule": rule_name})
learning = settings.read(path).learning

choices = {row.key: [value for value, _ in row.kind.options] for section in SECTIONS for row in section.rows
           if row.key in ("learning.sharing", "learning.rule")}
assert strategy_name in choices["learning.sharing"] and rule_name in choices["learning.rule"], choices

def group(number):
    completions = (Completion(text="1", ended=True), Completion(text="2", ended=True))
    return JudgedGroup(
        group=Group(origin=b"p" * 38, id=QuestionId("bf", 1, number), completions=completions),
        question=Question(dataset="bf", seed=number, text="?"),
        verdicts=(Verdict(reward=1.0, reason=""), Verdict(reward=0.0, reason="")),
    )

strategy = sharing.strategy(learning.sharing)
pool = [group(number) for number in range(10)]
own = [group(number) for number in range(20, 28)]
chosen = strategy.make().choose(Candidates(own, pool, 4, 4, 0.2, np.random.default_rng(1)))
assert chosen.external == tuple(pool[-4:]) and len(chosen.local) == 4, chosen

scored = ScoredGroup(rewards=(1.0, 0.0, 0.0), lengths=(1, 2, 1), groups=8, tokens=4, longest=24, crumb_span=0.2)
advantage = update_rules.rule(learning.rule).teach(scored).advantage
np.testing.assert_allclose(advantage, [1.0, -0.5, -0.5, -0.5], rtol=1e-6)
print(strategy.name)
"""


def test_the_files_of_the_documentation_can_be_chosen_in_settings_and_window_once_they_are_there(tmp_path: Path) -> None:
    copy_product(tmp_path)
    for guide in ("sharing-strategy.md", "update-rule.md"):
        drop_in(tmp_path, guide)
    assert run_python(tmp_path, "-c", CHOOSE_BOTH, "newest", "rloo").strip() == "newest"
