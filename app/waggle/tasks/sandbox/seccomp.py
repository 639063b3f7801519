"""A seccomp filter for Linux, which a process installs for itself without root and cannot remove.

It refuses system calls for processes, programs, signals, sockets, shared memory and queues, for the state of the computer, and
for creating, moving, changing or removing files. Opening, reading and writing are bounded by the limits of `hardening.py`. All
system calls that are newer than Linux 5.0 are refused.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Callable

# Numbers on x86_64, and on aarch64 where it has such a call: <asm/unistd.h> and <asm-generic/unistd.h>.
REFUSED = {
    "execve": (59, 221), "execveat": (322, 281), "fork": (57,), "vfork": (58,), "clone": (56, 220), "unshare": (272, 97),
    "setns": (308, 268), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "setrlimit": (160, 164), "prlimit64": (302, 261),
    "socket": (41, 198), "socketpair": (53, 199), "ioctl": (16, 29), "fcntl": (72, 25), "memfd_create": (319, 279),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "unlink": (87,), "unlinkat": (263, 35),
    "rename": (82,), "renameat": (264, 38), "renameat2": (316, 276), "link": (86,), "linkat": (265, 37), "symlink": (88,),
    "symlinkat": (266, 36), "mkdir": (83,), "mkdirat": (258, 34), "rmdir": (84,), "mknod": (133,), "mknodat": (259, 33),
    "chmod": (90,), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92,), "fchown": (93, 55), "lchown": (94,),
    "fchownat": (260, 54), "utime": (132,), "utimes": (235,), "futimesat": (261,), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "mount": (165, 40), "umount2": (166, 39), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Calls for root only: root may run Waggle.
    "init_module": (175, 105), "delete_module": (176, 106), "kexec_load": (246, 104), "reboot": (169, 142), "chroot": (161, 51),
    "pivot_root": (155, 41), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116), "vhangup": (153, 58),
    "iopl": (172,), "ioperm": (173,),
}  # fmt: skip
NEWER = 424  # from here on, calls have the same number on all machines: pidfds, io_uring, clone3, openat2, future ones
MACHINES = {
    "x86_64": (0, 0xC000003E, 317),
    "aarch64": (1, 0xC00000B7, 277),
}  # column of REFUSED, AUDIT_ARCH_*, seccomp(2)
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
STEP_BYTES = 8
NUMBER_AT, ABI_AT = 0, 4  # offsets in struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM
NO_NEW_PRIVILEGES, SET_FILTER, ALL_THREADS = 38, 1, 1


class SockFprog(ctypes.Structure):
    """`struct sock_fprog` of the kernel."""

    _fields_ = (("steps", ctypes.c_ushort), ("program", ctypes.c_char_p))


def prepare() -> Callable[[], bool] | None:
    """A function that installs the filter without opening files and returns whether the kernel accepted it.

    None on other systems, and on machines whose call numbers are not in `REFUSED`.
    """
    machine = os.uname().machine if sys.platform == "linux" and sys.maxsize > 1 << 32 else ""
    if machine not in MACHINES:
        return None
    column, abi, seccomp = MACHINES[machine]
    code = program(abi, [numbers[column] for numbers in REFUSED.values() if len(numbers) > column])
    system = ctypes.CDLL(None)
    system.syscall.restype = ctypes.c_long

    def put_on() -> bool:
        if system.prctl(NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))):
            return False
        filter_program = SockFprog(len(code) // STEP_BYTES, code)
        how = map(ctypes.c_ulong, (SET_FILTER, ALL_THREADS))
        return bool(system.syscall(ctypes.c_long(seccomp), *how, ctypes.byref(filter_program)) == 0)

    return put_on


def program(abi: int, refused: list[int]) -> bytes:
    """The filter as a BPF program: it refuses calls of another ABI, newer calls, and those with the given numbers."""
    first = [(LOAD, ABI_AT), (EQUAL, abi), (LOAD, NUMBER_AT), (AT_LEAST, NEWER)]
    steps = [*first, *((EQUAL, number) for number in refused)]
    code = b""
    for place, (kind, value) in enumerate(steps):
        away = len(steps) - place  # jump from the next step to the last one, which refuses; the one before it allows
        on_true, on_false = (0, away) if value == abi else (0, 0) if kind == LOAD else (away, 0)
        code += struct.pack("=HBBI", kind, on_true, on_false, value)
    return code + struct.pack("=HBBIHBBI", RETURN, 0, 0, ALLOW, RETURN, 0, 0, REFUSE)
