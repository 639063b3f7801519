"""`waggle-lab audit`: give every dataset's scorer a hostile corpus, and record which datasets a charter may name."""

import argparse
import math
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tqdm import tqdm

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.core.message import Figure, Message, packed_message
from waggle.tasks.audit_results import Audit, AuditFinding, AuditHeading, read
from waggle.tasks.charter import LONGEST_COMPLETION
from waggle.tasks.rollout_group import RIGHT
from waggle.tasks.sandbox import messages
from waggle_lab.security import hostile_texts
from waggle_lab.security.audit_child import PROCESS_ENDED, AuditChild, UnusableDataset, catalogue

QUESTION_SEEDS = tuple(range(100, 112))  # of the questions that are generated several times
CORPUS_SEEDS = QUESTION_SEEDS[:6]  # of the questions that get the whole corpus
SWARM_SEEDS = tuple((number << 52) + number for number in range(1000, 1200))  # 63 bits, as in a swarm; generated once, to time it
ROUNDING = 1e-9  # by which a sum of shares may exceed 1
ANSWER_LENGTHS = (400, 2_000, LONGEST_COMPLETION)  # characters; the first swarm's charter allows the shortest
QUICK_SECONDS = 0.25  # for one answer
QUESTION_SECONDS = 0.03  # to generate one: a request for 512 must be answered within 20 seconds
MAX_STALLS = 3  # no more texts for a scorer after so many that stall it
MASTER_KEY_COUNT = len(CORPUS_SEEDS) / 2  # a text that is paid in full on so many questions is a master key
REASON_OF_EVENT = {
    "compile": Message("its scorer runs text as code"),
    "exec": Message("its scorer runs text as code"),
    "import": Message("its scorer imports modules while it judges"),
    "open": Message("its scorer opens files while it judges"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", default="", help="only these datasets; several with commas (default: all)")
    parser.add_argument("--out", type=Path, default=Path("audit.jsonl"), help="file for the results, a line for each dataset")
    parser.add_argument("--resume", action="store_true", help="continue with that file")
    parser.add_argument("--jobs", type=int, default=1, help="datasets to audit at once")


def run(arguments: argparse.Namespace) -> int:
    """Audit the missing datasets; returns the exit code."""
    installed = catalogue()
    chosen = [name for name in arguments.datasets.split(",") if name] or installed.datasets
    if unknown := set(chosen) - set(installed.datasets):
        raise LabError(f"reasoning-gym {installed.version} has no dataset {unknown.pop()}, and neither has Waggle.")
    heading = AuditHeading(reasoning_gym=installed.version, python=platform.python_version())
    audited = _load_or_start(arguments.out, heading, resume=arguments.resume)
    missing = [name for name in chosen if name not in audited.findings]
    with ThreadPoolExecutor(max(1, arguments.jobs)) as pool, tqdm(total=len(missing), unit=" datasets", file=sys.stderr) as bar:
        try:
            for future in as_completed([pool.submit(audit, name) for name in missing]):
                finding = future.result()
                audited.findings[finding.dataset] = finding
                _write(arguments.out, audited)
                bar.update()
                bar.write(f"{finding.dataset}: {'; '.join(finding.reasons) or f'listed, up to {finding.longest} characters'}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise LabError("Stopped.", "Audited datasets are saved; continue with --resume.") from None
    listed = sum(finding.listed for finding in audited.findings.values())
    sys.stdout.write(f"datasets_audited {len(audited.findings)}\nlisted {listed}\nrefused {len(audited.findings) - listed}\n")
    return 0


def _load_or_start(path: Path, heading: AuditHeading, *, resume: bool) -> Audit:
    if not path.exists():
        return Audit(heading=heading, findings={})
    if not resume:
        raise LabError(f"{path} holds an audit already.", "Add --resume to continue it, or choose another --out.")
    try:
        audited = read(path)
    except (OSError, ValueError) as error:
        raise LabError(f"{path} is no audit.", "Choose another --out.") from error
    if audited.heading.reasoning_gym != heading.reasoning_gym:  # another Python may add a dataset of Waggle's own
        raise LabError(f"{path} holds an audit of another reasoning-gym.", "Choose another --out.")
    return audited


def _write(path: Path, audited: Audit) -> None:
    """Write a line for each dataset, sorted by name so that audits can be compared; raises LabError."""
    lines = [audited.heading, *(audited.findings[name] for name in sorted(audited.findings))]
    text = b"".join(msgspec.json.encode(line, enc_hook=packed_message) + b"\n" for line in lines)
    try:
        paths.write_atomically(path, text)
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}.", "Choose another --out.") from error


@dataclass
class Observations:
    """What the scorer of one dataset did so far."""

    events: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    paid_in_full: Counter[str] = field(default_factory=Counter)  # wrong text -> questions on which it was paid in full
    score_texts: dict[tuple[int, str], str] = field(default_factory=dict)  # (seed, text) -> reward and exception
    stalled_texts: set[str] = field(default_factory=set)
    reasons: list[Message] = field(default_factory=list)  # why a charter may not name the dataset
    answers: int = 0
    unpaid_true_answers: int = 0
    generation_seconds: float = 0.0  # for one question
    crumb: float = 0.0
    longest: int = 0
    slowest: float = 0.0

    def add_reason(self, reason: Message) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)


def _two_digits(seconds: float) -> Figure:
    """Seconds with two digits that count."""
    return Figure(seconds, max(0, 1 - math.floor(math.log10(seconds))))


def audit(dataset: str, *, upstream: bool = False) -> AuditFinding:
    """Audit one dataset. With `upstream`, audit the scorer of reasoning-gym itself, without Waggle's replacements."""
    observations = Observations()
    try:
        with closing(AuditChild(messages.ExamineDataset(dataset, upstream=upstream))) as child:
            pairs = _generate_twice(child, observations)
            _score_true_answers(child, observations, pairs)
            _score_corpus(child, observations, pairs)
            _score_longer_texts(child, observations, pairs)
            _check_scores(child, observations, Message("its scores are not the same when it is asked again"))
        with closing(AuditChild(messages.ExamineDataset(dataset, upstream=upstream, another_day=True))) as child:
            if child.generate(QUESTION_SEEDS[::-1]).pairs[::-1] != pairs:
                observations.add_reason(Message("its questions are not the same in another process or on another day"))
            _check_scores(child, observations, Message("its scores are not the same in another process or on another day"))
        with closing(AuditChild(messages.ExamineDataset(dataset, upstream=upstream), hash_seed=1)) as child:
            hash_seed_matters = child.generate(QUESTION_SEEDS).pairs != pairs or not _scores_as_before(child, observations)
    except UnusableDataset as error:
        reason = Message("its questions cannot be made where answers are judged (%1)", error.args[0])
        return AuditFinding(dataset=dataset, listed=False, reasons=(reason,))
    return _finding(dataset, observations, hash_seed_matters=hash_seed_matters)


def _generate_twice(child: AuditChild, observations: Observations) -> list[tuple[str, str]]:
    first, second = child.generate(QUESTION_SEEDS), child.generate(QUESTION_SEEDS[::-1])
    if second.pairs[::-1] != first.pairs:
        observations.add_reason(Message("its questions are not the same when they are made again"))
    observations.generation_seconds = min(first.seconds, second.seconds)
    if observations.generation_seconds <= QUESTION_SECONDS:
        observations.generation_seconds = child.generate(SWARM_SEEDS).seconds
    return first.pairs


def _score_true_answers(child: AuditChild, observations: Observations, pairs: Sequence[tuple[str, str]]) -> None:
    for seed, (_, answer) in zip(QUESTION_SEEDS, pairs, strict=True):
        observations.unpaid_true_answers += not _score(child, observations, seed, answer).reward >= RIGHT


def _score_corpus(child: AuditChild, observations: Observations, pairs: Sequence[tuple[str, str]]) -> None:
    """Score the whole corpus, at the shortest length, on each of a few questions."""
    length = ANSWER_LENGTHS[0]
    for number, seed in enumerate(CORPUS_SEEDS):
        answer, other = pairs[number][1], pairs[number - 1][1]
        for name, text in (*hostile_texts.named(length), *hostile_texts.twisted(answer)):
            scored = _score(child, observations, seed, text)
            if scored.reward < RIGHT:
                observations.crumb = max(observations.crumb, scored.reward)
            elif text.strip() != answer.strip():
                observations.paid_in_full[name] += 1
        for text in (*hostile_texts.near(answer, other), *hostile_texts.swollen(answer, length)):
            _score(child, observations, seed, text)
    if not observations.stalled_texts:
        observations.longest = length


def _score_longer_texts(child: AuditChild, observations: Observations, pairs: Sequence[tuple[str, str]]) -> None:
    for length in ANSWER_LENGTHS[1:]:
        if observations.stalled_texts:
            return
        before = observations.slowest
        for number, seed in enumerate(CORPUS_SEEDS[:3]):
            for text in (*hostile_texts.growing(length), *hostile_texts.swollen(pairs[number][1], length)):
                _score(child, observations, seed, text, keep=False)
                if observations.stalled_texts:
                    observations.slowest = before
                    return
        observations.longest = length


def _score(child: AuditChild, observations: Observations, seed: int, text: str, *, keep: bool = True) -> messages.AnswerScore:
    """Score one text, unless it stalled before, or so many texts did that the scorer is known to stall."""
    if text in observations.stalled_texts or len(observations.stalled_texts) >= MAX_STALLS:
        return messages.AnswerScore(0.0, "", [], 0.0)
    scored = child.score(seed, text)
    observations.answers += 1
    if scored.seconds > QUICK_SECONDS:
        observations.stalled_texts.add(text)
    else:
        observations.slowest = max(observations.slowest, scored.seconds)
        if keep:
            observations.score_texts[seed, text] = _score_text(scored)
    observations.events.update(scored.events)
    if scored.raised:
        observations.raised[scored.raised] += 1
    if not 0.0 <= scored.reward <= 1.0 + ROUNDING:
        observations.add_reason(
            Message("its scores leave the range from 0 to 1")
            if math.isfinite(scored.reward)
            else Message("its scores are not always numbers")
        )
    return scored


def _score_text(scored: messages.AnswerScore) -> str:
    return f"{scored.reward!r} {scored.raised}"


def _check_scores(child: AuditChild, observations: Observations, reason: Message) -> None:
    if not _scores_as_before(child, observations):
        observations.add_reason(reason)


def _scores_as_before(child: AuditChild, observations: Observations) -> bool:
    """Whether all texts are scored as before, in reverse order because a scorer might have a memory."""
    items = list(observations.score_texts)[::-1]
    return [_score_text(scored) for scored in child.score_quick(items)] == list(observations.score_texts.values())[::-1]


def _finding(dataset: str, observations: Observations, *, hash_seed_matters: bool) -> AuditFinding:
    for event in observations.events:
        observations.add_reason(REASON_OF_EVENT.get(event, Message("its scorer does what nothing here may do (%1)", event)))
    if observations.unpaid_true_answers and not observations.events:  # with events, the audit itself may have prevented it
        observations.add_reason(Message("it does not pay its own true answer in full"))
    if observations.generation_seconds > QUESTION_SECONDS:
        observations.add_reason(
            Message("making one of its questions takes %1 seconds", _two_digits(observations.generation_seconds))
        )
    if not observations.longest:
        observations.add_reason(
            Message(
                "a text of %1 characters can keep its scorer busy for more than %2 seconds",
                ANSWER_LENGTHS[0],
                _two_digits(QUICK_SECONDS),
            )
        )
    if PROCESS_ENDED in observations.raised:
        observations.add_reason(Message("a text can end its process"))
    if master_keys := [text for text, count in observations.paid_in_full.items() if count >= MASTER_KEY_COUNT]:
        observations.add_reason(Message("it pays in full what is no answer (%1)", master_keys[0]))
    return AuditFinding(
        dataset=dataset,
        listed=not observations.reasons,
        reasons=tuple(observations.reasons),
        longest=observations.longest,
        question_seconds=round(observations.generation_seconds, 3),
        slowest_seconds=round(observations.slowest, 2),
        crumb=round(observations.crumb, 3),
        events=tuple(sorted(observations.events)),
        raised=tuple(sorted(observations.raised)),
        hash_seed_matters=hash_seed_matters,
        answers=observations.answers,
    )
