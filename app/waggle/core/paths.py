"""Where things lie: the folder of this person's data, the files that ship with Waggle, and the programs it consists of."""

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

LONGEST_SOCKET = 100  # systems allow about 104 bytes in a socket's name


@dataclass(frozen=True)
class Home:
    """One node's folder. Several models on one machine are several homes, each with its own identity."""

    root: Path
    training: Path | None = None  # where what is trained lies, for a model that was not this home's first

    @property
    def settings(self) -> Path:
        return self.root / "settings.toml"

    @property
    def identity(self) -> Path:
        return self.root / "identity.key"

    @property
    def checkpoints(self) -> Path:
        return (self.training or self.root) / "checkpoints"

    @property
    def history(self) -> Path:
        return (self.training or self.root) / "history.sqlite"

    @property
    def album(self) -> Path:
        """Weights of ever rarer rounds."""
        return (self.training or self.root) / "album"

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def known_peers(self) -> Path:
        return self.root / "known_peers.json"

    def known_peers_of(self, charter: str) -> Path:
        """The same for a swarm that was joined or created, by the hash of its charter in hex."""
        return self.root / "known_peers" / f"{charter}.json"

    @property
    def swarms(self) -> Path:
        return self.root / "swarms.json"

    @property
    def standings(self) -> Path:
        return self.root / "standings.json"

    def marks(self, charter: str) -> Path:
        """What answer sheets of a swarm were worth, by the hash of its charter in hex."""
        return self.root / "marks" / f"{charter}.msgpack"

    @property
    def charters(self) -> Path:
        return self.root / "charters"

    @property
    def seed_port(self) -> Path:
        return self.root / "seed_port"

    def admission(self, charter: str) -> Path:
        """Where the key of a private swarm is kept, by the hash of its charter in hex."""
        return self.charters / f"{charter}.key"

    @property
    def window(self) -> Path:
        """What the window remembers of itself."""
        return self.root / "window.json"

    @property
    def control(self) -> Path:
        """The folder (0700) of the control socket."""
        return self.root / "control"

    def socket(self, name: str) -> Path:
        """Where a program of this home listens: in its own folder, or in a short private one when that name is too long.

        Anybody may make a folder among temporary ones: see `is_private`.
        """
        path = self.control / name
        if len(os.fsencode(path)) <= LONGEST_SOCKET:
            return path
        short = hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"waggle-{os.getuid()}-{short}" / name

    def prepare(self) -> "Home":
        """Make the folders; raises OSError where the disk says no."""
        peers, marks = self.root / "known_peers", self.root / "marks"
        for folder in (self.root, self.checkpoints, self.events, self.charters, peers, marks, self.control):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self


def is_private(folder: Path) -> bool:
    """Whether nobody but this user can put anything there; raises OSError where there is none."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def put_new(path: Path, content: bytes) -> None:
    """Write a new file, which this user alone may read; raises FileExistsError where there is one, and OSError."""
    with open(path, "xb", opener=for_us) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except OSError:  # half of it is worth nothing
            path.unlink(missing_ok=True)
            raise


def for_us(name: str, flags: int) -> int:
    """An opener of files that others may not read where they are new."""
    return os.open(name, flags, 0o600)


def put(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file completely or not at all, also through a power cut; raises OSError. A new file gets this `mode`.

    Anything that has the temporary name is removed first: in a shared folder it may be a link to anywhere.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:  # no torso may take what room is left
        with suppress(OSError):
            beside.unlink()
        raise


def flush(path: Path) -> None:
    """fsync a file or, where the system allows it, a folder; raises OSError."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def expanded(path: Path | str) -> Path:
    """The path with a person's folder in the place of ~; raises FileNotFoundError where there is no such person."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, "nobody here has that name", str(path)) from error


def home_in(folder: Path | None) -> Home:
    """The home in a folder that was named, else in `WAGGLE_HOME`, else where this system keeps application data.

    Raises FileNotFoundError for `~name` where nobody has that name.
    """
    if folder is not None:
        return Home(expanded(folder))
    if chosen := os.environ.get("WAGGLE_HOME"):
        return Home(expanded(chosen))
    import platformdirs

    return Home(Path(platformdirs.user_data_dir("waggle", appauthor=False)))


def cache() -> Path:
    """The place this system keeps files in that can be made again."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("waggle", appauthor=False))


def models() -> Path:
    """Where models of the hub are kept, for all homes of this person."""
    return cache() / "models"


def resources() -> Path:
    """The folder of files that ship with Waggle: inside the package when installed, beside `app/` in a checkout."""
    package = Path(waggle.__file__).resolve().parent
    installed = package / "resources"
    return installed if installed.is_dir() else package.parents[1] / "resources"


def example() -> Path:
    """A recorded run of a real swarm, to be watched before there is one of one's own."""
    return resources() / "example.jsonl"


def starter() -> Path:
    """The model that ships with Waggle, a plain transformers folder."""
    return resources() / "starter"


def window() -> list[str]:
    """The command that opens a window, for one that is open already: of an installed app, the executable that it is itself."""
    return [sys.executable] if getattr(sys, "frozen", False) else program("waggle")


def program(module: str) -> list[str]:
    """The command that runs one of our modules as a process of its own; in an installed app each is an executable.

    `-P`: or whatever lies in the folder that Waggle was started in would be imported in the place of what we ask for.
    """
    if not getattr(sys, "frozen", False):
        return [sys.executable, "-P", "-m", module]
    here = Path(sys.executable)
    name, *rest = {
        "waggle": [here.stem if sys.platform == "linux" else "waggle-console"],  # elsewhere a window has no standard streams
        "waggle.tasks.sandbox.verifier_process": ["waggle-verifier"],
        "waggle.tasks.sandbox.template_process": ["waggle-verifier", "template"],
    }[module]
    return [str(here.with_name(name + here.suffix)), *rest]
