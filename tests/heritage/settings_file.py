"""A settings file in which a person has chosen every setting there is, each other than usual."""

from pathlib import Path

from waggle.core import settings
from waggle.core.settings import Settings, Value, value_of

CHOSEN: dict[str, Value] = {
    "swarm.solo": True, "swarm.seeds": ("/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWEgvd5bMHRHbb7DZDqQx8xF4CJN4gL5j1xHgCX3MZYwvk",),
    "swarm.host": "127.0.0.1", "swarm.port": 4001, "swarm.lan": True, "swarm.upnp": True, "swarm.through": "relay",
    "swarm.gateways": ("wss://swarm.example.org/gateway",), "swarm.light": True, "swarm.leaderboard": True,
    "swarm.my_answers": "yes", "swarm.charter": "0f" * 32, "web.host": "0.0.0.0", "web.port": 8080, "web.gateway": True,
    "model.name": "Qwen/Qwen2.5-0.5B-Instruct@main", "model.training": "lean", "model.precision": "bfloat16",
    "learning.questions": 12, "learning.local": 6, "learning.external": 5, "learning.group_size": 6, "learning.rule": "dr_grpo",
    "learning.specialties": ("bf", "basic_arithmetic"), "learning.max_new_tokens": 48, "learning.temperature": 0.9,
    "learning.top_p": 0.95, "learning.learning_rate": 0.0002, "learning.warmup_steps": 4, "learning.held_out_every": 30,
    "learning.held_out_questions": 20, "when.idle_minutes": 5, "when.only_on_power": False,
    "when.week": ("######..................",) * 5 + ("#" * 24,) * 2, "when.not_while": ("Stellarium", "ÜberSpiel.exe"),
    "when.not_full_screen": False, "when.not_metered": False, "when.below_celsius": 75, "when.kwh_a_day": 0.5,
    "computer.threads": 3, "computer.device": "cpu", "computer.priority": "low", "computer.cpu_percent": 60,
    "computer.gpu_percent": 40, "computer.watts": 55.5, "computer.price_kwh": 0.31, "computer.memory_gb": 6.0,
    "computer.traffic_kb": 500, "computer.disk_gb": 8.5, "window.welcomed": True, "window.theme": "high_contrast",
    "window.language": "de", "window.text_percent": 125, "window.less_motion": "on", "window.close_to_tray": False,
    "window.notify_problems": False, "window.notify_discoveries": False, "window.read_out": True,
}  # fmt: skip
EITHER = {"model.folder"}  # or model.name


def keys() -> set[str]:
    """Every setting there is, as `section.name`."""
    sections = Settings.__struct_fields__
    return {f"{section}.{name}" for section in sections for name in getattr(Settings(), section).__struct_fields__}


def write(path: Path) -> None:
    """As the window and the engine write it. Raises AssertionError where this page lacks a setting."""
    assert keys() - EITHER == CHOSEN.keys()
    usual = [key for key, value in CHOSEN.items() if value_of(Settings(), key) == value]
    assert not usual, usual
    settings.change(path, CHOSEN)
