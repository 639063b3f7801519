"""A minimal system tray for a virtual screen: `python tray_host.py X Y` shows one icon of 32 pixels there."""

import ctypes
import sys

CLIENT_MESSAGE, STRUCTURE, SUBSTRUCTURE = 33, 1 << 17, 1 << 19
SIDE = 32


class Message(ctypes.Structure):
    """An XClientMessageEvent, padded to the size of every other event."""

    _fields_ = (
        ("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("sent", ctypes.c_int), ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong), ("kind", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 5),
        ("room", ctypes.c_long * 24),
    )  # fmt: skip


def main(x: int, y: int) -> None:
    """Own the tray of the screen and embed each icon that asks (freedesktop's System Tray Protocol); ends with its screen."""
    lib = ctypes.CDLL("libX11.so.6")
    for function in (lib.XOpenDisplay, lib.XDefaultRootWindow, lib.XCreateSimpleWindow, lib.XInternAtom):
        function.restype = ctypes.c_ulong
    display = ctypes.c_void_p(lib.XOpenDisplay(None))
    root = ctypes.c_ulong(lib.XDefaultRootWindow(display))
    white = ctypes.c_ulong(0xFFFFFF)
    host = ctypes.c_ulong(lib.XCreateSimpleWindow(display, root, x, y, SIDE, SIDE, 0, white, white))
    tray, manager, opcode = (
        ctypes.c_ulong(lib.XInternAtom(display, name, 0))
        for name in (b"_NET_SYSTEM_TRAY_S0", b"MANAGER", b"_NET_SYSTEM_TRAY_OPCODE")
    )
    lib.XMapRaised(display, host)
    lib.XSetSelectionOwner(display, tray, host, ctypes.c_ulong(0))
    announcement = Message(type=CLIENT_MESSAGE, window=root.value, kind=manager.value, format=32)
    announcement.data[:3] = (0, tray.value, host.value)
    lib.XSendEvent(display, root, 0, ctypes.c_long(STRUCTURE), ctypes.byref(announcement))
    lib.XSync(display, 0)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    event = Message()
    while True:
        lib.XNextEvent(display, ctypes.byref(event))
        if event.type == CLIENT_MESSAGE and event.kind == opcode.value and event.data[1] == 0:
            icon = ctypes.c_ulong(event.data[2])
            lib.XReparentWindow(display, icon, host, 0, 0)
            lib.XResizeWindow(display, icon, SIDE, SIDE)
            lib.XMapRaised(display, icon)
            lib.XRaiseWindow(display, host)
            lib.XFlush(display)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
