"""Downloads models from the Hugging Face Hub: resumable, and no byte is used without a check of its hash.

    CACHE/owner/.downloading-name[@revision]/  plan.json (the files of one commit with their hashes) and what has arrived
    CACHE/owner/name[@revision]/               the same, complete and checked; Waggle does not ask the hub about it again
    CACHE/owner/.removing-name[@revision]/     what an interrupted removal left

huggingface_hub makes the requests. Its own download restarts a file if the process died, and checks no hashes. The same holds for
Xet, the hub's faster protocol, which is not used.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from waggle.core import connection_faults, paths, resumable_download
from waggle.core.errors import UNREADABLE, HubUnavailable, ModelError
from waggle.core.message import Message, in_turn
from waggle.core.model_reference import NAME
from waggle.core.system import file_moves
from waggle.core.system.os_faults import fault_of
from waggle.models import tokenizer_conversion
from waggle.models.inspection import inspector
from waggle.models.shared.configuration import quantised
from waggle.models.shared.weight_files import INDEX, LARGEST_HEADER, WEIGHTS
from waggle.models.storage.hub_cache import UNFINISHED, lock_of

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub import ModelInfo

CARD = "README.md"  # names the model that a quantised one was made from
WORDS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
NEEDED = ("config.json", tokenizer_conversion.TOKENIZER)
SHARD = re.compile(r"model(?:\.safetensors)?-\d{5}-of-\d{5}\.safetensors")
PLAN = "plan.json"
FIRST_BYTES = 1 << 17  # of a weight file; most headers are shorter
ROOM = 100_000_000  # bytes that stay free on the disk

T = TypeVar("T")
Progress = Callable[[int, int], None]  # (bytes that have arrived, all bytes)


class HubFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a commit: its size and its hash on the hub."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str = ""  # of a large file (Git LFS)
    git: str = ""  # of a small file: git's SHA-1 of its blob


class DownloadPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files of a download. Fixed at its start, so that it continues with the same commit."""

    commit: str
    files: tuple[HubFile, ...]
    weights: Annotated[int, msgspec.Meta(ge=0)] = 0  # how many numbers, as the hub says; 0: it does not say

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Model:
    """A model's name on the hub, parsed, and its folders here."""

    repository: str
    revision: str | None
    folder: Path
    unfinished: Path


def model_of(name: str, cache: Path) -> Model:
    """Parse a name. Raises ModelError if it is none."""
    parts = NAME.fullmatch(name)
    if parts is None:
        raise ModelError(
            Message("%1 is not the name of a model.", name),
            "Names look like Qwen/Qwen2.5-0.5B-Instruct; a folder is the setting model.folder.",
        )
    owner, last, revision = parts.groups()
    marked = f"{last}@{revision}" if revision else last
    folder = cache / owner / marked
    return Model(f"{owner}/{last}", revision, folder, folder.with_name(f"{UNFINISHED}{marked}"))


def name_and_commit(name: str, cache: Path) -> str:
    """A downloaded model as "name commit"; empty if its plan cannot be read."""
    try:
        return f"{name} {msgspec.json.decode((model_of(name, cache).folder / PLAN).read_bytes(), type=DownloadPlan).commit}"
    except (OSError, *UNREADABLE):
        return ""


def is_begun(name: str, cache: Path) -> bool:
    """Whether a download has started. Raises ModelError for a wrong name."""
    return (model_of(name, cache).unfinished / PLAN).is_file()


def planned_weights(folder: Path) -> int:
    """How many weights the model of a download has, before they have arrived; 0 if that is not known."""
    try:
        return msgspec.json.decode((folder / PLAN).read_bytes(), type=DownloadPlan).weights
    except (OSError, *UNREADABLE):  # no download of ours
        return 0


def fetch(
    name: str,
    cache: Path,
    progress: Progress,
    *,
    warn: Callable[[str], None],
    token: Callable[[], str | None] = lambda: None,
    examine: Callable[[Path], None] = lambda folder: None,
    endpoint: str | None = None,
    commit: str = "",
) -> Path:
    """The folder of a model, after downloading it if necessary. Raises ModelError, and HubUnavailable for temporary failures.

    `commit`: start the download of this commit instead of the newest. `progress` is called for every piece; an exception of it
    stops the download, and what has arrived is kept. `examine` is called with the folder once the configuration has arrived, and
    again when a download continues: its ModelError stops the download, which is deleted if no weights have arrived yet. `token`
    is called only if the hub refuses anonymous access.
    """
    model = model_of(name, cache)
    if model.folder.is_dir():
        return model.folder
    from filelock import FileLock, Timeout

    connection_faults.require_usable_settings(ModelError, hub=True)
    with _in_words(model.repository):
        model.folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(lock_of(model.unfinished), timeout=0):
                if model.folder.is_dir():  # another program has just finished
                    return model.folder
                return _run(_Download(model, progress, warn, examine, endpoint, commit), token)
        except Timeout as error:
            raise ModelError(
                Message("%1 is being downloaded by another program.", name), "Wait until that is done, then start again."
            ) from error


def fetch_headers(
    name: str, scratch: Path, *, warn: Callable[[str], None], token: Callable[[], str | None] = lambda: None
) -> Path:
    """Download a model without its weights into a scratch folder, and return the folder of the model. Raises as `fetch` does.

    Its weight files have their headers and sizes, and no content: enough to inspect the model.
    """
    model = model_of(name, scratch)
    connection_faults.require_usable_settings(ModelError, hub=True)
    with _in_words(model.repository):
        model.folder.parent.mkdir(parents=True)
        return _run(_HeadersDownload(model, lambda _, __: None, warn, lambda _: None, None, ""), token)


def _run(download: "_Download", token: Callable[[], str | None]) -> Path:
    """Download anonymously, or else with a token."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return download.run(token=None)
    except RepositoryNotFoundError:  # or it needs a token: the hub answers the same
        mine = token()
        if mine is None:
            raise
        return download.run(token=mine)


class _Download:
    """One download and its progress."""

    def __init__(
        self,
        model: Model,
        progress: Progress,
        warn: Callable[[str], None],
        examine: Callable[[Path], None],
        endpoint: str | None,
        commit: str,
    ) -> None:
        self._model = model
        self._commit = commit
        self._examine = examine
        self._progress = progress
        self._warn = warn
        self._endpoint = endpoint
        self._headers: dict[str, str] = {}
        self._here = self._total = 0

    def run(self, token: str | None) -> Path:
        """Download what is missing, check everything, and give the folder its final name."""
        from huggingface_hub.utils import build_hf_headers

        self._headers = build_hf_headers(token=token or False)
        unfinished = self._model.unfinished
        plan = _read_plan(unfinished) or self._plan(token)
        self._total = plan.total
        self._here = sum(_size(unfinished, file) for file in plan.files)
        _require_room(unfinished, self._total - self._here, self._model.repository)
        for file in plan.files:
            if file.name in (WEIGHTS, INDEX):  # the first of the large ones
                self._require(partial(inspector.inspect, parts=inspector.WITHOUT_WEIGHTS))
            if not (unfinished / file.name).is_file():
                self._get(file, plan.commit)
            if file.name == "config.json":
                self._require(partial(inspector.inspect, parts=inspector.CONFIGURATION))
                self._require(self._examine)
        file_moves.replace(unfinished, self._model.folder)
        return self._model.folder

    def _plan(self, token: str | None) -> DownloadPlan:
        """Ask the hub for the commit of the name and its files."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HFValidationError, RevisionNotFoundError

        api = HfApi(endpoint=self._endpoint, token=token or False)
        try:
            revision = self._commit or self._model.revision
            info = api.model_info(self._model.repository, revision=revision, files_metadata=True)
            plan = plan_of(info)
        except RevisionNotFoundError as error:
            if not self._commit:
                raise
            raise ModelError(
                Message("Hugging Face no longer has %1 as it was when its training here began.", self._model.repository),
                "What it has learned is kept. Choose another model, or another revision of it: owner/name@revision.",
            ) from error
        except HFValidationError:
            raise
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:  # no JSON, or another: a login page
            raise ModelError(
                "What answered is not Hugging Face.", "Does this network ask you to log in first? Open a page in your browser."
            ) from error
        paths.write_atomically(self._model.unfinished / PLAN, msgspec.json.encode(plan))
        return plan

    def _require(self, check: Callable[[Path], object]) -> None:
        """Refuse a model before its weights are downloaded, if it is unsupported or does not fit."""
        try:
            check(self._model.unfinished)
        except ModelError:
            if not any(self._model.unfinished.glob("*.safetensors*")):  # with weights it fitted before, and may fit again
                file_moves.remove_tree(self._model.unfinished, ignore_errors=True)
            raise

    def _get(self, file: HubFile, commit: str) -> None:
        """Download the rest of a file and check it. A damaged file is deleted and downloaded once more."""
        part = self._model.unfinished / f"{file.name}.part"
        others = self._here - (part.stat().st_size if part.is_file() else 0)
        for _ in range(2):
            resumable_download.fetch(part, file.size, partial(self._request, file, commit), partial(self._tell, others))
            if _is_whole(part, file):
                self._here = others + file.size
                file_moves.replace(part, part.with_name(file.name))
                return
            file_moves.unlink(part)
            self._warn(f"{file.name} of {self._model.repository} arrived damaged and was thrown away.")
        raise ModelError(
            Message("%1 of %2 arrived damaged, twice.", file.name, self._model.repository),
            "Something between Hugging Face and this computer changes files. Try again from another network.",
        )

    def _tell(self, others: int, here: int) -> None:
        self._progress(others + here, self._total)

    @contextmanager
    def _request(self, file: HubFile, commit: str, headers: dict[str, str]) -> "Iterator[httpx2.Response]":
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status, http_stream_backoff

        url = hf_hub_url(self._model.repository, file.name, revision=commit, endpoint=self._endpoint)
        sent = {**self._headers, **headers}
        with http_stream_backoff("GET", url, headers=sent, timeout=10.0, retry_on_exceptions=()) as response:
            hf_raise_for_status(response)
            yield response


class _HeadersDownload(_Download):
    """A download that takes the headers of weight files only."""

    def _require(self, check: Callable[[Path], object]) -> None:
        """Check nothing on the way: the whole model is inspected afterwards."""

    def _get(self, file: HubFile, commit: str) -> None:
        if not file.name.endswith(".safetensors"):
            return super()._get(file, commit)
        start = self._beginning(file, commit, FIRST_BYTES)
        header = 8 + int.from_bytes(start[:8], "little")
        if header > LARGEST_HEADER:
            raise ModelError(
                Message("The header of %1 of %2 is too large.", file.name, self._model.repository), "Choose another model."
            )
        if len(start) < header <= file.size:
            start = self._beginning(file, commit, header)
        with (self._model.unfinished / file.name).open("wb") as written:
            written.write(start[:header])
            written.truncate(file.size)  # a hole, which takes no room on most disks

    def _beginning(self, file: HubFile, commit: str, size: int) -> bytes:
        """The first bytes of a file, up to `size`."""
        content = b""
        with self._request(file, commit, {"Accept-Encoding": "identity", "Range": f"bytes=0-{size - 1}"}) as response:
            for piece in response.iter_bytes(resumable_download.PIECE):
                content += piece
                if len(content) >= size:
                    break  # the server ignores Range
        return content[:size]


def plan_of(info: "ModelInfo") -> DownloadPlan:
    """The files of a model to download. Raises ModelError if some are missing, or if its weights are pickles only."""
    there = {sibling.rfilename: sibling for sibling in info.siblings or ()}
    shards = sorted(name for name in there if SHARD.fullmatch(name)) if INDEX in there else []
    weights = [WEIGHTS] if WEIGHTS in there else [INDEX, *shards] if shards else []
    if not weights:
        if any(name.lower().endswith(".gguf") for name in there):
            bases = getattr(info.card_data, "base_model", None)
            base = quantised.hub_name(bases[0] if isinstance(bases, list) and bases else bases)
            raise ModelError(Message("%1 has GGUF files only, of which Waggle downloads none.", info.id), quantised.advice(base))
        pickled = any(name.endswith((".bin", ".pt", ".pth")) for name in there)
        why = "only as pickles, which can run any code on the computer that reads them" if pickled else "nowhere"
        raise ModelError(Message("%1 has its weights %2.", info.id, why), "Choose a model with .safetensors files.")
    for name in missing(set(there)):
        raise ModelError(Message("%1 has no %2.", info.id, name), "Choose a complete transformers model.")
    words = WORDS if tokenizer_conversion.TOKENIZER in there else (*WORDS, *tokenizer_conversion.FILES)
    names = [name for name in (CARD, *words) if name in there] + weights
    return DownloadPlan(_require(info.sha, info.id), tuple(_file_of(there[name], info.id) for name in names), _weights_of(info))


def _weights_of(info: "ModelInfo") -> int:
    total = getattr(info.safetensors, "total", 0)
    return total if isinstance(total, int) and 0 < total < 1 << 50 else 0  # more is a mistake


def missing(names: set[str]) -> list[str]:
    """The files that a folder with files of these `names` lacks. A tokenizer.json can be made from others."""
    absent = [name for name in NEEDED if name not in names]
    return [name for name in absent if name != tokenizer_conversion.TOKENIZER or not tokenizer_conversion.is_possible(names)]


def _file_of(sibling: Any, repository: str) -> HubFile:
    size = _require(sibling.size, repository)
    if sibling.lfs is not None:
        return HubFile(sibling.rfilename, size, sha256=sibling.lfs.sha256)
    return HubFile(sibling.rfilename, size, git=_require(sibling.blob_id, repository))


def _require(value: T | None, repository: str) -> T:
    if value is None:
        raise ModelError(Message("Hugging Face does not say what %1 consists of.", repository), "Try again later.")
    return value


def _read_plan(unfinished: Path) -> DownloadPlan | None:
    """The plan of an interrupted download. Without it the commit of the files is unknown, so they are deleted."""
    try:
        return msgspec.json.decode((unfinished / PLAN).read_bytes(), type=DownloadPlan)
    except (FileNotFoundError, *UNREADABLE):
        if unfinished.is_dir():
            file_moves.remove_tree(unfinished)
        unfinished.mkdir()
        return None


def _size(unfinished: Path, file: HubFile) -> int:
    """The bytes of a file that have arrived. A file that is too long is another one, and deleted."""
    if (unfinished / file.name).is_file():
        return file.size
    part = unfinished / f"{file.name}.part"
    size = part.stat().st_size if part.is_file() else 0
    if size > file.size:
        file_moves.unlink(part)
        return 0
    return size


def _is_whole(path: Path, file: HubFile) -> bool:
    if path.stat().st_size != file.size:
        return False
    if file.sha256:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
    named = b"blob %d\0" % file.size + path.read_bytes()
    return hashlib.sha1(named, usedforsecurity=False).hexdigest() == file.git


def _require_room(folder: Path, needed: int, repository: str) -> None:
    free = shutil.disk_usage(folder).free
    if needed + ROOM > free:
        raise ModelError(
            Message("%1 needs %2 more, and the disk has %3 free.", repository, megabytes(needed), megabytes(free)),
            Message("Make room, or choose a smaller model; %1 are to stay free.", megabytes(ROOM)),
        )


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


@contextmanager
def _in_words(repository: str) -> Iterator[None]:
    """Turn every error of a connection to the hub into a ModelError."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise ModelError(
            Message("%1 is given only to those who accepted its licence.", repository),
            Message("Accept it on https://huggingface.co/%1, then give Waggle a token of yours with `waggle token`.", repository),
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ModelError(
            Message("%1 has no such revision.", repository), "Leave out what follows the @, or correct it."
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ModelError(
            Message("Hugging Face has no model %1.", repository),
            "Check its name; for a private one, give Waggle a token with `waggle token`.",
        ) from error
    except errors.EntryNotFoundError as error:
        raise ModelError(Message("Hugging Face has lost a file of %1.", repository), "Choose another revision of it.") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        kind = HubUnavailable if status >= 500 or status == 429 else ModelError
        if cause := connection_faults.cause_of(error):
            raise kind(cause.title, in_turn(cause.advice, Message("What was downloaded is kept."))) from error
        if status in (401, 403):
            raise ModelError(
                Message("Hugging Face refuses %1 to your token.", repository), "Store one that may read it with `waggle token`."
            ) from error
        raise kind(Message("Hugging Face answered %1 when asked for %2.", status, repository), "Try again later.") from error
    except (httpx2.TransportError, errors.OfflineModeIsEnabled) as error:
        kind = HubUnavailable if isinstance(error, httpx2.TransportError) else ModelError
        if cause := connection_faults.cause_of(error):
            raise kind(cause.title, in_turn(cause.advice, Message("What was downloaded is kept."))) from error
        raise kind(
            Message("Hugging Face cannot be reached, and %1 is not fully downloaded.", repository),
            "What was downloaded is kept. Try again when you are online.",
        ) from error
    except httpx2.RequestError as error:
        raise ModelError(
            Message("Hugging Face sends %1 in a form that cannot be read, or in circles.", repository),
            "Something on the way changes files. Try another network. What was downloaded is kept.",
        ) from error
    except OSError as error:
        fault = fault_of(error)
        advice = in_turn(Message("What was downloaded is kept."), fault.advice)
        raise ModelError(Message("%1 cannot be written to the disk: %2.", repository, fault.reason), advice) from error
