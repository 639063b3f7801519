"""A Windows job object around this process: the kernel bounds its memory and prevents new processes.

See Microsoft's documentation of `SetInformationJobObject`. A process cannot leave a job. Not tested on Windows yet: if the system
refuses a job, `enter` returns False and nothing else changes.
"""

import ctypes
import sys

EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
ACTIVE_PROCESSES, PROCESS_MEMORY = 0x8, 0x100  # JOB_OBJECT_LIMIT_...


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION. A DWORD has 32 bits on every Windows."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),  # reserved
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


def limits(*, memory_bytes: int = 0, alone: bool = False) -> ExtendedLimits:
    """The limits of a job: the memory that a process may commit, and whether the job may have only one process."""
    limit = ExtendedLimits(ProcessMemoryLimit=memory_bytes)
    basic = limit.BasicLimitInformation
    basic.LimitFlags = (PROCESS_MEMORY if memory_bytes else 0) | (ACTIVE_PROCESSES if alone else 0)
    basic.ActiveProcessLimit = int(alone)
    return limit


def enter(restrictions: ExtendedLimits) -> bool:
    """Put this process into a new job, nested in those that it is in; False if the system refuses."""
    if sys.platform != "win32":
        return False
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.SetInformationJobObject.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32)
    kernel.AssignProcessToJobObject.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    job = kernel.CreateJobObjectW(None, None)  # never closed: a job lives as long as its process
    set_ = job and kernel.SetInformationJobObject(job, EXTENDED_LIMITS, ctypes.byref(restrictions), ctypes.sizeof(restrictions))
    return bool(set_ and kernel.AssignProcessToJobObject(job, kernel.GetCurrentProcess()))
