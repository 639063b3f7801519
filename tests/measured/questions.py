#!/usr/bin/env python3
"""Measure whether questions are true, readable for a real model, and safe from senders who choose; write questions.json.

    python3 tests/measured/questions.py truth
    python3 tests/measured/questions.py model FOLDER     (a transformers folder of SmolLM2-135M-Instruct)
    python3 tests/measured/questions.py steering [--rounds 150]
    python3 tests/measured/questions.py form [--rounds 150]

Each part replaces its own figures in questions.json and keeps those of the others, with the commit that each was measured at.

truth      from resources/audit.jsonl, over all levels that a charter may name: `false_keys_max` of 2,000 seeds, `levels_checked`,
           `levels_unchecked`, and `constant_wins_max`, the best constant answer's mean reward on any level
model      in First light, before any training: `tag_share_smollm2`, the share of answers in one pair of answer tags in the form
           that the trial chooses; `live_groups_smollm2`, the share of groups from which the node can learn (with the pay for the
           form), and `live_groups_by_reward_smollm2` (without it)
steering   four honest starters learn from each other and from one or four senders that share only questions whose answer is
           "Friday": `steering_share_...`, the share of the victims' answers in that specialty that are "Friday" in the last
           rounds, beside `..._base` without senders; `heldout_...`, what they learned; `..._unbounded`, without the bound
form       lone starters that pay themselves for the form, and lone starters that do not (three seeds each, simulated): their
           held-out score at the end and on the way, the share of groups that taught only by that pay in the first and in the
           last ten rounds, and the reward in the last ten. If it could be farmed, they would end lower, or keep living on it
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import figures_file

sys.path.insert(0, str(figures_file.ROOT / "app"))
FILE = Path(__file__).with_suffix(".json")
HONEST, SENDERS = 4, (1, 4)
UNBOUNDED = "default-without-balance"  # the default without the bound on one-sided answers
ROUNDS_OF_MODEL, TOKENS = 6, 48


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=("truth", "model", "steering", "form"))
    parser.add_argument("folder", nargs="?", type=Path, help="of the model, for the part model")
    parser.add_argument("--rounds", type=int, default=150, help="of each siege or swarm (default: 150)")
    options = parser.parse_args()
    if options.part == "model" and options.folder is None:
        parser.error("the part model needs a folder")
    figures_file.require_clean_tree()
    measured = {
        "truth": measure_truth,
        "model": lambda: measure_model(options.folder),
        "steering": lambda: measure_steering(options.rounds),
        "form": lambda: measure_form_pay(options.rounds),
    }[options.part]()
    figures = json.loads(FILE.read_text())["figures"] if FILE.exists() else {}
    figures[options.part] = measured | {"commit": figures_file.source_commit()}
    figures_file.write(Path(__file__).resolve(), figures)
    return 0


def measure_truth() -> dict[str, object]:
    from waggle.tasks import audit_results, catalogue

    audit, levels = audit_results.shipped_audit(), []
    for entry in catalogue.catalogue_entries():
        levels += [audit.findings[entry.dataset].truth.get(level) for level in entry.levels]
    checked = [level for level in levels if isinstance(level, audit_results.LevelTruth)]
    return {
        "false_keys_max": max(level.false for level in checked),
        "levels_checked": len(checked),
        "levels_unchecked": len(levels) - len(checked),
        "constant_wins_max": max(level.constant for level in checked),
    }


def measure_model(folder: Path) -> dict[str, object]:
    import torch

    from waggle.engine.startup.round_settings import FORM_PAY
    from waggle.models.backend import open_policy
    from waggle.rl.advantage import teaches
    from waggle.sapo import round as sapo
    from waggle.sapo.fakes import FakeSwarm
    from waggle.sapo.form_trial import best_form, try_forms
    from waggle.sapo.stages import Node, RoundSettings
    from waggle.tasks.rollout_group import RIGHT, has_form
    from waggle.tasks.sandbox.verifier import Verifier
    from waggle.tasks.shipped_swarms import first_swarm

    torch.set_num_threads(1)
    charter, opened = first_swarm(), open_policy(folder, device="cpu", threads=1)
    verifier = Verifier(charter)
    try:
        node = Node(
            policy=opened.policy, tokenizer=opened.tokenizer, swarm=FakeSwarm(), verifier=verifier, charter=charter,
            origin=bytes(38), seed=0,
        )  # fmt: skip
        rules = RoundSettings(max_new=TOKENS, context=2048, form_pay=FORM_PAY)
        questions = [question for each in charter.specialties for question in verifier.held_out(each.dataset, "dev", 3)]
        trials = try_forms(node, rules, questions)
        node = replace(node, form=best_form(trials))
        groups = []
        for number in range(ROUNDS_OF_MODEL):
            drawn = sapo.draw(number, 1, node, rules)
            sampled = sapo.answer(number, node, rules, drawn, pause_point=lambda: None, watch=lambda *_: None)
            groups += sapo.judge(number, node, rules, drawn, sampled).groups
    finally:
        verifier.close()
    answers = [pair for group in groups for pair in zip(group.group.completions, group.verdicts, strict=True)]
    return {
        "form": node.form.name,
        "readable_of_forms": {trial.form.name: f"{trial.readable} of {trial.total}" for trial in trials},
        "tag_share_smollm2": round(fmean(has_form(*pair) for pair in answers), 3),
        "live_groups_smollm2": round(fmean(teaches(group.lesson_rewards) for group in groups), 3),
        "live_groups_by_reward_smollm2": round(fmean(teaches(group.rewards) for group in groups), 3),
        "right_share_smollm2": round(fmean(verdict.reward >= RIGHT for _, verdict in answers), 3),
        "groups": len(groups),
    }


def measure_steering(rounds: int) -> dict[str, object]:
    import torch

    from waggle.tasks.shipped_swarms import first_swarm
    from waggle_lab.security.hostile import reserved_questions
    from waggle_lab.security.sieges.siege import SiegeKey, run_siege

    torch.set_num_threads(1)
    charter = first_swarm()
    questions = reserved_questions(charter, "test")
    figures: dict[str, object] = {"rounds": rounds}

    def play(name: str, **key: object) -> None:
        siege_key = SiegeKey(honest=HONEST, rounds=rounds, seed=0, split="test", scored=True, **key)
        siege = asyncio.run(run_siege(siege_key, charter, questions, figures_file.source_commit(), lambda _: None))
        figures[f"steering_share_{name}"] = round(siege.target_share or 0.0, 3)
        figures[f"heldout_{name}"] = round(fmean(siege.held_out), 4)
        figures[f"minutes_{name}"] = round(siege.costs.seconds / 60, 1)
        print(name, figures[f"steering_share_{name}"], figures[f"heldout_{name}"], flush=True)

    play("base", attack="none", hostile=0)
    for senders in SENDERS:
        play(f"{senders}", attack="steer", hostile=senders)
        play(f"{senders}_unbounded", attack="steer", hostile=senders, configuration=UNBOUNDED)
    return figures


def measure_form_pay(rounds: int) -> dict[str, object]:
    """Play both arms in a folder that is thrown away; alone, with the crumb span of the default."""
    from waggle.engine.startup.round_settings import FORM_PAY
    from waggle.practice.results import Book, Run
    from waggle_lab.study.comparison import FLOORED

    arms = {"without": FLOORED, "with": f"{FLOORED}:form={FORM_PAY}"}
    with tempfile.TemporaryDirectory() as folder:
        study = ("--settings", "sparse", "--configurations", ",".join(arms.values()), "--rounds", str(rounds), "--rates", "5e-4")
        command = [sys.executable, "packaging/dev.py", "lab", "swarm", *study, "--seeds", "1,2,3", "--out", folder]
        subprocess.check_call(command, cwd=figures_file.ROOT)
        runs = Book(Path(folder) / "runs.jsonl", Run).runs
    figures: dict[str, object] = {"rounds": rounds, "form_pay": FORM_PAY}
    for name, configuration in arms.items():
        played = [run for run in runs if run.key.configuration == configuration]
        figures[name] = {
            "seeds": len(played),
            "heldout_final": [round(fmean(run.final), 4) for run in played],
            "heldout_mean": [round(fmean(score for node in run.held_out for score in node), 4) for run in played],
            "form_paid_first": [run.form_paid[0] for run in played],
            "form_paid_last": [run.form_paid[-1] for run in played],
            "reward_last": [round(fmean(run.reward[-10:]), 4) for run in played],
        }
    return figures


if __name__ == "__main__":
    raise SystemExit(main())
