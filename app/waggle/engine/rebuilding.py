"""Rebuilds a history from the record of events, as far as the record goes back: history is a fold of it."""

from pathlib import Path

from waggle.engine.history import History
from waggle.protocol import events, wire
from waggle.protocol.state import Snapshot


def rebuild(history: History, record: Path) -> int:
    """Fold every event of a folder of records, oldest first; how many rounds came back. Raises HistoryError on a full disk."""
    rounds: set[int] = set()
    datasets: dict[str, str] = {}  # what a specialty is called by its title
    with history.at_once():
        for path in sorted(record.glob("*.jsonl")):
            for event in wire.recording(path):
                match event:
                    case events.Ready():
                        datasets |= {one.title: one.dataset for one in event.specialties}
                    case Snapshot():  # a file that goes on where another was full
                        datasets |= {one.title: one.dataset for one in event.state.ready.specialties} if event.state.ready else {}
                        for summary in event.state.rounds:
                            history.keep_round(summary)
                            rounds.add(summary.round)
                        for score in event.state.held_out:
                            history.keep_score(score)
                    case events.RoundCompleted():
                        history.keep_round(event.summary)
                        rounds.add(event.summary.round)
                    case events.HeldOutMeasured():
                        history.keep_score(event.score)
                    case events.AhaHappened() if event.aha.specialty in datasets:
                        history.keep_aha(datasets[event.aha.specialty], event.aha)
                    case _:
                        continue
    return len(rounds)
