"""One window for each home and remote host: a second start raises the first window and hands it its invite link."""

import hashlib
import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec
from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from waggle.core import paths
from waggle.core.errors import UNREADABLE
from waggle.core.paths import Home, is_private, write_atomically

WINDOWS = os.name == "nt"
log = logging.getLogger(__name__)
PATIENCE_MS = 2000  # ms to connect to the first window
ANSWER_MS = 15_000  # ms until it answers: it reads nothing while it is still being built
MOST_BYTES = 8192  # of a request: an invite has at most 4096 characters


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a second start sends to the first window, as one line of JSON."""

    invite: str = ""


class SingleInstance(QObject):
    """Holds the lock of a home's window. `start_requested` carries the invite of a second start, empty if it had none.

    The lock ends with the process that holds it. `host`: the remote computer of the engine, empty for this one.
    """

    start_requested = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None, *, host: str = "") -> None:
        super().__init__(parent)
        which = "window-" + _short_hash(host.encode()) if host else "window"
        self._folder, self._which = folder, which
        self._lock = QLockFile(str(folder / f"{which}.lock"))
        self._lock.setStaleLockTime(0)  # never stale by age: only the end of its process frees it
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._answer)

    def claim(self) -> bool:
        """Whether this is the first window of the home; if so, it listens for further starts from now on.

        True, too, where the folder cannot be written to: the engine reports what is wrong with it.
        """
        if not self._lock.tryLock(0) and not self._take_over():
            return self._lock.error() != QLockFile.LockError.LockFailedError
        if name := _socket_name(self._folder, self._which, make=True):
            QLocalServer.removeServer(name)  # left by a killed window: we hold the lock, so nobody listens there
            if not self._server.listen(name):
                log.warning("a second start cannot reach this window: %s", self._server.errorString())
        return True

    def _take_over(self) -> bool:
        """Take over the lock of a process that cannot be checked, because the folder was copied from another computer.

        The operating system does not remove the lock file of a running process.
        """
        return self._lock.removeStaleLockFile() and self._lock.tryLock(0)

    def call(self, invite: str = "") -> bool:
        """Raise the first window and hand it the invite; False if it does not answer."""
        socket = QLocalSocket()
        socket.connectToServer(_socket_name(self._folder, self._which))
        if not socket.waitForConnected(PATIENCE_MS):
            return False
        socket.write(msgspec.json.encode(StartRequest(invite=invite)) + b"\n")
        is_sent = socket.waitForBytesWritten(ANSWER_MS)
        is_answered = is_sent and (
            socket.bytesAvailable() > 0 or socket.waitForReadyRead(ANSWER_MS)
        )  # it may have answered already
        socket.abort()
        return is_answered

    def release(self) -> None:
        self._server.close()
        self._lock.unlock()
        home = Home(self._folder)
        if not WINDOWS and (place := paths.socket_path(home, f"{self._which}.sock").parent) != home.control:
            with suppress(OSError):  # fails while the engine's socket is there, too
                place.rmdir()

    def _answer(self) -> None:
        while socket := self._server.nextPendingConnection():
            socket.readyRead.connect(_listener(self, socket))
            socket.disconnected.connect(socket.deleteLater)


class _RequestReader:
    """Reads one request from a socket; aborts the connection if it is too long or malformed."""

    def __init__(self, instance: SingleInstance, socket: QLocalSocket) -> None:
        self._instance, self._socket, self._buffer = instance, socket, b""

    def __call__(self) -> None:
        self._buffer += bytes(self._socket.readAll().data())
        if b"\n" not in self._buffer:
            if len(self._buffer) > MOST_BYTES:
                self._socket.abort()
            return
        try:
            request = msgspec.json.decode(self._buffer[:MOST_BYTES], type=StartRequest)
        except UNREADABLE:  # not sent by a Waggle window
            self._socket.abort()
            return
        self._buffer = b""
        self._socket.write(b"\n")
        self._instance.start_requested.emit(request.invite)


def _listener(instance: SingleInstance, socket: QLocalSocket) -> _RequestReader:
    return _RequestReader(instance, socket)


def _socket_name(folder: Path, which: str, *, make: bool = False) -> str:
    """Name of the local socket: a path in the home, or on Windows, where pipes have no folder, a name with a secret part.

    Empty where another user could listen.
    """
    home = Home(folder)
    path = home.control / f"{which}.pipe" if WINDOWS else paths.socket_path(home, f"{which}.sock")
    if make:
        with suppress(OSError):  # the home is missing, or the folder exists
            path.parent.mkdir(mode=0o700)
    with suppress(OSError, ValueError):
        if WINDOWS:
            if make:
                write_atomically(path, secrets.token_hex(16).encode(), mode=0o600)
            return f"waggle-{which}-{path.read_text('ascii')}"
        if path.parent == home.control or is_private(path.parent):
            return str(path)
    return ""


def _short_hash(name: bytes) -> str:
    return hashlib.sha256(name).hexdigest()[:16]
