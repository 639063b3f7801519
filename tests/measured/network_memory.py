"""What strangers can make of names, and of a seed's memory from Python's side; a part of network.py."""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory_siege import ATTACKS, MIB, besieged_seed
from waggle.core.peer_id import BASE58, FINGERPRINT
from waggle.core.system.process_memory import resident_bytes
from waggle.network.identity.friendly_names import ADJECTIVES, CREATURES

SOURCE = Path(__file__).with_suffix("") / "grind.c"
SECONDS, ATTACK_S, CHECKED_DIGITS = 5.0, 60.0, 2
P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def name_grind_hours(cores: int = 2) -> dict[str, float]:
    """Expected hours until `cores` processor cores have a key with another peer's two words and fingerprint.

    An attacker in C tries keys without any hash: the fingerprint is part of the key, and the words are compared only if it fits.
    Seconds are of processor time, so that other programs do not slow the attacker down.
    """
    start = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "grind"
        subprocess.check_call(["cc", "-O3", "-march=native", "-o", program, SOURCE])
        _require_right_keys(program, start)
        tries = cores * _grind(program, SECONDS, FINGERPRINT, start)[0]
    names = len(ADJECTIVES) * len(CREATURES) * len(BASE58) ** FINGERPRINT
    return {
        "name_grind_hours": round(names / (tries / SECONDS) / 3600),
        "name_grind_tries_per_second": round(tries / SECONDS),
        "two_words_grind_seconds": round(len(ADJECTIVES) * len(CREATURES) / (tries / SECONDS), 4),
    }


def _grind(program: Path, seconds: float, digits: int, start: bytes) -> tuple[int, int, bytes]:
    base, point = _decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little")), _decoded(start)
    numbers = (*base, 2 * D * base[0] * base[1] % P, *point)
    words = [str(seconds), str(digits), *(number.to_bytes(32, "little").hex() for number in numbers)]
    tries, matches, key = subprocess.check_output([program, *words], text=True).split()
    return int(tries), int(matches), bytes.fromhex(key)


def _require_right_keys(program: Path, start: bytes) -> None:
    """Exit unless the grinder's 2048th key is right, and it matches as often as chance does."""
    tries, matches, key = _grind(program, 2.0, CHECKED_DIGITS, start)
    base, point = _decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little")), _decoded(start)
    for _ in range(2047):
        point = _sum(point, base)
    expected = tries / len(BASE58) ** CHECKED_DIGITS
    if key != _encoded(point) or not 0.8 < matches / expected < 1.25:
        sys.exit("the grinder computes wrong keys")


def _decoded(key: bytes) -> Point:
    number = int.from_bytes(key, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    return (x if x & 1 == sign else P - x), y


def _encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def _sum(first: Point, second: Point) -> Point:
    (a, b), (c, e) = first, second
    product = D * a * c * b * e % P
    return (a * e + b * c) * pow(1 + product, -1, P) % P, (b * e + a * c) * pow(1 - product, -1, P) % P


def growth_mib(name: str) -> tuple[float, float]:
    """MiB that a real seed's Python process grows by under an attack, and what is left of it two seconds afterwards."""
    return asyncio.run(_growth_mib(name))


async def _growth_mib(name: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with besieged_seed(Path(folder)) as siege:
            before = resident_bytes(siege.pid)
            growth = await siege.growth(ATTACKS[name], ATTACK_S)
            await asyncio.sleep(2.0)
            return round(growth, 1), round((resident_bytes(siege.pid) - before) / MIB, 1)
