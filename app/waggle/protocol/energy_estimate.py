"""An estimate of the energy that contributing uses, for the engine's daily budget and the window.

energy = time contributed x watts;  watts = your own figure, else busy cores x 6 W, or 120 W for a graphics processor
"""

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


def formula(computer: ComputerSettings, threads: int, device: str) -> str:
    """How `watts` calculates, in words."""
    if computer.watts:
        return "as you set it"
    if device != "cpu":
        whole = MAC_WATTS if device == "metal" else GPU_WATTS
        return f"{whole:.0f} W for the graphics processor, at {computer.gpu_percent}% of the time"
    busy = "1 core" if threads == 1 else f"{max(1, threads)} cores"
    share = "" if computer.cpu_percent == 100 else f", at {computer.cpu_percent}% of the time"
    return f"{busy}, {CORE_WATTS:.0f} W each{share}"
