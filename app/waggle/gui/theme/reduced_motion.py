"""Whether the system is set to reduced motion. Each platform stores it elsewhere; Qt 6.11 reads none of them."""

import ctypes
import subprocess
import sys
from concurrent.futures import Future
from functools import cache
from threading import Thread

SECONDS = 0.5  # until a desktop without an answer is given up
GET_CLIENT_AREA_ANIMATION = 0x1042  # SPI_GETCLIENTAREAANIMATION
PORTAL = "org.freedesktop.portal.Desktop /org/freedesktop/portal/desktop org.freedesktop.portal.Settings"
NO_MOTION_ANSWERS = {  # GNOME's and KDE's answers for reduced motion
    ("org.gnome.desktop.interface", "enable-animations"): "b false",
    ("org.kde.kdeglobals.KDE", "AnimationDurationFactor"): 's "0"',
}


def is_reduced() -> bool | None:
    """None if the system does not say, or not yet. Read once: a change takes effect at the next start."""
    query = _system_setting()
    return query.result() if query.done() else None


@cache
def _system_setting() -> "Future[bool | None]":
    """Asking a Linux desktop runs two programs and may be slow, so a thread does it."""
    answer: Future[bool | None] = Future()
    match sys.platform:
        case "win32":
            answer.set_result(_on_windows())
        case "darwin":
            answer.set_result(_on_a_mac())
        case _:
            Thread(
                target=lambda: answer.set_result(combine_answers([_portal_setting(*names) for names in NO_MOTION_ANSWERS])),
                daemon=True,
            ).start()
    return answer


def combine_answers(answers: list[str]) -> bool | None:
    """Combine the desktop's answers, such as `v v b false`, in the order of STILL; empty without an answer."""
    verdicts = [
        answer.strip().endswith(words)
        for answer, words in zip(answers, NO_MOTION_ANSWERS.values(), strict=True)
        if answer.strip()
    ]
    return any(verdicts) if verdicts else None


def _portal_setting(*names: str) -> str:
    try:
        command = ["busctl", "--user", "call", *PORTAL.split(), "Read", "ss", *names]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):  # no systemd, or no portal service
        return ""


def _on_windows() -> bool | None:
    if sys.platform != "win32":
        return None
    moves = ctypes.c_int()
    succeeded = ctypes.windll.user32.SystemParametersInfoW(GET_CLIENT_AREA_ANIMATION, 0, ctypes.byref(moves), 0)
    return not moves.value if succeeded else None


def _on_a_mac() -> bool:
    """NSWorkspace's accessibilityDisplayShouldReduceMotion; Qt has loaded AppKit."""
    objc = ctypes.CDLL("/usr/lib/libobjc.A.dylib")
    objc.objc_getClass.restype = objc.sel_registerName.restype = ctypes.c_void_p
    send = {kind: ctypes.CFUNCTYPE(kind, ctypes.c_void_p, ctypes.c_void_p)(("objc_msgSend", objc))
            for kind in (ctypes.c_void_p, ctypes.c_bool)}  # fmt: skip
    shared, reduce = (objc.sel_registerName(name) for name in (b"sharedWorkspace", b"accessibilityDisplayShouldReduceMotion"))
    workspace = send[ctypes.c_void_p](objc.objc_getClass(b"NSWorkspace"), shared)
    return bool(send[ctypes.c_bool](workspace, reduce))
