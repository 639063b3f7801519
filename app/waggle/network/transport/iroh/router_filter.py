"""Keeps iroh from searching the router (UPnP), which its binding for Python cannot turn off. Linux only.

A seccomp filter refuses `sendto` with an IPv4 or IPv6 destination: iroh searches with it (SSDP, 239.255.255.250:1900), and sends
QUIC with `sendmsg` and `sendmmsg`. It lets through what asks the kernel about interfaces (netlink addresses are shorter). TCP is
refused too, which a router's description would be read with.
"""

import ctypes
import os
import struct
import sys

MACHINES = {"x86_64": (0xC000003E, 44, 41), "aarch64": (0xC00000B7, 206, 198)}  # AUDIT_ARCH, sendto, socket
AF_INET, AF_INET6, SOCK_STREAM, SOCK_KIND = 2, 10, 1, 0xF
IPV4_BYTES, IPV6_BYTES = 16, 28  # of a sockaddr
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2
EPERM = 1
LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | EPERM


class SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def silence_router() -> bool:
    """Install the filter for this thread and those that it starts; whether the system took it. Call it first."""
    machine = MACHINES.get(os.uname().machine) if sys.platform == "linux" else None
    if machine is None:
        return False
    code = _program(*machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = SockFprog(len(code) // 8, ctypes.addressof(buffer))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not library.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0)


def _program(architecture: int, sendto: int, socket: int) -> bytes:
    """The filter: (operation, jump if true, jump if false, value) for each instruction, see seccomp(2)."""
    number, where, size, family, kind = 0, 4, 16 + 5 * 8, 16, 16 + 8  # offsets in seccomp_data, low halves of arguments
    instructions = [
        (LOAD, 0, 0, where),
        (EQUAL, 0, 12, architecture),  # another one: allowed
        (LOAD, 0, 0, number),
        (EQUAL, 0, 3, sendto),
        (LOAD, 0, 0, size),
        (EQUAL, 9, 0, IPV4_BYTES),  # refused
        (EQUAL, 8, 7, IPV6_BYTES),  # refused, else allowed
        (EQUAL, 0, 6, socket),
        (LOAD, 0, 0, family),
        (EQUAL, 1, 0, AF_INET),
        (EQUAL, 0, 3, AF_INET6),
        (LOAD, 0, 0, kind),
        (AND, 0, 0, SOCK_KIND),
        (EQUAL, 1, 0, SOCK_STREAM),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    return b"".join(struct.pack("<HBBI", *each) for each in instructions)
