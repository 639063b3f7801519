"""Traffic is held to what a person allows, each way for itself."""

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
    assert traffic.may_receive(5000), "the other way is paid for by itself"
    traffic.limit = None
    assert traffic.may_send(5000)
