"""A Windows job object around this process: the kernel bounds its memory, prevents new processes, or ends them with this one.

See Microsoft's documentation of `SetInformationJobObject`. A process cannot leave a job. Not tested on Windows yet: if the system
refuses a job, `enter` returns False and nothing else changes.
"""

import ctypes
import sys

EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
ACTIVE_PROCESSES, PROCESS_MEMORY, KILL_ON_CLOSE = 0x8, 0x100, 0x2000  # JOB_OBJECT_LIMIT_...


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


def end_children_with_this_process() -> bool:
    """On Windows, have the kernel end what this process starts when it ends, however that is; False if the system refuses.

    On other systems children notice that their pipe has closed, or are told by the kernel. Do not call it in a process that
    starts one which is to outlive it, as the window starts an engine.
    """
    return enter(limits(kill_on_close=True))


def limits(*, memory_bytes: int = 0, alone: bool = False, kill_on_close: bool = False) -> ExtendedLimits:
    """The limits of a job: the memory that a process may commit, whether the job may have only one process, and whether all end
    when the process ends that made the job.
    """
    limit = ExtendedLimits(ProcessMemoryLimit=memory_bytes)
    basic = limit.BasicLimitInformation
    flags = ((PROCESS_MEMORY, memory_bytes), (ACTIVE_PROCESSES, alone), (KILL_ON_CLOSE, kill_on_close))
    basic.LimitFlags = sum(flag for flag, is_set in flags if is_set)
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
