"""An estimate of the energy that contributing uses, for the engine's daily budget and the window.

energy = time contributed x watts;  watts = your own figure, else busy cores x 6 W, or 120 W for a graphics processor
"""

from waggle.core.message import Figure, Message, counted
from waggle.core.settings import ComputerSettings

CORE_WATTS = 6.0  # of one busy core; a rough mean of desktops and laptops
GPU_WATTS, MAC_WATTS = 120.0, 20.0  # of a graphics card, and of a Mac's GPU
JOULES_PER_KWH = 3.6e6


def watts(computer: ComputerSettings, threads: int, device: str) -> float:
    """The power that contributing takes on top of the computer's own."""
    if computer.watts:
        return computer.watts
    if device == "cpu":
        return max(1, threads) * CORE_WATTS * computer.cpu_percent / 100
    return (MAC_WATTS if device == "metal" else GPU_WATTS) * computer.gpu_percent / 100


def kwh(seconds: float, power: float) -> float:
    return seconds * power / JOULES_PER_KWH


def formula(computer: ComputerSettings, threads: int, device: str) -> Message:
    """How `watts` calculates, in words."""
    if computer.watts:
        return Message("as you set it")
    if device != "cpu":
        whole = MAC_WATTS if device == "metal" else GPU_WATTS
        return Message("%1 W for the graphics processor, at %2% of the time", Figure(whole), computer.gpu_percent)
    busy = counted(max(1, threads), "%n core of %1 W", "%n cores of %1 W each", Figure(CORE_WATTS))
    return busy if computer.cpu_percent == 100 else Message("%1, at %2% of the time", busy, computer.cpu_percent)
