"""`waggle status` in words: who this is, and whose times it tells."""

import time

from msgspec.structs import replace

from protocol.text.test_status_text import READY
from waggle.cli.control.status import describe, explain
from waggle.protocol.schedule import ScheduleDecision
from waggle.protocol.state import State

NOW = 1_795_000_000.0


def test_this_node_is_called_as_its_members_call_it():
    called = State(ready=replace(READY, name="Brisk Otter", member_name="Kim"))
    assert any(line.startswith("Kim · ") for line in describe(called, NOW).splitlines())
    assert any(
        line.startswith("Brisk Otter · ") for line in describe(State(ready=replace(READY, name="Brisk Otter")), NOW).splitlines()
    )


def test_an_engine_in_another_zone_tells_its_times_and_that_is_said():
    here = time.localtime(NOW).tm_gmtoff
    there = State(at=NOW, decision=ScheduleDecision(standing="contributing", utc_offset=here + 5 * 3600))
    says = f"Times are those where the engine runs: it is {time.strftime('%H:%M', time.gmtime(NOW + here + 5 * 3600))} there."
    assert says in describe(there, NOW).splitlines()
    assert says in explain(there, NOW).splitlines()
    same = State(at=NOW, decision=ScheduleDecision(standing="contributing", utc_offset=here))
    assert "where the engine runs" not in describe(same, NOW)
