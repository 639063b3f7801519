"""Keeps the system awake while it contributes, where the person chose that: no sleep for want of input. The screen may go dark.

Linux: locks of logind and of the desktop over D-Bus. macOS: `caffeinate`. Windows: the execution state of a thread. Each ends
with this process, however that ends. A closed lid and a person's own wish to sleep stay as they are.
"""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Literal

from waggle.core.settings import ComputerSettings
from waggle.core.system.os_faults import fault_of
from waggle.protocol.events import Phase

log = logging.getLogger(__name__)

WHY = "Waggle is training"
RETRY_CALLS = 150  # of `follow` after a failure: five minutes
BUS_SECONDS = 5.0
CONTINUOUS, SYSTEM_REQUIRED = 0x80000000, 0x00000001  # of SetThreadExecutionState
SUSPEND = 4  # a flag of org.gnome.SessionManager.Inhibit
Release = Callable[[], object]


class CannotKeepAwakeError(Exception):
    """The system offers nothing that keeps it awake, or refuses."""


def wants_awake(computer: ComputerSettings, phase: Phase, on_power: bool | None, *, is_loading: bool = False) -> bool:
    """Whether the system is to stay awake now. `on_power`: None without a battery. `is_loading`: a model is downloaded."""
    works = phase in ("contributing", "finishing") or (phase == "preparing" and is_loading)
    return works and (computer.keep_awake == "always" or (computer.keep_awake == "on_power" and on_power is not False))


class KeepAwake:
    """Belongs to the engine's loop. The system is asked in a thread of its own, as Windows ties the state to a thread."""

    def __init__(self, acquire: Callable[[], Release] | None = None) -> None:
        self._acquire = acquire or acquire_here
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="awake")
        self._release: Release | None = None
        self._rest = 0  # calls to let pass after a failure
        self.trouble = ""  # why the system is not kept awake although it should be

    @property
    def holds(self) -> bool:
        """Whether the system is kept awake now."""
        return self._release is not None

    async def follow(self, keeps: bool) -> None:
        """Keep the system awake from now on, or no longer. Call it every two seconds."""
        if not keeps:
            self.trouble, self._rest = "", 0
        if keeps == self.holds:
            return
        if self._rest > 0:
            self._rest -= 1
            return
        loop = asyncio.get_running_loop()
        if not keeps:
            release, self._release = self._release, None
            await loop.run_in_executor(self._thread, release or (lambda: None))
            return
        try:
            self._release, self.trouble = await loop.run_in_executor(self._thread, self._acquire), ""
        except CannotKeepAwakeError as error:
            self.trouble, self._rest = str(error), RETRY_CALLS
            log.info("the system is not kept awake: %s", error)

    def close(self) -> None:
        """Let the system sleep."""
        release, self._release = self._release, None
        if release is not None:
            self._thread.submit(release).result()
        self._thread.shutdown()


def acquire_here(system: str = sys.platform) -> Release:
    """Keep this system awake; return what ends that. Raises CannotKeepAwakeError."""
    if system == "darwin":
        return acquire_mac()
    if system == "win32":
        return acquire_windows()
    return acquire_linux()


def acquire_mac() -> Release:
    """A child that ends with us, also after a kill: it waits for our process."""
    try:
        child = subprocess.Popen(
            ["/usr/bin/caffeinate", "-i", "-w", str(os.getpid())], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise CannotKeepAwakeError(f"caffeinate: {fault_of(error).reason}") from error

    def release() -> None:
        child.terminate()
        child.wait()

    return release


def acquire_windows(set_state: Callable[[int], int] | None = None) -> Release:
    """Call this, and what it returns, in the same thread."""
    if set_state is None:
        if sys.platform != "win32":
            raise CannotKeepAwakeError("only Windows has that")
        import ctypes

        set_state = ctypes.windll.kernel32.SetThreadExecutionState
    chosen = set_state
    if not chosen(CONTINUOUS | SYSTEM_REQUIRED):
        raise CannotKeepAwakeError("SetThreadExecutionState was refused")
    return lambda: chosen(CONTINUOUS)


def acquire_linux() -> Release:
    """Locks of logind and of the desktop, each where it is there: a desktop asks its own, a server logind's."""
    stack, troubles = ExitStack(), []
    for acquire in (_logind_lock, _gnome_lock, _other_desktops_lock):
        try:
            stack.callback(acquire())
        except CannotKeepAwakeError as error:
            troubles.append(str(error))
    if len(troubles) == 3:
        raise CannotKeepAwakeError(troubles[0])
    return stack.close


def _logind_lock() -> Release:
    """A lock against sleep for want of input. It is a file descriptor, and ends when that is closed."""
    answer, close = _call(
        "SYSTEM", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "Inhibit", "ssss",
        ("idle", "Waggle", WHY, "block"),
    )  # fmt: skip
    close()
    (lock,) = answer
    return lock.close  # type: ignore[no-any-return, attr-defined]


def _gnome_lock() -> Release:
    """A lock of GNOME's session, and of those that follow it. It ends with its connection."""
    return _call(
        "SESSION", "org.gnome.SessionManager", "/org/gnome/SessionManager", "org.gnome.SessionManager", "Inhibit", "susu",
        ("io.waggle.Waggle", 0, WHY, SUSPEND),
    )[1]  # fmt: skip


def _other_desktops_lock() -> Release:
    """A lock of KDE and Xfce. It ends with its connection."""
    name = "org.freedesktop.PowerManagement.Inhibit"
    return _call("SESSION", "org.freedesktop.PowerManagement", "/org/freedesktop/PowerManagement/Inhibit", name, "Inhibit", "ss",
                 ("Waggle", WHY))[1]  # fmt: skip


def _call(
    bus: Literal["SYSTEM", "SESSION"], service: str, path: str, interface: str, method: str, signature: str,
    arguments: tuple[str | int, ...],
) -> tuple[tuple[object, ...], Release]:  # fmt: skip
    """The answer of a service that runs, and what closes the connection. Raises CannotKeepAwakeError."""
    from jeepney import DBusAddress, DBusErrorResponse, HeaderFields, MessageFlag, new_method_call
    from jeepney.io.blocking import open_dbus_connection

    try:
        connection = open_dbus_connection(bus, enable_fds=True)
    except Exception as error:  # no bus, or none for us: the library raises OSError, KeyError and errors of its own
        raise CannotKeepAwakeError(f"no {bus.lower()} bus: {error}") from error
    message = new_method_call(DBusAddress(path, service, interface), method, signature, arguments)
    message.header.flags |= MessageFlag.no_auto_start
    try:
        answer = connection.send_and_get_reply(message, timeout=BUS_SECONDS)
        if answer.header.fields.get(HeaderFields.error_name):
            raise CannotKeepAwakeError(f"{service}: {answer.header.fields[HeaderFields.error_name]}")
        return tuple(answer.body), connection.close
    except CannotKeepAwakeError:
        connection.close()
        raise
    except (OSError, TimeoutError, DBusErrorResponse) as error:
        with suppress(OSError):
            connection.close()
        raise CannotKeepAwakeError(f"{service}: {error}") from error
