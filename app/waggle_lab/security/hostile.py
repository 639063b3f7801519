"""`waggle-lab hostile`: besieges a live swarm with every attack, one by one and all at once, and reports what got through."""

import argparse
import asyncio
import statistics as stats
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import torch
from tqdm import tqdm

from waggle.core.errors import LabError
from waggle.practice.results import Book
from waggle.tasks.charter import Charter, first_swarm
from waggle.tasks.questions import Question, Split
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.verifier import Verifier
from waggle_lab import provenance
from waggle_lab.argument_types import whole
from waggle_lab.security.attack_process import ALL, NAMES, NONE, POISON
from waggle_lab.security.siege import Key, Siege, lay
from waggle_lab.study.comparison import DEFAULT
from waggle_lab.study.plan import BOUNDS_OF_DEFAULTS
from waggle_lab.study.statistics import Estimate, estimate

NODES = 8
ALONE = 1  # poisoner, before any in collusion
ASKED = 30  # held-out questions of each specialty
SPEED_TEXTS, SPEED_BATCHES = 50, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `waggle-lab hostile`."""
    parser.add_argument(
        "--attacks", default=",".join((NONE, *NAMES)), help="one by one; `none` for no attack, empty for none of them"
    )
    parser.add_argument("--hostile", default="2,4", help="how many of the eight nodes are hostile; several with commas")
    parser.add_argument("--rounds", type=whole(1), default=30, help="of each attack by itself")
    parser.add_argument("--seeds", default="0,1,2,3,4", help="of the sieges by all attacks at once, and of those without any")
    parser.add_argument("--learning-rounds", type=whole(1), default=150, help="of these")
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="of the reserved questions")
    parser.add_argument(
        "--bounds", default=",".join(BOUNDS_OF_DEFAULTS), help="of the sieges by poisoners alone: what each bound is worth"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for sieges.jsonl, the table and the figures")
    parser.add_argument("--resume", action="store_true", help="go on with the sieges in that folder")


def run(arguments: argparse.Namespace) -> int:
    """Lay every siege that is missing, then write the table; raises LabError."""
    torch.set_num_threads(1)  # the network and the verifiers have the rest
    keys = list(_keys(arguments))
    book = _open(arguments.out / "sieges.jsonl", resume=arguments.resume)
    missing = [key for key in keys if key not in book]
    charter = first_swarm()
    reserved = _reserved(charter, arguments.split) if any(key.scored for key in missing) else ()
    with tqdm(total=sum(key.rounds for key in keys), unit=" rounds", file=sys.stderr, smoothing=0.02) as bar:
        bar.update(sum(key.rounds for key in keys if key in book))
        for key in missing:
            bar.set_postfix_str(f"{key.attack}, {key.hostile} hostile")
            questions = reserved if key.scored else ()
            book.keep(asyncio.run(lay(key, charter, questions, provenance.commit(), lambda _: bar.update(1))))
    sieges = [book[key] for key in keys]
    (arguments.out / "table.md").write_text(table(sieges), encoding="utf-8")
    found = {**figures(sieges), "judgements_per_second": judgements_per_second(charter)}
    (arguments.out / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    sys.stdout.write(table(sieges))
    return 0


def figures(sieges: Sequence[Siege]) -> dict[str, float | str]:
    """The numbers that documents quote."""
    attacked = [siege for siege in sieges if siege.key.attack != NONE]
    found: dict[str, float | str] = {
        "code_executions": sum(siege.code_executions for siege in attacked),
        "crashes": sum(siege.crashes for siege in attacked),
        "wrong_answers_accepted": sum(siege.wrong_answers_accepted for siege in attacked),
        "honest_groups_lost": sum(siege.honest_groups_lost for siege in attacked),
        "honest_groups_received": sum(siege.honest_received for siege in attacked),
    }
    if counted := [siege.forbidden for siege in attacked if siege.forbidden is not None]:
        found["forbidden_to_scorers"] = sum(counted)
    if held := _received(sieges):
        name, share = min(held.items(), key=lambda each: each[1])
        found |= {"honest_received_least": share, "honest_received_least_under": name}
    for hostile in sorted({siege.key.hostile for siege in attacked}):
        of = f"{hostile}_of_{NODES}"
        ratio = learning_ratio(sieges, hostile)
        if ratio is not None:
            found[f"heldout_ratio_{of}"] = ratio.mean
            found[f"heldout_ratio_{of}_interval"] = f"{ratio.low:.3f} to {ratio.high:.3f}"
            found[f"trigger_rate_{of}"] = _trigger(sieges, ALL, hostile)
            clean = _trigger(sieges, NONE, hostile)
            found["trigger_rate_clean"] = max(clean, float(found.get("trigger_rate_clean", 0.0)))
        for siege in sieges:
            if siege.key.attack == POISON and siege.key.hostile == hostile and siege.held_out:
                found[f"trigger_rate_{of}_poison_{siege.key.configuration}"] = siege.trigger_rate
    return found


def _received(sieges: Sequence[Siege]) -> dict[str, float]:
    """By attack: honest groups that arrived in a round, as a share of those among the same nodes without attackers."""
    single = [siege for siege in sieges if not siege.key.scored and siege.played]
    rates = {(siege.key.attack, siege.key.hostile): siege.honest_received / (siege.played or 1) for siege in single}
    return {
        f"{attack}, {hostile} hostile": rate / calm
        for (attack, hostile), rate in rates.items()
        if attack != NONE and (calm := rates.get((NONE, hostile)))
    }


def judgements_per_second(charter: Charter) -> float:
    """The median of a few batches of ordinary text through the armed child, questions made before."""
    verifier = Verifier(charter)
    try:
        questions = verifier.questions([(one.dataset, seed) for one in charter.specialties for seed in range(20)])
        texts = [Completion(text=f"I think <answer>{i}</answer>", ended=True) for i in range(SPEED_TEXTS)]
        items = [(question, text) for question in questions for text in texts]
        seconds = []
        for _ in range(SPEED_BATCHES):
            begun = time.perf_counter()
            verifier.judge(items)
            seconds.append(time.perf_counter() - begun)
        return len(items) / stats.median(seconds)
    finally:
        verifier.close()


def learning_ratio(sieges: Sequence[Siege], hostile: int) -> Estimate | None:
    """Held-out score under all attacks over that of the same nodes without attackers, paired by seed; None without pairs."""
    scores = {
        (siege.key.attack, siege.key.seed): stats.fmean(siege.held_out)
        for siege in sieges
        if siege.key.honest == NODES - hostile and siege.held_out
    }
    seeds = [seed for attack, seed in scores if attack == ALL and scores.get((NONE, seed), 0.0) > 0]
    ratios = [scores[ALL, seed] / scores[NONE, seed] for seed in seeds]
    return estimate(ratios) if ratios else None


def table(sieges: Sequence[Siege]) -> str:
    """A line of Markdown for each siege."""
    head = "| attack | hostile | seed | rounds attacked | code run | forbidden | crashes | wrong accepted | honest lost "
    head += "| honest received | hostile trained on "
    head += "| verifier restarts | held-out | trigger | CPU s/round | MB |\n"
    rows = [head, "|" + " --- |" * 16 + "\n"]
    for siege in sieges:
        key = siege.key
        name = key.attack if key.configuration == DEFAULT else f"{key.attack} ({key.configuration})"
        score = f"{stats.fmean(siege.held_out):.3f}" if siege.held_out else "-"
        attacked, forbidden = ("-" if one is None else one for one in (siege.attacked, siege.forbidden))
        cells = (
            name, key.hostile, key.seed, attacked, siege.code_executions, forbidden, siege.crashes, siege.wrong_answers_accepted,
            siege.honest_groups_lost, siege.honest_received, siege.hostile_trained_on, siege.verifier_restarts, score,
            f"{siege.trigger_rate:.4f}", f"{siege.costs.cpu_seconds:.2f}", f"{siege.costs.memory_mb:.0f}",
        )  # fmt: skip
        rows.append("| " + " | ".join(map(str, cells)) + " |\n")
    return "".join(rows)


def _trigger(sieges: Sequence[Siege], attack: str, hostile: int) -> float:
    alike = [siege for siege in sieges if siege.key.scored and (siege.key.attack, siege.key.honest) == (attack, NODES - hostile)]
    return stats.fmean(siege.trigger_rate for siege in alike) if alike else 0.0


def _keys(arguments: argparse.Namespace) -> Iterator[Key]:
    counts = _numbers(arguments.hostile, "--hostile")
    if not all(0 < count < NODES for count in counts):
        raise LabError(f"--hostile takes numbers from 1 to {NODES - 1}.")
    for name in filter(None, arguments.attacks.split(",")):
        if name not in (*NAMES, NONE):
            raise LabError(f"There is no attack {name}.", f"There are: {', '.join(NAMES)}.")
        for count in counts:
            yield Key(attack=name, honest=NODES - count, hostile=count, rounds=arguments.rounds, seed=0, split=arguments.split)
    for name in filter(None, arguments.bounds.split(",")):
        if name not in BOUNDS_OF_DEFAULTS:
            raise LabError(f"There are no bounds {name}.", f"There are: {', '.join(BOUNDS_OF_DEFAULTS)}.")
        for count in sorted({ALONE, *counts}) if name == DEFAULT else counts:
            yield Key(
                attack=POISON, honest=NODES - count, hostile=count, rounds=arguments.learning_rounds, seed=0, configuration=name,
                split=arguments.split, scored=True,
            )  # fmt: skip
    for seed in _numbers(arguments.seeds, "--seeds"):
        for count in counts:
            usual = Key(
                attack=ALL,
                honest=NODES - count,
                hostile=count,
                rounds=arguments.learning_rounds,
                seed=seed,
                split=arguments.split,
                scored=True,
            )
            yield msgspec.structs.replace(usual, attack=NONE, hostile=0)
            yield usual


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError as error:
        raise LabError(f"{option} {text} is not a list of numbers.", f"For example: {option} 2,4") from error


def _open(path: Path, *, resume: bool) -> Book[Siege]:
    if path.exists() and not resume:
        raise LabError(f"{path.parent} holds sieges already.", "Add --resume to go on with them, or choose another --out.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{path.parent} cannot be written: {error.strerror}.", "Choose another --out.") from error
    return Book(path, Siege)


def _reserved(charter: Charter, split: Split) -> tuple[Question, ...]:
    verifier = Verifier(charter)
    try:
        return tuple(question for one in charter.specialties for question in verifier.held_out(one.dataset, split, ASKED))
    finally:
        verifier.close()
