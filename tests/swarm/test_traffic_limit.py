"""Traffic is held to what a person allows, each way for itself."""

import pytest

from waggle.swarm.traffic import Traffic


def test_in_the_long_run_no_more_goes_out_than_is_allowed_and_single_pieces_may_be_large():
    now = 0.0
    traffic = Traffic(clock=lambda: now)
    assert traffic.may_send(10**9), "without a limit"
    traffic.limit = 1000.0
    sent = 0
    for tenth in range(1000):
        now = tenth / 10
        sent += 5000 * traffic.may_send(5000)
    assert sent == 100 * 1000
    assert traffic.may_receive(), "the other way is paid for by itself"
    traffic.limit = None
    assert traffic.may_send(5000)


def test_what_came_in_is_paid_for_to_the_last_byte_however_many_came_at_once():
    now = 0.0
    traffic = Traffic(clock=lambda: now)
    traffic.pay(10**9)
    traffic.limit = 1000.0
    came = 0
    for tenth in range(1000):
        now = tenth / 10
        if traffic.may_receive() and traffic.may_receive():  # asking costs nothing
            for _ in range(3):
                traffic.pay(5000)
            came += 3 * 5000
    assert came == pytest.approx(100 * 1000, abs=15_000)
