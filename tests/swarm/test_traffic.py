"""Bytes per second over the last five seconds."""

from waggle.swarm.traffic import Traffic


def test_rates_follow_the_last_five_seconds() -> None:
    now = 0.0
    traffic = Traffic(clock=lambda: now)
    traffic.sent(b"a", 1000)
    now = 3.0
    traffic.received(500)
    assert traffic.rates() == (200.0, 100.0)

    now = 6.0
    assert traffic.rates() == (0.0, 100.0)

    now = 9.0
    assert traffic.rates() == (0.0, 0.0)
