"""`waggle-lab truth`: check every level of the catalogue: are its keys true, does a constant win, what is paid for?"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from tqdm import tqdm

from waggle.core import paths
from waggle.core.errors import LabError, WaggleError
from waggle.core.message import packed_message
from waggle.tasks import audit_results, catalogue
from waggle.tasks.audit_results import LevelTruth
from waggle.tasks.specialties.interface import Difficulty, Setting
from waggle_lab.truth.level import LevelReport, audit_level
from waggle_lab.truth.oracles import oracles

SEEDS = 2000


@dataclass(frozen=True)
class CatalogueLevel:
    """One level of a dataset, as new swarms can choose it."""

    dataset: str
    level: Difficulty
    settings: Mapping[str, Setting]

    @property
    def key(self) -> tuple[str, str]:
        return self.dataset, self.level


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", default="", help="only these datasets; several with commas (default: all)")
    parser.add_argument("--levels", default="", help="only these levels, e.g. easy,standard (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="questions of each level")
    parser.add_argument("--jobs", type=int, default=1, help="levels to check at once")
    parser.add_argument("--resume", action="store_true", help="continue with that file")
    parser.add_argument("--out", type=Path, required=True, help="file for the results, a line for each level")
    parser.add_argument("--write-audit", type=Path, help="also note the results in this file, such as resources/audit.jsonl")


def run(arguments: argparse.Namespace) -> int:
    """Check the missing levels; returns the exit code: 1 if one could not be checked, 0 whatever speaks against the others."""
    levels = chosen_levels(_words(arguments.datasets), _words(arguments.levels))
    reports = _load_or_start(arguments.out, resume=arguments.resume)
    failed = 0
    missing = [level for level in levels if not _is_done(level, reports.get(level.key), arguments.seeds)]
    with ThreadPoolExecutor(max(1, arguments.jobs)) as pool, tqdm(total=len(missing), unit=" levels", file=sys.stderr) as bar:
        try:
            futures = {pool.submit(_audit, level, arguments.seeds): level for level in missing}
            for future in as_completed(futures):
                bar.update()
                level = futures[future]
                try:
                    report = future.result()
                except WaggleError as error:
                    bar.write(f"{level.dataset} {level.level} could not be checked: {error}", file=sys.stderr)
                    failed += 1
                    continue
                reports[level.key] = report
                _write(arguments.out, reports)
                words = "; ".join(report.reasons) or "sound"
                bar.write(f"{level.dataset} {level.level} ({report.truth}): {words}", file=sys.stderr)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise LabError("Stopped.", "Checked levels are saved; continue with --resume.") from None
    unsound = sum(bool(report.reasons) for report in reports.values())
    if arguments.write_audit:
        write_truth(arguments.write_audit, levels, reports, arguments.seeds)
    for name, value in figures(reports, unsound=unsound, failed=failed).items():
        sys.stdout.write(f"{name} {value}\n")
    return 1 if failed else 0


def figures(reports: Mapping[tuple[str, str], LevelReport], **more: int) -> dict[str, float]:
    """The figures that say whether the levels are sound."""
    return {
        "levels_audited": len(reports),
        "levels_checked": sum(report.truth == "checked" for report in reports.values()),
        "levels_unchecked": sum(report.truth == "unchecked" for report in reports.values()),
        "false_keys_max": max((report.false_keys for report in reports.values()), default=0),
        "unreadable_max": max((report.unreadable for report in reports.values()), default=0),
        "unpaid_keys_max": max((report.unpaid_keys for report in reports.values()), default=0),
        "constant_wins_max": max((report.constant_reward for report in reports.values()), default=0.0),
        "partial_pay_max": max((paid.partial for report in reports.values() for paid in report.altered_paid), default=0.0),
        "altered_right_max": max((paid.right for report in reports.values() for paid in report.altered_paid), default=0.0),
        **more,
    }


def write_truth(path: Path, levels: Sequence[CatalogueLevel], reports: Mapping[tuple[str, str], LevelReport], seeds: int) -> None:
    """Note in the list of audited datasets what was found in these levels; one without a report is unchecked. Raises LabError."""
    truth: dict[str, dict[Difficulty, LevelTruth | Literal["unchecked"]]] = {}
    for level in levels:
        report = reports.get(level.key)
        done = report if _is_done(level, report, seeds) else None
        truth.setdefault(level.dataset, {})[level.level] = _level_truth(done)
    try:
        audit = audit_results.read(path)
        findings = [
            msgspec.structs.replace(finding, truth=truth.get(finding.dataset, finding.truth))
            for finding in audit.findings.values()
        ]
        lines = (audit.heading, *findings)
        paths.write_atomically(path, b"".join(msgspec.json.encode(line, enc_hook=packed_message) + b"\n" for line in lines))
    except (OSError, ValueError) as error:
        raise LabError(f"{path} cannot be changed.", "Name the list of audited datasets.") from error


def _level_truth(report: LevelReport | None) -> LevelTruth | Literal["unchecked"]:
    if report is None or not report.checked:
        return "unchecked"
    return LevelTruth(checked=report.checked, false=report.false_keys, constant=round(report.constant_reward, 2))


def chosen_levels(datasets: list[str], difficulties: list[str]) -> list[CatalogueLevel]:
    """The catalogue's levels of these datasets and difficulties; no names mean all. Raises LabError for an unknown name."""
    entries = catalogue.catalogue_entries()
    if unknown := set(datasets) - {entry.dataset for entry in entries}:
        raise LabError(f"The catalogue has no dataset {unknown.pop()}.")
    if unknown := set(difficulties) - {level for entry in entries for level in entry.levels}:
        raise LabError(f"The catalogue has no level {unknown.pop()}.")
    return [
        CatalogueLevel(entry.dataset, name, level.settings)
        for entry in entries
        if not datasets or entry.dataset in datasets
        for name, level in entry.levels.items()
        if not difficulties or name in difficulties
    ]


def _words(argument: str) -> list[str]:
    return [word for word in argument.split(",") if word]


def _audit(level: CatalogueLevel, seeds: int) -> LevelReport:
    return audit_level(level.dataset, level.level, level.settings, seeds=seeds, oracle=oracles().get(level.dataset))


def _is_done(level: CatalogueLevel, report: LevelReport | None, seeds: int) -> bool:
    """Whether a report is about these settings and seeds, and nobody wrote an oracle since."""
    truth = "checked" if level.dataset in oracles() else "unchecked"
    return report is not None and (report.settings, report.seeds, report.truth) == (level.settings, seeds, truth)


def read(path: Path) -> dict[tuple[str, str], LevelReport]:
    """The reports by dataset and level. Raises OSError and msgspec.DecodeError."""
    reports = [msgspec.json.decode(line, type=LevelReport) for line in path.read_bytes().splitlines()]
    return {(report.dataset, report.level): report for report in reports}


def _load_or_start(path: Path, *, resume: bool) -> dict[tuple[str, str], LevelReport]:
    if not path.exists():
        return {}
    if not resume:
        raise LabError(f"{path} holds an audit already.", "Add --resume to continue it, or choose another --out.")
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise LabError(f"{path} is no audit.", "Choose another --out.") from error


def _write(path: Path, reports: Mapping[tuple[str, str], LevelReport]) -> None:
    """Write a line for each level, sorted so that audits can be compared; raises LabError."""
    text = b"".join(msgspec.json.encode(reports[key]) + b"\n" for key in sorted(reports))
    try:
        paths.write_atomically(path, text)
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}.", "Choose another --out.") from error
