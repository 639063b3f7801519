"""Windows: access for this user alone. File modes say that on every other system, and mean nothing there.

A user's profile is closed to others from the start. A home, or the file of an invite, may lie outside of it, on another disk for
example, where a new file can be read by everybody who uses the computer.
"""

import ctypes
import os
from pathlib import Path

SDDL_REVISION, TOKEN_QUERY, TOKEN_USER = 1, 0x0008, 1
FILE_OBJECT = 1  # SE_FILE_OBJECT
DACL, PROTECTED = 0x4, 0x80000000  # the access list, and none of the folder's above
ENTRY = "(A;{inherit};FA;;;{who})"  # allow all access
SYSTEM, ADMINISTRATORS = "SY", "BA"  # backups and virus scanners; both could take access anyway


def restrict(path: Path) -> bool:
    """Let only this user and the system use a file, or a folder with all that is in it and will be.

    False if the list cannot be set: the disk has none (FAT), or this system is not Windows, where modes do it.
    """
    if os.name != "nt" or _is_in_profile(path):
        return False
    security = ctypes.WinDLL("advapi32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    try:
        user = _user(security)
        # What is in a folder already does not take over its list; what is new does.
        results = {_set(security, each, user) for each in (path, *(path.rglob("*") if path.is_dir() else ()))}
    except OSError:
        return False
    return False not in results


def _set(security: ctypes.CDLL, path: Path, user: str) -> bool:
    descriptor, text = ctypes.c_void_p(), ctypes.c_wchar_p(_access_of(user, folder=path.is_dir()))
    if not security.ConvertStringSecurityDescriptorToSecurityDescriptorW(text, SDDL_REVISION, ctypes.byref(descriptor), None):
        return False
    try:
        # not SetNamedSecurityInfo, which Wine lets take over the list of the folder above
        return bool(security.SetFileSecurityW(ctypes.c_wchar_p(str(path)), ctypes.c_uint32(DACL | PROTECTED), descriptor))
    finally:
        _free(descriptor)


def access_of(path: Path) -> str:
    """The access list of a file or folder, in Microsoft's notation (SDDL). On Windows only. Raises OSError."""
    security = ctypes.WinDLL("advapi32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    descriptor, text = ctypes.c_void_p(), ctypes.c_wchar_p()
    name = ctypes.c_wchar_p(str(path))
    if error := security.GetNamedSecurityInfoW(name, FILE_OBJECT, DACL, None, None, None, None, ctypes.byref(descriptor)):
        raise OSError(error, "the access list cannot be read", str(path))
    try:
        security.ConvertSecurityDescriptorToStringSecurityDescriptorW(descriptor, SDDL_REVISION, DACL, ctypes.byref(text), None)
        return text.value or ""
    finally:
        _free(descriptor)


def _access_of(user: str, *, folder: bool) -> str:
    """A list that names this user, the system and its administrators, and takes nothing from the folder above."""
    inherit = "OICI" if folder else ""
    return "D:P" + "".join(ENTRY.format(inherit=inherit, who=who) for who in (user, SYSTEM, ADMINISTRATORS))


def _is_in_profile(path: Path) -> bool:
    return path.resolve().is_relative_to(Path.home().resolve())


def _user(security: ctypes.CDLL) -> str:
    """The security identifier of this process's user, as text. Raises OSError."""
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    token, size, text = ctypes.c_void_p(), ctypes.c_uint32(), ctypes.c_wchar_p()
    if not security.OpenProcessToken(ctypes.c_void_p(kernel.GetCurrentProcess()), TOKEN_QUERY, ctypes.byref(token)):
        raise OSError("the user of this process is unknown")
    try:
        security.GetTokenInformation(token, TOKEN_USER, None, 0, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        security.GetTokenInformation(token, TOKEN_USER, buffer, size, ctypes.byref(size))
        identifier = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_void_p))[0]
        if not security.ConvertSidToStringSidW(ctypes.c_void_p(identifier), ctypes.byref(text)):
            raise OSError("the user of this process has no identifier")
        name = text.value or ""
        _free(text)
        return name
    finally:
        kernel.CloseHandle(token)


def _free(pointer: object) -> None:
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.LocalFree.argtypes = (ctypes.c_void_p,)
    kernel.LocalFree(ctypes.cast(pointer, ctypes.c_void_p))  # type: ignore[arg-type]
