"""Where files are: the folder of a node, the files that ship with Waggle, and the programs that it consists of."""

import errno
import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import waggle
from waggle.core.message import Message
from waggle.core.system import access_list, file_moves
from waggle.core.system.os_faults import naming

LONGEST_SOCKET = 100  # bytes of a path: systems allow a socket about 104


@dataclass(frozen=True)
class ModelFiles:
    """What one node stores about the training of one model."""

    root: Path

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def history(self) -> Path:
        return self.root / "history.sqlite"

    @property
    def snapshots(self) -> Path:
        """Weights of earlier rounds."""
        return self.root / "album"

    @property
    def prompt_form(self) -> Path:
        """How this model is asked, as it was found by trying."""
        return self.root / "prompt_form.json"


@dataclass(frozen=True)
class SwarmFiles:
    """What one node stores about one swarm. `charter` is the charter's hash in hex; empty: the swarm that ships with Waggle."""

    root: Path
    charter: str

    @property
    def known_peers(self) -> Path:
        folder = self.root / "known_peers"
        return folder / f"{self.charter}.json" if self.charter else folder.with_suffix(".json")

    @property
    def charter_file(self) -> Path:
        return self.root / "charters" / f"{self.charter}.json"

    @property
    def key(self) -> Path:
        """The key of a private swarm."""
        return self.root / "charters" / f"{self.charter}.key"

    @property
    def scores(self) -> Path:
        """The graded answer sheets."""
        return self.root / "marks" / f"{self.charter}.msgpack"


@dataclass(frozen=True)
class Home:
    """The folder of one node. Several models on one computer are several homes, each with its own identity.

    The first model of a home is stored in its root, each later one in a folder of its own, `model_root`.
    """

    root: Path
    model_root: Path | None = None

    @property
    def model(self) -> ModelFiles:
        return ModelFiles(self.model_root or self.root)

    def swarm(self, charter: str) -> SwarmFiles:
        return SwarmFiles(self.root, charter)

    @property
    def settings(self) -> Path:
        return self.root / "settings.toml"

    @property
    def identity(self) -> Path:
        return self.root / "identity.key"

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def swarms(self) -> Path:
        """The list of swarms that a person joined or created."""
        return self.root / "swarms.json"

    @property
    def charters(self) -> Path:
        return self.root / "charters"

    @property
    def questions(self) -> Path:
        """The folder of people's own questions, in pieces that are named by their hash."""
        return self.root / "questions"

    @property
    def reputation(self) -> Path:
        return self.root / "standings.json"

    @property
    def control(self) -> Path:
        """The folder of the control socket, for its user only (mode 0700)."""
        return self.root / "control"

    def prepare(self) -> "Home":
        """Make the folders. Raises OSError."""
        if self.root.is_symlink() and not self.root.exists():  # of a disk that is not connected: making it would be another home
            raise FileNotFoundError(
                errno.ENOENT, Message("it is a link to %1, which is not there", os.readlink(self.root)), str(self.root)
            )
        of_swarm = self.swarm("any")
        folders = (of_swarm.known_peers.parent, of_swarm.scores.parent, self.charters, self.questions, self.events, self.control)
        for folder in (self.root, self.model.checkpoints, *folders):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        access_list.restrict(self.root)
        return self


def socket_path(home: Home, name: str) -> Path:
    """Where a program of this home listens: in the control folder, or in a temporary folder if that path is too long.

    Anybody can make a folder among temporary ones, so check it with `is_private`.
    """
    path = home.control / name
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    short = hashlib.sha256(os.fsencode(home.root.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"waggle-{os.getuid()}-{short}" / name


def is_private(folder: Path) -> bool:
    """Whether only this user can write to a folder. Raises OSError if it does not exist."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def write_new(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read. Raises FileExistsError if it exists, and OSError."""
    is_ours = False
    try:
        with naming(path), open(path, "xb", opener=owner_only) as file:
            is_ours = True
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        if is_ours:  # half a file is of no use; it is closed by now, because Windows removes no open one
            file_moves.unlink(path, missing_ok=True)
        raise


def owner_only(name: str, flags: int) -> int:
    """An opener for `open`: a new file can be read by this user only."""
    return _open_new(name, flags, 0o600)


def _open_new(name: str, flags: int, mode: int) -> int:
    """Open a new file with this mode, and on Windows with an access list that says as much, before anything is in it."""
    descriptor = os.open(name, flags, mode)
    if not mode & 0o077:
        access_list.restrict(Path(name))
    return descriptor


def write_atomically(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file completely or not at all, even if the power fails. A new file gets this `mode`. Raises OSError.

    A file with the temporary name is removed first: in a shared folder it could be a link to any place.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        with naming(path):
            file_moves.unlink(beside, missing_ok=True)
            with open(beside, "xb", opener=lambda name, flags: _open_new(name, flags, mode)) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            file_moves.replace(beside, path)
    except OSError:  # an unfinished file must not use up a full disk
        with suppress(OSError):
            file_moves.unlink(beside)
        raise


def flush(path: Path) -> None:
    """fsync a file or, if the system can do that, a folder. Raises OSError."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        with naming(path):
            os.fsync(handle)
    finally:
        os.close(handle)


def expand_user(path: Path | str) -> Path:
    """The path with `~` or `~name` replaced by a home folder. Raises FileNotFoundError if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, "nobody here has that name", str(path)) from error


def home_in(folder: Path | None) -> Home:
    """The home in this folder, or in `WAGGLE_HOME`, or where this system keeps application data. Its path is absolute.

    Raises FileNotFoundError for `~name` if there is no such user, and if nothing is chosen and this user has no home folder.
    """
    if folder is not None:
        return Home(expand_user(folder).absolute())
    if chosen := os.environ.get("WAGGLE_HOME"):
        return Home(expand_user(chosen).absolute())
    if not _has_folder("XDG_DATA_HOME"):  # a folder with the name ~ in the working directory helps nobody
        raise FileNotFoundError(errno.ENOENT, "this user has no home folder", "~")
    import platformdirs

    return Home(Path(platformdirs.user_data_dir("waggle", appauthor=False)))


def cache() -> Path:
    """Waggle's folder in the system's cache, for files that can be made again."""
    import platformdirs

    if not _has_folder("XDG_CACHE_HOME"):  # as in a container without HOME: a home was chosen then
        return Path(tempfile.gettempdir()) / f"waggle-cache-{os.getuid() if hasattr(os, 'getuid') else 0}"
    return Path(platformdirs.user_cache_dir("waggle", appauthor=False))


def _has_folder(variable: str) -> bool:
    """Whether this user has a home folder, or this variable names another place."""
    return os.path.isabs(os.path.expanduser("~")) or bool(os.environ.get(variable))


def models() -> Path:
    """The folder of downloaded models, for all homes of this user."""
    return cache() / "models"


def resources() -> Path:
    """The folder of files that ship with Waggle: in the package if it is installed, beside `app/` in a checkout."""
    package = Path(waggle.__file__).resolve().parent
    installed = package / "resources"
    return installed if installed.is_dir() else package.parents[1] / "resources"


def example() -> Path:
    """A recorded run of a real swarm, for people who have none yet."""
    return resources() / "example.jsonl"


def starter() -> Path:
    """The model that ships with Waggle, a plain transformers folder."""
    return resources() / "starter"


def former_starters() -> list[Path]:
    """The starters of older versions, a folder for each; homes that trained one continue with it."""
    return sorted(path for path in (resources() / "former_starters").glob("*") if path.is_dir())


def window_command() -> list[str]:
    """The command with which a running window opens another one. In an installed app it is the app's executable."""
    return [sys.executable] if getattr(sys, "frozen", False) else module_command("waggle")


def module_command(module: str) -> list[str]:
    """The command that runs one of our modules as a process. In an installed app, each of these is an executable.

    `-P` keeps Python from importing modules from the folder in which Waggle was started.
    """
    if not getattr(sys, "frozen", False):
        return [sys.executable, "-P", "-m", module]
    here = Path(sys.executable)
    name, *rest = {
        # On other systems than Linux, the window's executable has no standard streams.
        "waggle": [here.stem if sys.platform == "linux" else "waggle-console"],
        "waggle.models.gguf.process": [here.stem if sys.platform == "linux" else "waggle-console", "read-gguf"],
        "waggle.models.inspection.process": [here.stem if sys.platform == "linux" else "waggle-console", "inspect-model"],
        "waggle.tasks.sandbox.verifier_process": ["waggle-verifier"],
        "waggle.tasks.sandbox.template_process": ["waggle-verifier", "template"],
    }[module]
    return [str(here.with_name(name + here.suffix)), *rest]
