"""Reports and logs that a person sends name nobody, and keep everything else."""

import platform
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from waggle.core.text.redaction import redact, without_names

PEER = "12D3KooWF2YgxuQMZ6KgAhjag8CSYehxGyyAapPi4tHGbJfSvfg1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 192.168.1.20:4001", "at …:4001"),
        (f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}", "/ip4/…/tcp/4001/p2p/12D3KooW…"),
        ("/dns4/anna.dyndns.org/tcp/443", "/dns4/…/tcp/443"),
        ("/ip6/2001:db8::1/tcp/1", "/ip6/…/tcp/1"),
        ("from fe80::1%eth0, 2001:db8::1 and 2003:e1:7f1a::5.", "from …:…, …:… and …:…."),
        ("Connection to 2001:db8::5: refused", "Connection to …:…: refused"),
        ("host:2001:db8::5, seed:2001:db8:1:2:3:4:5:6", "host:…:…, seed:…:…"),
        ("2001:db8:1:2:3:4:5:6:4001", "…:…"),
        ("[2001:db8::1]:4001", "[…:…]:4001"),
        ("::ffff:192.0.2.1 called", "::ffff:… called"),
        ("wss://anna.dyndns.org/gateway#12D3KooW is away", "wss://… is away"),
        ("ws://10.0.0.7:8080", "ws://…"),
        ("https://huggingface.co/api/models/owner/x", "https://huggingface.co/api/models/owner/x"),
        ("write to anna.b@example.org now", "write to someone@… now"),
        ("anna@nas-kiel: Permission denied (publickey).", "someone@…: Permission denied (publickey)."),
        ("ssh: connect to host nas-kiel port 22: Connection refused", "ssh: connect to host … port 22: Connection refused"),
        ("ssh: Could not resolve hostname nas-kiel: Name", "ssh: Could not resolve hostname …: Name"),
        ("Connection to nas-kiel closed by remote host.", "Connection to … closed by remote host."),
        ("/home/anna/x and /media/anna/stick", "/home/…/x and /media/…/stick"),
        (r"C:\Users\Anna\x", r"C:\Users\…\x"),
        (r"D:\Users\Anna Berg\x y", r"D:\Users\…\x y"),
        (str(OSError(13, "No", r"C:\Users\Anna Berg\x")), str(OSError(13, "No", r"C:\Users\…\x"))),
        (r"C:\Users\O'Brien Anna\x", r"C:\Users\…\x"),
        (r"C:/Users/Anna\x.bin: gone", r"C:/Users/…\x.bin: gone"),
        (repr("/home/anna\nTraceback (most"), repr("/home/…\nTraceback (most")),
        (repr(r"C:\Users\Anna Berg"), repr(r"C:\Users\…")),
        (r"C:\Users\Anna is full, D:\ is not", r"C:\Users\… is full, D:\ is not"),
        ("waggle://join?charter=1#key=abc-DEF_123", "waggle:…"),
        ("hf_abcdefghijklmnop", "hf_..."),
        (f"on {platform.node()}", "on COMPUTER"),
        ("/data/waggle/x, /data/waggle2 and /people/me/y", "HOME/x, /data/waggle2 and ~/y"),
    ],
)
def test_who_and_where_is_left_out(text, expected):
    assert redact(text, PurePosixPath("/data/waggle"), PurePosixPath("/people/me")) == expected


def test_a_folder_of_windows_is_left_out_as_it_is_and_as_an_error_names_it():
    home, person = PureWindowsPath(r"E:\Waggle Anna"), PureWindowsPath(r"D:\Anna Berg")
    text = rf"{home}\x, {str(home / 'x')!r}, {person}\y and {str(person / 'y')!r}"
    assert redact(text, home, person) == r"HOME\x, 'HOME\\x', ~\y and '~\\y'"


def test_a_swarm_that_is_called_as_the_last_part_of_a_folder_hides_no_folder():
    text = "/data/Schmidt/share/waggle can be written, for waggle"
    home = PurePosixPath("/data/Schmidt/share/waggle")
    assert redact(text, home, names={"waggle": "a swarm"}) == "HOME can be written, for a swarm"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-22 06:25:52,123 WARNING waggle.x: late",
        "round 12:30",
        "torch::jit::load, aten::add: no",
        "2026-11-22T06:25:52: late",
        "[::1]:80",
        "Python 3.11.7, torch 2.13.0",
        "a: b",
        "name@main is no model of the hub",
        "::",
    ],
)
def test_times_versions_and_names_of_code_stay(text):
    assert redact(text, person=Path("/")) == text


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"Anna": "A", "Anna (home)": "B", "": "C"}, "A's swarm, B, Annabel, nas-kiel"),
        ({"nas-kiel": r"\1", "kiel": "K"}, r"Anna's swarm, Anna (home), Annabel, \1"),
        ({}, "Anna's swarm, Anna (home), Annabel, nas-kiel"),
    ],
)
def test_names_are_left_out_where_they_stand_by_themselves(names, expected):
    assert without_names("Anna's swarm, Anna (home), Annabel, nas-kiel", names) == expected
