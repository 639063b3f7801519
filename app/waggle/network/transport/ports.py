"""Whether a node can listen on a TCP port of this computer."""

import errno
import socket

from waggle.core.errors import SwarmError
from waggle.core.message import Message
from waggle.core.system.os_faults import fault_of


def require_port(host: str, port: int) -> None:
    """Raise SwarmError if this port cannot be listened on: p2pd, for one, would silently share it with another p2pd."""
    if port == 0:
        return
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections in TIME_WAIT do not count
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        raise _port_error(host, port, error) from error


def _port_error(host: str, port: int, error: OSError) -> SwarmError:
    if error.errno == errno.EADDRINUSE:
        return SwarmError(
            Message("Port %1 is already in use.", port), "Close the other program, or choose another port (0: any free one)."
        )
    return SwarmError(
        Message("%1, port %2, cannot be listened on: %3.", host, port, fault_of(error).reason), "Choose another address or port."
    )


def usable_port(host: str, port: int) -> int:
    """The port, if a node can listen on it; else 0, which stands for any free one."""
    try:
        require_port(host, port)
    except SwarmError:  # known peers and seeds find this node on any port
        return 0
    return port
