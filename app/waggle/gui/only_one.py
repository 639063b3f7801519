"""One window for one home: whoever starts a second one raises the first, and hands it the invite link that it came with."""

import hashlib
import os
from pathlib import Path

import msgspec
from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from waggle.errors import UNREADABLE

PATIENCE_MS = 2000
MOST_BYTES = 8192  # an invite has 4096 characters at most
LONGEST_NAME = 100  # systems allow about 104 bytes in a socket's name


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a second start says to the first."""

    invite: str = ""


class OnlyOne(QObject):
    """`called` carries what a second start said. The lock dies with the process that holds it."""

    called = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = _name(folder)
        self._lock = QLockFile(str(folder / "window.lock"))
        self._lock.setStaleLockTime(0)  # however long it is held: only the end of its process frees it
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._answer)

    def claim(self) -> bool:
        """Whether this is the first window of the home; from now on it is called when another one starts.

        Where the folder cannot be written in, nothing can be claimed, and the engine says what is wrong with it.
        """
        if not self._lock.tryLock(0):
            return self._lock.error() != QLockFile.LockError.LockFailedError
        QLocalServer.removeServer(self._name)  # of a window that was killed: the lock is ours, so nobody listens there
        self._server.listen(self._name)
        return True

    def call(self, invite: str = "") -> bool:
        """Raise the first window; False when it does not answer."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(PATIENCE_MS):
            return False
        socket.write(msgspec.json.encode(Call(invite=invite)) + b"\n")
        heard = socket.waitForBytesWritten(PATIENCE_MS) and socket.waitForReadyRead(PATIENCE_MS)
        socket.abort()
        return heard

    def release(self) -> None:
        self._server.close()
        self._lock.unlock()

    def _answer(self) -> None:
        while socket := self._server.nextPendingConnection():
            socket.readyRead.connect(_listener(self, socket))
            socket.disconnected.connect(socket.deleteLater)


class _Listener:
    """Hears one caller out; what is too long or of another form is hung up on."""

    def __init__(self, one: OnlyOne, socket: QLocalSocket) -> None:
        self._one, self._socket, self._heard = one, socket, b""

    def __call__(self) -> None:
        self._heard += bytes(self._socket.readAll().data())
        if b"\n" not in self._heard:
            if len(self._heard) > MOST_BYTES:
                self._socket.abort()
            return
        try:
            said = msgspec.json.decode(self._heard[:MOST_BYTES], type=Call)
        except UNREADABLE:  # no window of ours says such things
            self._socket.abort()
            return
        self._heard = b""
        self._socket.write(b"\n")
        self._one.called.emit(said.invite)


def _listener(one: OnlyOne, socket: QLocalSocket) -> _Listener:
    return _Listener(one, socket)


def _name(folder: Path) -> str:
    """In the home's private folder of sockets where that is short enough; else, and on Windows, a name made from it."""
    path = folder / "control" / "window.sock"
    if os.name != "nt" and len(os.fsencode(path)) <= LONGEST_NAME and path.parent.is_dir():
        return str(path)
    return "waggle-window-" + hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
