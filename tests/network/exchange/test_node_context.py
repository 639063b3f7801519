"""Refusals are counted and logged, and no crowd of names floods the log."""

import logging

import pytest

from waggle.network.exchange import node_context
from waggle.network.exchange.node_context import PeerAccounts


def test_refusals_of_ever_new_names_are_logged_at_info_only_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, node_context.log.name)
    accounts = PeerAccounts()
    names = [number.to_bytes(38, "big") for number in range(100)]
    for name in names:
        accounts.reject(name, "malformed")
    levels = [record.levelno for record in caplog.records]
    assert levels.count(logging.INFO) == pytest.approx(node_context.LINES_BURST, abs=1)
    assert len(levels) == len(names)
    assert all(accounts.reputations.of(name).rejected == 1 for name in names)
