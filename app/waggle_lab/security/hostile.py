"""`waggle-lab hostile`: attack a live swarm with every attack, one by one and all at once, and report the damage."""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median

import msgspec
import torch
from tqdm import tqdm

from waggle.core.errors import LabError
from waggle.practice.results import Book
from waggle.tasks.charter import Charter
from waggle.tasks.questions import Question, QuestionKey, Split
from waggle.tasks.rollout_group import Completion
from waggle.tasks.sandbox.verifier import Verifier
from waggle.tasks.shipped_swarms import first_swarm
from waggle_lab import provenance
from waggle_lab.argument_types import whole
from waggle_lab.security.lessons import LESSONS
from waggle_lab.security.sieges import price_table
from waggle_lab.security.sieges.attack_process import ALL_ATTACKS, NAMES, NO_ATTACK, POISON
from waggle_lab.security.sieges.siege import Siege, SiegeKey, run_siege
from waggle_lab.security.sieges.simulated_siege import run_simulated_siege
from waggle_lab.study.comparison import DEFAULT
from waggle_lab.study.plan import BOUNDS_OF_DEFAULTS
from waggle_lab.study.statistics import Estimate, estimate

NODES = 8
SINGLE_POISONER = 1  # one poisoner, to compare with several in collusion
HELD_OUT_QUESTIONS = 30  # of each specialty
SPEED_TEXTS, SPEED_BATCHES = 50, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `waggle-lab hostile`."""
    parser.add_argument(
        "--attacks",
        default=",".join((NO_ATTACK, *NAMES)),
        help="attacks to make one by one; `none`: a siege without attack; empty: no such sieges",
    )
    parser.add_argument("--hostile", default="2,4", help="how many of the eight nodes are hostile; several with commas")
    parser.add_argument("--rounds", type=whole(1), default=30, help="rounds of each siege by a single attack")
    parser.add_argument(
        "--seeds", default="0,1,2,3,4", help="seeds of the sieges by all attacks at once and of those without attack"
    )
    parser.add_argument("--learning-rounds", type=whole(1), default=150, help="rounds of these and of the sieges by poisoners")
    parser.add_argument(
        "--lessons",
        default=",".join(LESSONS),
        help="lessons that hostile nodes teach in a simulated swarm, one by one; empty: no such sieges",
    )
    parser.add_argument("--lesson-rounds", type=whole(1), default=150, help="rounds of these sieges")
    parser.add_argument("--lesson-seeds", default="0,1", help="seeds of these sieges")
    parser.add_argument("--lesson-bounds", default=DEFAULT, help="configurations of these sieges, as for --bounds")
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="which reserved questions to score on")
    parser.add_argument(
        "--bounds",
        default=",".join(BOUNDS_OF_DEFAULTS),
        help="configurations of the sieges by poisoners, to measure the effect of each bound on peers",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for sieges.jsonl, the table and the figures")
    parser.add_argument("--resume", action="store_true", help="continue with the sieges in that folder")


def run(arguments: argparse.Namespace) -> int:
    """Run the missing sieges, then write the table and the figures; raises LabError."""
    torch.set_num_threads(1)  # leave the other cores to the network and the verifiers
    keys = list(_keys(arguments))
    book = _open(arguments.out / "sieges.jsonl", resume=arguments.resume)
    missing = [key for key in keys if key not in book]
    charter = first_swarm()
    reserved = reserved_questions(charter, arguments.split) if any(key.scored for key in missing) else ()
    with tqdm(total=sum(key.rounds for key in keys), unit=" rounds", file=sys.stderr, smoothing=0.02) as bar:
        bar.update(sum(key.rounds for key in keys if key in book))
        for key in missing:
            bar.set_postfix_str(f"{key.attack}, {key.hostile} hostile")
            questions = reserved if key.scored else ()
            book.keep(_play(key, charter, questions, lambda _: bar.update(1)))
    sieges = [book[key] for key in keys]
    tables = f"{table(sieges)}\n{price_table.table(sieges)}"
    (arguments.out / "table.md").write_text(tables, encoding="utf-8")
    all_figures = {
        **figures(sieges),
        "judgements_per_second": measure_judgements_per_second(charter),
        "prices": price_table.comparisons(sieges),
    }
    (arguments.out / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(all_figures)) + b"\n")
    sys.stdout.write(tables)
    return 0


def _play(key: SiegeKey, charter: Charter, questions: Sequence[Question], report_progress: Callable[[int], None]) -> Siege:
    if key.simulated:
        return run_simulated_siege(key, charter, questions, provenance.commit(), report_progress)
    return asyncio.run(run_siege(key, charter, questions, provenance.commit(), report_progress))


def figures(sieges: Sequence[Siege]) -> dict[str, float | str]:
    """The figures that documents may quote."""
    attacked = [siege for siege in sieges if siege.key.attack != NO_ATTACK and not siege.key.simulated]
    values: dict[str, float | str] = {
        "code_executions": sum(siege.code_executions for siege in attacked),
        "crashes": sum(siege.crashes for siege in attacked),
        "wrong_answers_accepted": sum(siege.wrong_answers_accepted for siege in attacked),
        "honest_groups_lost": sum(siege.honest_groups_lost for siege in attacked),
        "honest_groups_received": sum(siege.honest_received for siege in attacked),
    }
    if forbidden_counts := [siege.forbidden for siege in attacked if siege.forbidden is not None]:
        values["forbidden_to_scorers"] = sum(forbidden_counts)
    if received_shares := _honest_received_shares(sieges):
        name, share = min(received_shares.items(), key=lambda item: item[1])
        values |= {"honest_received_least": share, "honest_received_least_under": name}
    for hostile in sorted({siege.key.hostile for siege in attacked}):
        attackers = f"{hostile}_of_{NODES}"
        ratio = learning_ratio(sieges, hostile)
        if ratio is not None:
            values[f"heldout_ratio_{attackers}"] = ratio.mean
            values[f"heldout_ratio_{attackers}_interval"] = f"{ratio.low:.3f} to {ratio.high:.3f}"
            values[f"trigger_rate_{attackers}"] = _trigger_rate(sieges, ALL_ATTACKS, hostile)
            clean = _trigger_rate(sieges, NO_ATTACK, hostile)
            values["trigger_rate_clean"] = max(clean, float(values.get("trigger_rate_clean", 0.0)))
        for siege in sieges:
            if siege.key.attack == POISON and siege.key.hostile == hostile and siege.held_out:
                values[f"trigger_rate_{attackers}_poison_{siege.key.configuration}"] = siege.trigger_rate
    return values


def _honest_received_shares(sieges: Sequence[Siege]) -> dict[str, float]:
    """By attack: honest groups received per round, as a share of those in the siege without attack."""
    unscored = [siege for siege in sieges if not siege.key.scored and siege.played]
    rates = {(siege.key.attack, siege.key.hostile): siege.honest_received / (siege.played or 1) for siege in unscored}
    return {
        f"{attack}, {hostile} hostile": rate / undisturbed
        for (attack, hostile), rate in rates.items()
        if attack != NO_ATTACK and (undisturbed := rates.get((NO_ATTACK, hostile)))
    }


def measure_judgements_per_second(charter: Charter) -> float:
    """The median over a few batches of ordinary text, judged in the sandbox; questions are generated before."""
    verifier = Verifier(charter)
    try:
        keys = [QuestionKey(specialty.dataset, seed) for specialty in charter.specialties for seed in range(20)]
        questions = verifier.questions(keys)
        texts = [Completion(text=f"I think <answer>{i}</answer>", ended=True) for i in range(SPEED_TEXTS)]
        items = [(question, text) for question in questions for text in texts]
        seconds = []
        for _ in range(SPEED_BATCHES):
            began = time.perf_counter()
            verifier.judge(items)
            seconds.append(time.perf_counter() - began)
        return len(items) / median(seconds)
    finally:
        verifier.close()


def learning_ratio(sieges: Sequence[Siege], hostile: int) -> Estimate | None:
    """The held-out score under all attacks over that without attack, paired by seed; None without pairs."""
    scores = {
        (siege.key.attack, siege.key.seed): fmean(siege.held_out)
        for siege in sieges
        if siege.key.honest == NODES - hostile and siege.held_out and not siege.key.simulated
    }
    seeds = [seed for attack, seed in scores if attack == ALL_ATTACKS and scores.get((NO_ATTACK, seed), 0.0) > 0]
    ratios = [scores[ALL_ATTACKS, seed] / scores[NO_ATTACK, seed] for seed in seeds]
    return estimate(ratios) if ratios else None


def table(sieges: Sequence[Siege]) -> str:
    """A table in Markdown with a line for each siege."""
    head = "| attack | hostile | seed | rounds attacked | code run | forbidden | crashes | wrong accepted | honest lost "
    head += "| honest received | hostile trained on "
    head += "| verifier restarts | held-out | trigger | CPU s/round | MB |\n"
    rows = [head, "|" + " --- |" * 16 + "\n"]
    for siege in sieges:
        key = siege.key
        name = key.attack if key.configuration == DEFAULT else f"{key.attack} ({key.configuration})"
        name += ", simulated" if key.simulated else ""
        score = f"{fmean(siege.held_out):.3f}" if siege.held_out else "-"
        attacked, forbidden = ("-" if count is None else count for count in (siege.attacked, siege.forbidden))
        cells = (
            name, key.hostile, key.seed, attacked, siege.code_executions, forbidden, siege.crashes, siege.wrong_answers_accepted,
            siege.honest_groups_lost, siege.honest_received, siege.hostile_trained_on, siege.verifier_restarts, score,
            f"{siege.trigger_rate:.4f}", f"{siege.costs.cpu_seconds:.2f}", f"{siege.costs.memory_mb:.0f}",
        )  # fmt: skip
        rows.append("| " + " | ".join(map(str, cells)) + " |\n")
    return "".join(rows)


def _trigger_rate(sieges: Sequence[Siege], attack: str, hostile: int) -> float:
    live = [siege for siege in sieges if siege.key.scored and not siege.key.simulated]
    alike = [siege for siege in live if (siege.key.attack, siege.key.honest) == (attack, NODES - hostile)]
    return fmean(siege.trigger_rate for siege in alike) if alike else 0.0


def _keys(arguments: argparse.Namespace) -> Iterator[SiegeKey]:
    counts = _numbers(arguments.hostile, "--hostile")
    if not all(0 < count < NODES for count in counts):
        raise LabError(f"--hostile takes numbers from 1 to {NODES - 1}.")
    for name in filter(None, arguments.attacks.split(",")):
        if name not in (*NAMES, NO_ATTACK):
            raise LabError(f"There is no attack {name}.", f"There are: {', '.join(NAMES)}.")
        for count in counts:
            yield SiegeKey(
                attack=name, honest=NODES - count, hostile=count, rounds=arguments.rounds, seed=0, split=arguments.split
            )
    for name in _configurations(arguments.bounds):
        for count in sorted({SINGLE_POISONER, *counts}) if name == DEFAULT else counts:
            yield SiegeKey(
                attack=POISON, honest=NODES - count, hostile=count, rounds=arguments.learning_rounds, seed=0, configuration=name,
                split=arguments.split, scored=True,
            )  # fmt: skip
    yield from _keys_of_lessons(arguments, counts)
    for seed in _numbers(arguments.seeds, "--seeds"):
        for count in counts:
            key = SiegeKey(
                attack=ALL_ATTACKS,
                honest=NODES - count,
                hostile=count,
                rounds=arguments.learning_rounds,
                seed=seed,
                split=arguments.split,
                scored=True,
            )
            yield msgspec.structs.replace(key, attack=NO_ATTACK, hostile=0)
            yield key


def _keys_of_lessons(arguments: argparse.Namespace, counts: Sequence[int]) -> Iterator[SiegeKey]:
    lessons = list(filter(None, arguments.lessons.split(",")))
    if unknown := set(lessons) - set(LESSONS):
        raise LabError(f"There is no lesson {unknown.pop()}.", f"There are: {', '.join(LESSONS)}.")
    configurations = _configurations(arguments.lesson_bounds)
    for seed in _numbers(arguments.lesson_seeds, "--lesson-seeds") if lessons else ():
        for count, configuration in product(counts, configurations):
            for name in (NO_ATTACK, *lessons):
                yield SiegeKey(
                    attack=name, honest=NODES - count, hostile=count if name != NO_ATTACK else 0, rounds=arguments.lesson_rounds,
                    seed=seed, configuration=configuration, split=arguments.split, scored=True, simulated=True,
                )  # fmt: skip


def _configurations(text: str) -> list[str]:
    names = list(filter(None, text.split(",")))
    if unknown := [name for name in names if name not in BOUNDS_OF_DEFAULTS]:
        raise LabError(f"There are no bounds {unknown[0]}.", f"There are: {', '.join(BOUNDS_OF_DEFAULTS)}.")
    return names


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError as error:
        raise LabError(f"{option} {text} is not a list of numbers.", f"For example: {option} 2,4") from error


def _open(path: Path, *, resume: bool) -> Book[Siege]:
    if path.exists() and not resume:
        raise LabError(f"{path.parent} holds sieges already.", "Add --resume to continue with them, or choose another --out.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{path.parent} cannot be written: {error.strerror}.", "Choose another --out.") from error
    return Book(path, Siege)


def reserved_questions(charter: Charter, split: Split) -> tuple[Question, ...]:
    """The reserved questions of all specialties of the charter."""
    verifier = Verifier(charter)
    try:
        return tuple(
            question
            for specialty in charter.specialties
            for question in verifier.held_out(specialty.dataset, split, HELD_OUT_QUESTIONS)
        )
    finally:
        verifier.close()
