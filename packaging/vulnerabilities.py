"""Looks up every locked package, the CUDA wheels and the Go modules of p2pd in OSV, the open database of known vulnerabilities.

python3 packaging/dev.py vulnerabilities [--notes FILE]

Exit status 0: checked, and nothing is known but what known_vulnerabilities.toml lists with a reason. 1: something is known, or a
reason has expired. 3: not checked, or not all of it; FILE then gets a line for people who read the release's notes.

OSV is asked for names and versions only: https://google.github.io/osv.dev/post-v1-querybatch/ and get-v1-vulns. Python itself and
libraries inside wheels, such as OpenSSL in cryptography, are covered only where an advisory names the wheel.
"""

import argparse
import datetime
import importlib.machinery
import json
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import go_build_info
import httpx2
import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

HERE = Path(__file__).resolve().parent
KNOWN, CUDA = HERE / "known_vulnerabilities.toml", HERE.parent / "resources/cuda.json"
OSV = "https://api.osv.dev"
CLEAR, VULNERABLE, UNCHECKED = 0, 1, 3
BATCH = 500  # queries in a request; OSV allows 1,000
MAX_PAGES = 20  # of one package
MAX_FINDINGS = 2000
MAX_ANSWER = 32 << 20  # bytes
TIMEOUT_S = 30.0  # without a byte
ANSWER_S = 120.0  # for a whole answer
ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}\Z"

Text = str | None
T = TypeVar("T")


class LockError(Exception):
    """A lock or the list of known vulnerabilities cannot be read."""


class Unchecked(Exception):
    """OSV cannot be asked, or its answer cannot be used."""


class Part(NamedTuple):
    """What a release consists of. `ecosystem` and `name` are as OSV writes them."""

    ecosystem: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name} {self.version}"


class Finding(NamedTuple):
    part: Part
    ids: frozenset[str]  # the advisory's own id, and its aliases
    summary: str


class _Reference(msgspec.Struct):
    id: str


class _PartResult(msgspec.Struct):
    vulns: list[_Reference] | None = None
    next_page_token: Text = None


class _Batch(msgspec.Struct):
    results: list[_PartResult]


class _Advisory(msgspec.Struct):
    id: str
    aliases: list[str] | None = None
    summary: Text = None
    withdrawn: Text = None


class Accepted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Vulnerabilities of one package that a release may have, why, and until when."""

    package: str  # ECOSYSTEM:NAME
    ids: list[str]
    reason: str
    until: datetime.date


class _AcceptedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    accepted: list[Accepted] = []


def main(arguments: Sequence[str], *, url: str = OSV, known: Path = KNOWN) -> int:
    options = argparse.ArgumentParser(prog="vulnerabilities")
    options.add_argument("--notes", type=Path, metavar="FILE")
    notes: Path | None = options.parse_args(arguments).notes
    unchecked = list[str]()
    parts = [*locked_parts(sorted(HERE.glob("*lock*.txt"))), *cuda_parts(CUDA)]
    try:
        parts += go_parts(p2pd(), print)
    except go_build_info.UnreadableBuildInfo as error:
        unchecked.append(f"p2pd: {error}")
    accepted = accepted_vulnerabilities(known)
    findings = list[Finding]()
    try:
        findings = look_up(parts, url)
    except Unchecked as error:
        unchecked.insert(0, f"{len(parts)} parts: {error}")
    else:
        print(f"Looked up {len(parts)} parts in OSV.")
    status = report(findings, accepted, datetime.datetime.now(datetime.UTC).date(), everything=not unchecked)
    for why in unchecked:
        print(f"::warning::NOT CHECKED for known vulnerabilities: {why}")
    if unchecked and notes is not None:
        notes.parent.mkdir(parents=True, exist_ok=True)
        notes.write_text("".join(f"- Not checked for known vulnerabilities: {why}\n" for why in unchecked), encoding="utf-8")
    return status or (UNCHECKED if unchecked else CLEAR)


def locked_parts(locks: Iterable[Path]) -> list[Part]:
    """Every package of lock files, once. Raises LockError for a line that names no single version."""
    parts = dict[Part, None]()
    for lock in locks:
        for line in re.sub(r"\\\n", " ", lock.read_text(encoding="utf-8")).splitlines():
            words = re.sub(r"(^|\s)#.*|\s--hash=\S+", "", line).strip()
            if not words or words.startswith(("--index-url", "--extra-index-url")):
                continue
            try:
                requirement = Requirement(words)
            except InvalidRequirement as error:
                raise LockError(f"{lock.name}: cannot read {words!r}") from error
            specifiers = [*requirement.specifier]
            if len(specifiers) != 1 or specifiers[0].operator not in ("==", "===") or "*" in specifiers[0].version:
                raise LockError(f"{lock.name}: {words!r} is not one version")
            parts[Part("PyPI", canonicalize_name(requirement.name), specifiers[0].version.partition("+")[0])] = None
    if not parts:
        raise LockError("the lock files lock nothing")
    return [*parts]


def cuda_parts(listing: Path) -> list[Part]:
    """The wheels that a person may download for an NVIDIA card."""
    names = [wheel["url"].rpartition("/")[2] for wheel in json.loads(listing.read_text(encoding="utf-8"))["wheels"]]
    wheels = [parse_wheel_filename(name) for name in names]
    return [Part("PyPI", name, str(version).partition("+")[0]) for name, version, *_ in wheels if name.startswith("nvidia-")]


def p2pd() -> Path:
    """The daemon in hivemind's wheel. Raises UnreadableBuildInfo where it is not installed, as on Windows."""
    place = importlib.machinery.PathFinder.find_spec("hivemind")  # not what a running program put in its place
    if place is None or not place.submodule_search_locations:
        raise go_build_info.UnreadableBuildInfo("hivemind is not installed here")
    return Path(place.submodule_search_locations[0], "hivemind_cli/p2pd")


def go_parts(executable: Path, tell: Callable[[str], object]) -> list[Part]:
    """The Go modules of an executable and Go's standard library. Raises UnreadableBuildInfo."""
    build = go_build_info.read(executable)
    for path in build.unversioned:
        tell(f"{executable.name}: {path} has no version, so only what it is built of can be looked up.")
    return [Part("Go", "stdlib", build.go), *(Part("Go", *module) for module in sorted(build.modules.items()))]


def accepted_vulnerabilities(path: Path) -> list[Accepted]:
    """The list of what a release may have. Raises LockError."""
    try:
        content = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _AcceptedFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise LockError(f"{path.name}: {error}") from error
    for entry in content.accepted:
        if len(entry.reason.split()) < 5 or not entry.ids:
            raise LockError(f"{path.name}: {entry.package} has no ids, or no reason in words")
    return content.accepted


def look_up(parts: Sequence[Part], url: str = OSV, *, timeout_s: float = TIMEOUT_S) -> list[Finding]:
    """What OSV knows of these parts, without withdrawn advisories. Raises Unchecked."""
    with httpx2.Client(base_url=url, timeout=timeout_s, follow_redirects=False) as client:
        ids = dict[str, list[Part]]()
        for start in range(0, len(parts), BATCH):
            for part, identifier in _known_ids(client, parts[start : start + BATCH]):
                ids.setdefault(identifier, []).append(part)
                if len(ids) > MAX_FINDINGS:
                    raise Unchecked(f"OSV names more than {MAX_FINDINGS} vulnerabilities")
        advisories = {identifier: _advisory(client, identifier) for identifier in ids}
    findings = list[Finding]()
    for identifier, affected in ids.items():
        advisory = advisories[identifier]
        if not advisory.withdrawn:
            names = frozenset([advisory.id, *(advisory.aliases or ())])
            findings += [Finding(part, names, _readable(advisory.summary or "")) for part in dict.fromkeys(affected)]
    return findings


def _known_ids(client: httpx2.Client, parts: Sequence[Part]) -> Iterable[tuple[Part, str]]:
    """The ids of all advisories of these parts, page by page."""
    waiting = [(part, "") for part in parts]
    for _ in range(MAX_PAGES):
        queries = [_query(part, token) for part, token in waiting]
        content = _answer(client, "POST", "/v1/querybatch", {"queries": queries})
        results = _decoded(content, _Batch).results
        if len(results) != len(waiting):
            raise Unchecked("OSV answers another number of questions than were asked")
        for (part, _), result in zip(waiting, results, strict=True):
            for reference in result.vulns or ():
                if not re.match(ID, reference.id):
                    raise Unchecked("OSV answers with something that is no id")
                yield part, reference.id
        waiting = [
            (part, result.next_page_token)
            for (part, _), result in zip(waiting, results, strict=True)
            if result.next_page_token
        ]  # fmt: skip
        if not waiting:
            return
    raise Unchecked(f"OSV has more than {MAX_PAGES} pages of one package")


def _query(part: Part, token: str) -> dict[str, object]:
    query: dict[str, object] = {"package": {"ecosystem": part.ecosystem, "name": part.name}, "version": part.version}
    return {**query, "page_token": token} if token else query


def _advisory(client: httpx2.Client, identifier: str) -> _Advisory:
    advisory = _decoded(_answer(client, "GET", f"/v1/vulns/{quote(identifier, safe='')}"), _Advisory)
    if advisory.id != identifier:
        raise Unchecked(f"OSV answers with another advisory than {identifier}")
    return advisory


def _answer(client: httpx2.Client, method: str, path: str, body: object = None) -> bytes:
    """The body of an answer, at most MAX_ANSWER bytes. Raises Unchecked."""
    try:
        with client.stream(method, path, json=body) as response:
            if response.status_code != 200:
                raise Unchecked(f"OSV answers with status {response.status_code}")
            content, begun_at = bytearray(), time.monotonic()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > MAX_ANSWER:
                    raise Unchecked(f"OSV's answer is larger than {MAX_ANSWER >> 20} MiB")
                if time.monotonic() - begun_at > ANSWER_S:
                    raise Unchecked(f"OSV's answer takes longer than {ANSWER_S:.0f} s")
            return bytes(content)
    except httpx2.HTTPError as error:
        raise Unchecked(f"OSV cannot be reached ({type(error).__name__})") from error


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unchecked("OSV's answer cannot be read") from error


def _readable(text: str) -> str:
    """Words of others for a terminal and for the log of a workflow, which reads lines with :: as commands."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200].replace("::", ":")


def report(findings: Sequence[Finding], accepted: Sequence[Accepted], today: datetime.date, *, everything: bool) -> int:
    """Print what is known, and whether a release may have it. With `everything` looked up, also what the list names in vain."""
    status, used = CLEAR, set[tuple[str, str]]()
    for finding in sorted(findings, key=lambda finding: (finding.part, min(finding.ids))):
        part, ids = finding.part, ", ".join(sorted(finding.ids))
        entries = [
            entry
            for entry in accepted
            if entry.package == f"{part.ecosystem}:{part.name}" and finding.ids & {*entry.ids}
        ]  # fmt: skip
        used |= {(entry.package, identifier) for entry in entries for identifier in finding.ids & {*entry.ids}}
        if any(entry.until >= today for entry in entries):
            print(f"open, listed: {part}: {ids}")
            continue
        expired = f" (the reason expired on {max(entry.until for entry in entries)})" if entries else ""
        print(f"::error::VULNERABLE: {part}: {ids}: {finding.summary}{expired}")
        status = VULNERABLE
    for entry in accepted:
        if idle := [identifier for identifier in entry.ids if everything and (entry.package, identifier) not in used]:
            print(f"no longer known, remove it from the list: {entry.package}: {', '.join(idle)}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
