"""The charter: the immutable, hashed agreement under which the nodes of a swarm train.

Its sha256 names the swarm on the DHT, so nodes with another charter cannot meet. It holds no reward settings: rewards
are local.
"""

import hashlib
import re
from pathlib import Path
from typing import Annotated

import msgspec

from waggle.core.errors import UNREADABLE, CharterError
from waggle.core.message import Message, in_turn
from waggle.core.system.os_faults import fault_of
from waggle.core.text.legible_name import legible
from waggle.core.text.person_text import decoded
from waggle.tasks import audit_results, catalogue
from waggle.tasks.question_file.description import QuestionFile
from waggle.tasks.specialties.interface import Difficulty

PROTOCOL = 2  # version of records and announcements; raised if older nodes could not read a new one
REASONING_GYM = "0.1.25"
MAX_BYTES = 64 * 1024  # of a charter document
LONGEST_COMPLETION = 20_000  # characters, under any charter

LONGEST_NAME = 60
LONGEST_TITLE = 40
MOST_FILES = 4  # of questions, in one charter: the verifier holds all of them in memory
MODEL_HINT = 80  # characters
CORRECTED = Message("Update Waggle, or have the charter corrected.")
QUOTED = 120  # characters of a decoding error: it may repeat a stranger's text


class Specialty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of task: a dataset in one or more levels of the catalogue, and the title that people see.

    A charter names levels instead of settings, because only levels are audited for true answers. People's own questions are a
    `file` instead; its only level is called standard, and its hashes make up the dataset's name.
    """

    dataset: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]{1,64}\Z")]
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TITLE)]
    levels: Annotated[tuple[Difficulty, ...], msgspec.Meta(min_length=1, max_length=3)] = ("standard",)
    file: QuestionFile | msgspec.UnsetType = msgspec.UNSET


class _Versions(msgspec.Struct, frozen=True):
    """The fields that charters of every protocol version have."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    protocol: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)] = PROTOCOL


class Charter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A swarm's agreement. It has at most 64 specialties because announcements carry them as a bit mask of 64 bits."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    protocol: Annotated[int, msgspec.Meta(ge=1)] = PROTOCOL
    reasoning_gym: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z.+-]{1,20}\Z")] = REASONING_GYM
    specialties: Annotated[tuple[Specialty, ...], msgspec.Meta(min_length=1, max_length=64)]
    group_size_min: Annotated[int, msgspec.Meta(ge=2, le=16)] = 2
    group_size_max: Annotated[int, msgspec.Meta(ge=2, le=16)] = 16
    completion_characters: Annotated[int, msgspec.Meta(ge=16, le=LONGEST_COMPLETION)] = 400
    age_window_s: Annotated[int, msgspec.Meta(ge=60, le=86_400)] = 3600
    # The numbers that a node may use. A fast one with the starter uses 36,000, half of them for questions that it skips.
    questions_per_epoch: Annotated[int, msgspec.Meta(ge=16, le=1 << 20)] = 1 << 16
    questions_digest: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")] = ""
    # The public key of a private swarm. Public charters omit it: their hashes are older than this field.
    admission: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")] | msgspec.UnsetType = msgspec.UNSET
    # The model that the author recommends, in words; it binds nobody. Omitted if empty, as in charters older than this field.
    model_hint: Annotated[str, msgspec.Meta(min_length=1, max_length=MODEL_HINT)] | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_private(self) -> bool:
        """Whether members need a key."""
        return self.admission is not msgspec.UNSET

    @property
    def admission_key(self) -> str:
        """The public half of that key, in hex; empty in a public swarm."""
        return "" if self.admission is msgspec.UNSET else self.admission

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical document: 32 bytes that name the swarm."""
        return hashlib.sha256(encode(self)).digest()

    def datasets_by_name(self) -> dict[str, str]:
        """The dataset of each specialty by its title and by its own name, in small letters."""
        titles = {specialty.title.casefold(): specialty.dataset for specialty in self.specialties}
        return titles | {specialty.dataset.casefold(): specialty.dataset for specialty in self.specialties}

    def position(self, dataset: str) -> int:
        """The index of a specialty, which stands for it in messages. Raises CharterError."""
        for i, specialty in enumerate(self.specialties):
            if specialty.dataset == dataset:
                return i
        raise CharterError(Message("The charter of %1 has no specialty %2.", self.name, dataset))


def encode(charter: Charter) -> bytes:
    """The canonical form: JSON with sorted keys, so that equal charters have equal hashes."""
    return msgspec.json.encode(charter, order="sorted")


def decode(document: bytes, *, expected: bytes | None = None) -> Charter:
    """Decode a charter. Raises CharterError if it is too large, malformed or incomplete, or if its hash is not `expected`."""
    if len(document) > MAX_BYTES:
        raise CharterError("This charter is too large.", "Ask for the invite again: it was probably damaged.")
    try:
        _check_protocol(msgspec.json.decode(document, type=_Versions))  # first: other protocols may have other fields
        charter = msgspec.json.decode(document, type=Charter)
    except UNREADABLE as error:
        if expected is not None:  # it came from a peer: only its author could use the details
            raise CharterError("This charter is malformed.", CORRECTED) from error
        raise CharterError(Message("This charter cannot be read: %1.", str(error)[:QUOTED])) from error
    check(charter)
    if expected is not None and charter.digest != expected:
        raise CharterError("This charter is not the one the invite names.", "Do not join: it was changed on the way.")
    return charter


def read(path: Path, *, expected: bytes | None = None) -> Charter:
    """Read a charter from a file. Raises CharterError, also if its hash is not `expected`."""
    try:
        return decode(decoded(path.read_bytes()).encode(), expected=expected)
    except FileNotFoundError as error:
        raise CharterError(Message("The charter %1 cannot be opened.", path), "Check `swarm.charter` in the settings.") from error
    except UnicodeDecodeError as error:
        raise CharterError(Message("The charter %1 is no text in UTF-8.", path), CORRECTED) from error
    except OSError as error:
        raise CharterError(
            Message("The charter %1 cannot be opened: %2.", path, fault_of(error).reason), fault_of(error).advice
        ) from error


def ended(name: str) -> CharterError:
    """The error for a charter of an earlier protocol."""
    return CharterError(
        Message("%1 has ended.", name),
        "Its questions had false answers, and members now agree on levels that were checked. "
        "Create it anew and send its members a new invite.",
    )


def ended_name(path: Path) -> str:
    """The name in a charter file of an earlier protocol, whatever else the file says; empty for any other file or none."""
    try:
        with path.open("rb") as file:
            versions = msgspec.json.decode(file.read(MAX_BYTES), type=_Versions)
    except (OSError, *UNREADABLE):
        return ""
    return versions.name[:LONGEST_NAME] if versions.protocol < PROTOCOL and _is_plain(versions.name) else ""


def _is_plain(words: str) -> bool:
    """Whether a name looks like itself alone: nothing in it is invisible, blank, or piled onto other letters."""
    return legible(words) == words


def check(charter: Charter) -> None:
    """Raise CharterError for what the types do not express, such as datasets that failed the audit."""
    names = [specialty.dataset for specialty in charter.specialties]
    if len(set(names)) != len(names):
        raise CharterError("A charter names each specialty once.")
    hint = charter.model_hint or ""
    if not all(map(_is_plain, (charter.name, hint, *(specialty.title for specialty in charter.specialties)))):
        raise CharterError("A charter's name, hint and titles are plain words on one line.")
    if charter.group_size_min > charter.group_size_max:
        raise CharterError("A charter's smallest group is larger than its largest.")
    files = [(specialty, specialty.file) for specialty in charter.specialties if specialty.file is not msgspec.UNSET]
    if len(files) > MOST_FILES:
        raise CharterError(Message("A charter has at most %1 files of questions.", MOST_FILES))
    for specialty, file in files:
        if reason := _file_fault(specialty, file):
            raise CharterError(Message("The file of %1 %2.", specialty.title, reason), CORRECTED)
    for specialty in charter.specialties:
        if specialty.file is msgspec.UNSET:
            _check_levels(charter, specialty)


def _check_levels(charter: Charter, specialty: Specialty) -> None:
    """Raise CharterError unless a dataset passed the audit and has these levels."""
    name = specialty.dataset
    if reason := audit_results.shipped_audit().refusal(name, charter.completion_characters):
        raise CharterError(Message("%1 names %2, which it may not: %3.", charter.name, name, reason), _advice(name))
    if len(set(specialty.levels)) != len(specialty.levels):
        raise CharterError("A charter names each level of a specialty once.")
    for level in specialty.levels:
        if catalogue.level_of(name, level) is None:
            raise CharterError(Message("%1 names a level of %2 that does not exist.", charter.name, name), CORRECTED)
        if audit_results.shipped_audit().false_keys(name, level):
            raise CharterError(Message("%1 names a level of %2 with false answers.", charter.name, name), CORRECTED)


def _file_fault(specialty: Specialty, file: QuestionFile) -> str:
    if specialty.levels != ("standard",):
        return "has levels of the catalogue"
    if specialty.dataset != file.dataset:
        return "does not have the name that its hashes make"
    return file.fault()


def other_questions(charter: Charter, digest: str) -> CharterError:
    """The error for a node whose questions have this digest. It says who has to act.

    Members with different questions would judge each other's right answers as wrong.
    """
    theirs, ours = _numbers(charter.reasoning_gym), _numbers(REASONING_GYM)
    if not charter.questions_digest and theirs == ours:
        return CharterError(
            Message("%1 does not say which questions its members agree on.", charter.name),
            Message(
                'Whoever wrote the charter has to add "questions_digest": "%1". That makes a swarm of its own, with new invites.',
                digest,
            ),
        )
    title = Message("This computer makes other questions than %1 agreed on.", charter.name)
    if theirs == ours:
        advice = Message("Both use reasoning-gym %1. Install Waggle again, or ask whoever wrote the charter.", REASONING_GYM)
        return CharterError(title, advice)
    side = Message("This swarm was made for an older Waggle: somebody has to create it anew.")
    if theirs > ours:
        side = Message("This swarm needs a newer Waggle: update this one.")
    versions = Message("It uses reasoning-gym %1, this Waggle %2.", charter.reasoning_gym, REASONING_GYM)
    return CharterError(title, in_turn(versions, side))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", version)]


def _advice(name: str) -> Message:
    if name in audit_results.shipped_audit().findings:
        return Message("Whoever wrote the charter has to choose another specialty.")
    return CORRECTED


def _check_protocol(versions: _Versions) -> None:
    if versions.protocol != PROTOCOL and _is_plain(versions.name):
        name = versions.name[:LONGEST_NAME]
        if versions.protocol < PROTOCOL:
            raise ended(name)
        raise CharterError(
            Message("%1 speaks protocol %2, this Waggle speaks %3.", name, versions.protocol, PROTOCOL),
            "This swarm needs a newer Waggle: update this one.",
        )
