"""The table of the peers: it scrolls, and sorts by any column."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.content import Content
from textual.widgets import DataTable

from waggle.core.message import plain
from waggle.core.peer_id import with_fingerprint
from waggle.core.text.round_number import round_number
from waggle.protocol.events import PeerInfo
from waggle.protocol.text.peer_text import standing_text

LONGEST_NAME = 16  # cells: the fingerprint behind it is never cut
CONNECTIONS = {"direct": "direct", "relay": "relay", "lan": "network", "gone": "gone"}
MARK = " ▾"  # of the column that rows are sorted by


@dataclass(frozen=True)
class Column:
    """What it says of a peer, what it sorts peers by, and how many cells are for its words: longer ones are cut."""

    title: str
    words: Callable[[PeerInfo], str]
    rank: Callable[[PeerInfo], Any]
    width: int
    is_number: bool = False


def _cut(words: str, longest: int) -> str:
    """Words of at most so many cells."""
    return Content(plain(words)).truncate(longest, ellipsis=True).plain


COLUMNS = (
    Column("peer", lambda peer: with_fingerprint(_cut(peer.name, LONGEST_NAME), peer.id), lambda peer: peer.name.lower(), 27),
    Column(
        "round",
        lambda peer: f"{round_number(peer.round):,}" if peer.received else "-",
        lambda peer: -peer.round,
        7,
        is_number=True,
    ),
    Column("examples", lambda peer: f"{peer.received:,}", lambda peer: -peer.received, 10, is_number=True),
    Column("reward", lambda peer: f"{peer.mean_reward:.2f}", lambda peer: -peer.mean_reward, 8, is_number=True),
    Column("model", lambda peer: peer.model, lambda peer: peer.model.lower(), 16),
    Column("reached", lambda peer: CONNECTIONS[peer.connection], lambda peer: peer.connection, 9),
    Column("what is thought of it", lambda peer: standing_text(peer, time.time()), lambda peer: not peer.trusted, 110),
)
USUAL = 2  # the number of the first order: by what came from a peer


class PeerTable(DataTable[Text]):
    """Whatever the order, peers that are gone come last."""

    DEFAULT_CSS = """
    PeerTable, PeerTable:focus {
        height: 1fr; background: $background; background-tint: $background 0%; scrollbar-size: 0 1;
        & > .datatable--header, & > .datatable--fixed, & > .datatable--header-hover {
            background: $background; color: $foreground; text-style: bold;
        }
        & > .datatable--fixed { text-style: none; }
        & > .datatable--cursor, & > .datatable--fixed-cursor { background: $background; color: $foreground; text-style: none; }
    }
    PeerTable:focus {
        & > .datatable--cursor, & > .datatable--fixed-cursor { text-style: reverse; }
    }
    """

    def __init__(self) -> None:
        super().__init__(cursor_type="row", fixed_columns=1)
        self._order = USUAL
        self._words_by_peer: dict[str, tuple[str, ...]] = {}  # the words of each row, by peer id
        self._peers: dict[str, PeerInfo] = {}

    def on_mount(self) -> None:
        for column in COLUMNS:
            self.add_column(_label(column, MARK), key=column.title, width=column.width)

    def show(self, peers: Iterable[PeerInfo]) -> None:
        """Show these peers. Rows that stay the same are left alone."""
        before, self._peers = self._peers, {peer.id: peer for peer in peers}
        rows = {
            name: self._words_by_peer[name] if before.get(name) == peer and not peer.doubted_until else _words(peer)
            for name, peer in self._peers.items()
        }
        if rows != self._words_by_peer:
            for gone in self._words_by_peer.keys() - rows.keys():
                self.remove_row(gone)
            for name, words in rows.items():
                self._write_row(name, words)
            self._words_by_peer = rows
            self._sort()

    def sort_by(self, number: int) -> None:
        """Sort by the column of this number; past the last one, begin with the first."""
        self._order = number % len(COLUMNS)
        self._sort()

    def sort_by_next(self) -> None:
        self.sort_by(self._order + 1)

    def peer_at(self, name: str | None) -> PeerInfo | None:
        """The peer with this id, if it is still known."""
        return self._peers.get(name or "")

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        self.sort_by(event.column_index)

    def _write_row(self, name: str, words: tuple[str, ...]) -> None:
        style = "dim" if self._peers[name].connection == "gone" else ""
        cells = [_cell(column, text, style) for column, text in zip(COLUMNS, words, strict=True)]
        if name not in self._words_by_peer:
            self.add_row(*cells, key=name)
        elif words != self._words_by_peer[name]:
            for column, cell in zip(COLUMNS, cells, strict=True):
                self.update_cell(name, column.title, cell)

    def _sort(self) -> None:
        """Put the rows in order, and mark the column by which."""
        rank = COLUMNS[self._order].rank
        ordered = sorted(self._peers.values(), key=lambda peer: (peer.connection == "gone", rank(peer), peer.name, peer.id))
        first_words = (self._words_by_peer[peer.id][0] for peer in ordered)  # which end with a part of the id
        places = {words: place for place, words in enumerate(first_words)}
        for number, column in enumerate(self.ordered_columns):
            column.label = _label(COLUMNS[number], MARK if number == self._order else " " * len(MARK))
        self.sort(COLUMNS[0].title, key=lambda cell: places.get(cell.plain, len(places)))


def _words(peer: PeerInfo) -> tuple[str, ...]:
    return tuple(_cut(column.words(peer), column.width) for column in COLUMNS)


def _label(column: Column, mark: str) -> Text:
    return Text(column.title + mark, justify="right" if column.is_number else "left")


def _cell(column: Column, words: str, style: str) -> Text:
    """Rich's text shows a stranger's words as they are; a plain string would be read as markup."""
    return Text(words, style=style, justify="right" if column.is_number else "left", no_wrap=True)
