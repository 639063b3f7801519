"""One window for one home, and for each computer that is driven from it: whoever starts a second one raises the first.

The first is handed the invite link that the second came with.
"""

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec
from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from waggle.core.errors import UNREADABLE
from waggle.core.paths import Home, is_private, put

WINDOWS = os.name == "nt"
PATIENCE_MS = 2000  # until a window that is there is connected
ANSWER_MS = 15_000  # until it answers: it hears nothing while it is still being made
MOST_BYTES = 8192  # an invite has 4096 characters at most


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a second start says to the first."""

    invite: str = ""


class SingleInstance(QObject):
    """`start_requested` carries what a second start said. The lock dies with the process that holds it. `host`: where its engine runs,
    empty for here."""

    start_requested = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None, *, host: str = "") -> None:
        super().__init__(parent)
        which = "window-" + _short(host.encode()) if host else "window"
        self._folder, self._which = folder, which
        self._lock = QLockFile(str(folder / f"{which}.lock"))
        self._lock.setStaleLockTime(0)  # however long it is held: only the end of its process frees it
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._answer)

    def claim(self) -> bool:
        """Whether this is the first window of the home; from now on it is called when another one starts.

        Where the folder cannot be written in, nothing can be claimed, and the engine says what is wrong with it.
        """
        if not self._lock.tryLock(0) and not self._taken_over():
            return self._lock.error() != QLockFile.LockError.LockFailedError
        if name := _name(self._folder, self._which, make=True):
            QLocalServer.removeServer(name)  # of a window that was killed: the lock is ours, so nobody listens there
            self._server.listen(name)
        return True

    def _taken_over(self) -> bool:
        """Of a process that nobody can ask for any more, because the folder came here from another computer. The system keeps the
        file of a living one from being removed."""
        return self._lock.removeStaleLockFile() and self._lock.tryLock(0)

    def call(self, invite: str = "") -> bool:
        """Raise the first window; False when it does not answer."""
        socket = QLocalSocket()
        socket.connectToServer(_name(self._folder, self._which))
        if not socket.waitForConnected(PATIENCE_MS):
            return False
        socket.write(msgspec.json.encode(StartRequest(invite=invite)) + b"\n")
        is_sent = socket.waitForBytesWritten(ANSWER_MS)
        is_answered = is_sent and (
            socket.bytesAvailable() > 0 or socket.waitForReadyRead(ANSWER_MS)
        )  # it may have answered meanwhile
        socket.abort()
        return is_answered

    def release(self) -> None:
        self._server.close()
        self._lock.unlock()
        home = Home(self._folder)
        if not WINDOWS and (place := home.socket(f"{self._which}.sock").parent) != home.control:
            with suppress(OSError):  # the engine listens there, too
                place.rmdir()

    def _answer(self) -> None:
        while socket := self._server.nextPendingConnection():
            socket.readyRead.connect(_listener(self, socket))
            socket.disconnected.connect(socket.deleteLater)


class _Listener:
    """Hears one caller out; what is too long or of another form is hung up on."""

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
        except UNREADABLE:  # no window of ours says such things
            self._socket.abort()
            return
        self._buffer = b""
        self._socket.write(b"\n")
        self._instance.start_requested.emit(request.invite)


def _listener(instance: SingleInstance, socket: QLocalSocket) -> _Listener:
    return _Listener(instance, socket)


def _name(folder: Path, which: str, *, make: bool = False) -> str:
    """Among the sockets of the home; on Windows, where pipes have no folder, a name that nobody else can know. Empty where
    another user could listen."""
    home = Home(folder)
    path = home.control / f"{which}.pipe" if WINDOWS else home.socket(f"{which}.sock")
    if make:
        with suppress(OSError):  # there is no home, or it is there already
            path.parent.mkdir(mode=0o700)
    with suppress(OSError, ValueError):
        if WINDOWS:
            if make:
                put(path, secrets.token_hex(16).encode(), mode=0o600)
            return f"waggle-{which}-{path.read_text('ascii')}"
        if path.parent == home.control or is_private(path.parent):
            return str(path)
    return ""


def _short(name: bytes) -> str:
    return hashlib.sha256(name).hexdigest()[:16]
