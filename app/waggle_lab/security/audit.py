"""`waggle-lab audit`: shows every dataset's scorer a hostile corpus, and writes down which ones a charter may name."""

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
from waggle.tasks.charter import LONGEST_COMPLETION
from waggle.tasks.rollout_group import RIGHT
from waggle.tasks.sandbox import messages
from waggle.tasks.specialties.audit_results import Audit, Finding, Heading, read
from waggle_lab.security import hostile_texts
from waggle_lab.security.audit_room import ENDED, CannotBeMade, Room, catalogue

SEEDS = tuple(range(100, 112))  # of the questions that are made again and again
ASKED = SEEDS[:6]  # of those that see the whole corpus
MANY = tuple((number << 52) + number for number in range(1000, 1200))  # of 63 bits, as those of a swarm: of what is made once
ROUNDING = 1e-9  # by which sums of shares may miss 1
LENGTHS = (400, 2_000, LONGEST_COMPLETION)  # characters of an answer: the first charter allows the least of these
QUICK_SECONDS = 0.25  # for one answer
QUESTION_SECONDS = 0.03  # to make one: 512 are asked for at once, and all have to come in 20 seconds
PATIENCE = 3  # texts that stall a scorer, until it is seen to stall
HALF = len(ASKED) / 2  # of the questions: a text that all these take for right is a master key
TRIED = {
    "compile": "its scorer runs text as code",
    "exec": "its scorer runs text as code",
    "import": "its scorer imports modules while it judges",
    "open": "its scorer opens files while it judges",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", default="", help="only these; several with commas")
    parser.add_argument("--out", type=Path, default=Path("audit.jsonl"), help="a line for each dataset")
    parser.add_argument("--resume", action="store_true", help="go on with that file")
    parser.add_argument("--jobs", type=int, default=1, help="datasets audited at once")


def run(arguments: argparse.Namespace) -> int:
    """Audit what is missing; returns the exit code."""
    known = catalogue()
    chosen = [name for name in arguments.datasets.split(",") if name] or known.datasets
    if unknown := set(chosen) - set(known.datasets):
        raise LabError(f"reasoning-gym {known.version} has no dataset {unknown.pop()}.")
    heading = Heading(reasoning_gym=known.version, python=platform.python_version())
    done = _begun(arguments.out, heading, resume=arguments.resume)
    missing = [name for name in chosen if name not in done.findings]
    with ThreadPoolExecutor(max(1, arguments.jobs)) as pool, tqdm(total=len(missing), unit=" datasets", file=sys.stderr) as bar:
        try:
            for future in as_completed([pool.submit(audit, name) for name in missing]):
                found = future.result()
                done.findings[found.dataset] = found
                _write(arguments.out, done)
                bar.update()
                bar.write(f"{found.dataset}: {'; '.join(found.reasons) or f'listed, up to {found.longest} characters'}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise LabError("Stopped.", "Audited datasets are kept: go on with --resume.") from None
    listed = sum(found.listed for found in done.findings.values())
    sys.stdout.write(f"datasets_audited {len(done.findings)}\nlisted {listed}\nrefused {len(done.findings) - listed}\n")
    return 0


def _begun(path: Path, heading: Heading, *, resume: bool) -> Audit:
    if not path.exists():
        return Audit(heading=heading, findings={})
    if not resume:
        raise LabError(f"{path} holds an audit already.", "Add --resume to go on with it, or choose another --out.")
    try:
        begun = read(path)
    except (OSError, ValueError) as error:
        raise LabError(f"{path} is no audit.", "Choose another --out.") from error
    if begun.heading != heading:
        raise LabError(f"{path} holds an audit of another reasoning-gym or Python.", "Choose another --out.")
    return begun


def _write(path: Path, audited: Audit) -> None:
    """A line each, in the order of their names, so that audits can be compared."""
    lines = [audited.heading, *(audited.findings[name] for name in sorted(audited.findings))]
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        paths.write_atomically(path, text)
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}.", "Choose another --out.") from error


@dataclass
class Seen:
    """What one dataset's scorer did so far."""

    events: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    full: Counter[str] = field(
        default_factory=Counter
    )  # texts that are no answer, by on how many questions they are paid in full
    said: dict[tuple[int, str], str] = field(default_factory=dict)  # (seed, text) -> reward and exception
    stalled: set[str] = field(default_factory=set)
    against: list[str] = field(default_factory=list)
    answers: int = 0
    unpaid: int = 0  # true answers
    question: float = 0.0  # seconds to make one
    crumb: float = 0.0
    longest: int = 0
    slowest: float = 0.0

    def hold_against(self, reason: str) -> None:
        if reason not in self.against:
            self.against.append(reason)


def audit(dataset: str, *, upstream: bool = False) -> Finding:
    """Everything about one dataset; `upstream` looks at its scorer as reasoning-gym has it, without what Waggle rebinds."""
    seen = Seen()
    try:
        with closing(Room(messages.Examine(dataset, upstream=upstream))) as room:
            pairs = _make_twice(room, seen)
            _show_the_truth(room, seen, pairs)
            _show_the_corpus(room, seen, pairs)
            _show_longer(room, seen, pairs)
            _compare(room, seen, "its scores are not the same when it is asked again")
        with closing(Room(messages.Examine(dataset, upstream=upstream, another_day=True))) as room:
            if room.make(SEEDS[::-1]).pairs[::-1] != pairs:
                seen.hold_against("its questions are not the same in another process or on another day")
            _compare(room, seen, "its scores are not the same in another process or on another day")
        with closing(Room(messages.Examine(dataset, upstream=upstream), hash_seed=1)) as room:
            matters = room.make(SEEDS).pairs != pairs or not _same(room, seen)
    except CannotBeMade as error:
        reason = f"its questions cannot be made where answers are judged ({error})"
        return Finding(dataset=dataset, listed=False, reasons=(reason,))
    return _finding(dataset, seen, hash_seed_matters=matters)


def _make_twice(room: Room, seen: Seen) -> list[tuple[str, str]]:
    made, again = room.make(SEEDS), room.make(SEEDS[::-1])
    if again.pairs[::-1] != made.pairs:
        seen.hold_against("its questions are not the same when they are made again")
    seen.question = min(made.seconds, again.seconds)
    if seen.question <= QUESTION_SECONDS:
        seen.question = room.make(MANY).seconds
    return made.pairs


def _show_the_truth(room: Room, seen: Seen, pairs: Sequence[tuple[str, str]]) -> None:
    for seed, (_, answer) in zip(SEEDS, pairs, strict=True):
        seen.unpaid += not _show(room, seen, seed, answer).reward >= RIGHT


def _show_the_corpus(room: Room, seen: Seen, pairs: Sequence[tuple[str, str]]) -> None:
    """On each of a few questions the whole corpus at the shortest length."""
    length = LENGTHS[0]
    for number, seed in enumerate(ASKED):
        answer, other = pairs[number][1], pairs[number - 1][1]
        for name, text in (*hostile_texts.named(length), *hostile_texts.twisted(answer)):
            found = _show(room, seen, seed, text)
            if found.reward < RIGHT:
                seen.crumb = max(seen.crumb, found.reward)
            elif text.strip() != answer.strip():
                seen.full[name] += 1
        for text in (*hostile_texts.near(answer, other), *hostile_texts.swollen(answer, length)):
            _show(room, seen, seed, text)
    if not seen.stalled:
        seen.longest = length


def _show_longer(room: Room, seen: Seen, pairs: Sequence[tuple[str, str]]) -> None:
    for length in LENGTHS[1:]:
        if seen.stalled:
            return
        before = seen.slowest
        for number, seed in enumerate(ASKED[:3]):
            for text in (*hostile_texts.growing(length), *hostile_texts.swollen(pairs[number][1], length)):
                _show(room, seen, seed, text, keep=False)
                if seen.stalled:
                    seen.slowest = before
                    return
        seen.longest = length


def _show(room: Room, seen: Seen, seed: int, text: str, *, keep: bool = True) -> messages.Scored:
    """One answer; what stalled before is not shown again, and nothing more once the scorer is seen to stall."""
    if text in seen.stalled or len(seen.stalled) >= PATIENCE:
        return messages.Scored(0.0, "", [], 0.0)
    found = room.score(seed, text)
    seen.answers += 1
    if found.seconds > QUICK_SECONDS:
        seen.stalled.add(text)
    else:
        seen.slowest = max(seen.slowest, found.seconds)
        if keep:
            seen.said[seed, text] = _said(found)
    seen.events.update(found.events)
    if found.raised:
        seen.raised[found.raised] += 1
    if not 0.0 <= found.reward <= 1.0 + ROUNDING:
        seen.hold_against(
            "its scores leave the range from 0 to 1" if math.isfinite(found.reward) else "its scores are not always numbers"
        )
    return found


def _said(found: messages.Scored) -> str:
    return f"{found.reward!r} {found.raised}"


def _compare(room: Room, seen: Seen, reason: str) -> None:
    if not _same(room, seen):
        seen.hold_against(reason)


def _same(room: Room, seen: Seen) -> bool:
    """Whether it scores as before; in the other order, because a scorer might remember."""
    items = list(seen.said)[::-1]
    return [_said(found) for found in room.score_quick(items)] == list(seen.said.values())[::-1]


def _finding(dataset: str, seen: Seen, *, hash_seed_matters: bool) -> Finding:
    for event in seen.events:
        seen.hold_against(TRIED.get(event, f"its scorer does what nothing here may do ({event})"))
    if seen.unpaid and not seen.events:  # else the audit itself was in its way
        seen.hold_against("it does not pay its own true answer in full")
    if seen.question > QUESTION_SECONDS:
        seen.hold_against(f"making one of its questions takes {seen.question:.2g} seconds")
    if not seen.longest:
        seen.hold_against(f"a text of {LENGTHS[0]} characters can keep its scorer busy for more than {QUICK_SECONDS} seconds")
    if ENDED in seen.raised:
        seen.hold_against("a text can end its process")
    if keys := [text for text, count in seen.full.items() if count >= HALF]:
        seen.hold_against(f"it pays in full what is no answer ({keys[0]})")
    return Finding(
        dataset=dataset,
        listed=not seen.against,
        reasons=tuple(seen.against),
        longest=seen.longest,
        question_seconds=round(seen.question, 3),
        slowest_seconds=round(seen.slowest, 2),
        crumb=round(seen.crumb, 3),
        events=tuple(sorted(seen.events)),
        raised=tuple(sorted(seen.raised)),
        hash_seed_matters=hash_seed_matters,
        answers=seen.answers,
    )
