"""The chosen peer: what this node thinks of it, why groups of it were refused, and what a person can do about it."""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QFrame

from waggle.core.errors import EngineError
from waggle.gui.charts.painted.swarm_graph_layout import is_faded
from waggle.gui.coroutines import start
from waggle.gui.engine_client.engine_client import EngineClient
from waggle.gui.i18n.formatting import peer_name, tr
from waggle.gui.i18n.placeholders import why_unavailable
from waggle.gui.pages.peers.peer_table import STANDING_CHIPS
from waggle.gui.pages.peers.refusal_words import refusal_sentences
from waggle.gui.state.shortcuts import BLOCK, MUTE, native_text
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button
from waggle.gui.widgets.layout import as_widget, column, row
from waggle.gui.widgets.painted_widgets import Avatar, Chip
from waggle.gui.widgets.text import ElidedLabel, set_tip, text
from waggle.protocol.commands import ChoosePeer, new_id
from waggle.protocol.events import Choice, CommandDone, PeerInfo
from waggle.protocol.state import State
from waggle.protocol.text.peer_text import exchange_text, standing, standing_text

CHOICES: dict[Choice, tuple[str, str, str, str, tuple[str, ...]]] = {  # verb, verb while it is awaited, icon, effect, keys
    "muted": ("Mute", "Muting…", "muted", "Learn nothing from it; it still gets your examples.", (MUTE,)),
    "blocked": ("Block", "Blocking…", "blocked", "Learn nothing from it, and give it nothing.", (BLOCK,)),
    "": ("Allow again", "Allowing…", "undo", "Treat it as if you had never muted or blocked it.", (MUTE, BLOCK)),
}


def available_choices(choice: Choice) -> tuple[Choice, ...]:
    """The choices offered while `choice` holds: to mute or block, or to take that back."""
    return ("",) if choice else ("muted", "blocked")


class PeerDetails(QFrame):
    """Shows one peer, with buttons, a menu and keys for each choice. A choice that was sent rests until the peer changes.

    `choice_sent`: a choice was sent, and its button is disabled now.
    """

    choice_sent = Signal()

    def __init__(self, theme: Theme, client: EngineClient) -> None:
        super().__init__()
        self._client = client
        self.setProperty("kind", "well")
        self.setAccessibleName(tr("The chosen peer"))
        self._peer: PeerInfo | None = None
        self._pending: dict[str, Choice] = {}  # by peer: choices whose effect is not in the State yet
        self._why_not = ""
        self._replay = False
        self._avatar, self._name = Avatar(theme, 28), ElidedLabel(theme, role="heading")
        self._sign, self._hindrance = Chip(theme), ElidedLabel(theme, role="caption", tone="text_faint")
        self._says = text(theme, "", "small", "soft", wrap=True)
        self._refusals = text(theme, "", "small", "faint", wrap=True)
        self._refusals.hide()
        self._head = as_widget(row(self._name, self._sign, (self._hindrance, 1), gap=10))
        self._head.setFixedHeight(max(theme.size["chip"], self._name.sizeHint().height()))
        self._buttons: dict[Choice, Button] = {}
        self._acts: dict[Choice, QAction] = {}
        for choice, (verb, _, icon, _, keys) in CHOICES.items():
            self._buttons[choice] = button = Button(theme, tr(verb), icon=icon, small=True)
            self._acts[choice] = act = self._action(tr(verb), *keys)
            for asking in (button.clicked, act.triggered):
                asking.connect(self._asker(choice))
        self._copy = self._action(tr("Copy peer id"), QKeySequence(QKeySequence.StandardKey.Copy).toString())
        self._copy.triggered.connect(self._copy_id)
        self.addActions(self.menu())
        self._meaning = text(theme, tr("Block: it gets nothing from you either."), "caption", "faint")
        words = column(None, self._head, self._says, self._refusals, None, gap=2)
        self.setLayout(
            row(
                (row(self._avatar, (words, 1), gap=6), 1),
                8,
                column(None, row(None, *self._buttons.values()), self._meaning, None, gap=4),
                margins=(12, 8, 12, 8),
            )
        )
        self.setMinimumHeight(60)
        self.hide()
        self._show()

    def menu(self) -> list[QAction]:
        """The actions for the context menu of a table row."""
        return [*self._acts.values(), self._copy]

    def show_peer(self, peer: PeerInfo | None, state: State, now: float) -> None:
        """Show this peer at unix time `now`; hidden if it is None."""
        self.setVisible(peer is not None)
        self._why_not = tr("A recorded run cannot be changed.") if self._replay else why_unavailable(state)
        self._pending = {known: choice for known, choice in self._pending.items() if not _is_confirmed(state, known, choice)}
        self._peer = peer
        if peer is not None:
            icon, word, tone = STANDING_CHIPS[standing(peer, now)]
            self._avatar.show_identity(peer.id, mine=False, gone=is_faded(peer))
            self._name.say(peer_name(peer.name, peer.id))
            self._sign.say(tr(word), tone, icon)
            self._sign.setVisible(bool(icon))
            is_trusted = standing(peer, now) == "trusted"  # which the sign says
            self._says.setText(tr(exchange_text(peer) if is_trusted else standing_text(peer, now)))
        refusals = "" if peer is None else refusal_sentences(state.refusals.get(peer.id, {}))
        self._refusals.setText(refusals)
        self._refusals.setVisible(bool(refusals))
        self._show()

    def show_replay(self) -> None:
        """Mark as a replay: there is no engine to command."""
        self._replay = True

    def _show(self) -> None:
        peer, why_not = self._peer, self._why_not
        pending_choice = self._pending.get(peer.id) if peer else None
        offered = available_choices(peer.choice) if peer else ("muted", "blocked")
        self._hindrance.say(why_not)
        self._meaning.setVisible(len(offered) > 1)
        for choice, (verb, meanwhile, icon, does, keys) in CHOICES.items():
            button, act = self._buttons[choice], self._acts[choice]
            button.say(tr(meanwhile if pending_choice == choice else verb), icon)
            button.setAccessibleDescription(why_not or tr(does))
            set_tip(button, why_not or f"{tr(does)} ({native_text(keys[0])})")
            button.setVisible(peer is not None and choice in offered)
            act.setVisible(choice in offered)
            possible = peer is not None and not why_not and pending_choice is None
            button.setEnabled(possible)
            act.setEnabled(possible)
        self._copy.setEnabled(peer is not None)

    def _ask(self, choice: Choice) -> None:
        if self._peer is None:
            return
        self._pending[self._peer.id] = choice
        answer = self._client.command(ChoosePeer(id=new_id(), peer=self._peer.id, choice=choice))
        start(self, self._offer_if_refused(self._peer.id, answer))
        self.choice_sent.emit()
        self._show()

    async def _offer_if_refused(self, peer: str, answer: Awaitable[CommandDone]) -> None:
        try:
            await answer
        except EngineError as error:
            self._pending.pop(peer, None)
            self._show()
            self._client.report(error)

    def _asker(self, choice: Choice) -> Callable[[], None]:
        return lambda: self._ask(choice)

    def _action(self, words: str, *keys: str) -> QAction:
        action = QAction(words, self)
        action.setShortcuts([QKeySequence(key) for key in keys])
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.setShortcutVisibleInContextMenu(True)
        action.setAutoRepeat(False)  # the same key mutes and takes it back
        return action

    def _copy_id(self) -> None:
        if self._peer is not None:
            QGuiApplication.clipboard().setText(self._peer.id)


def _is_confirmed(state: State, peer: str, choice: Choice) -> bool:
    return peer not in state.peers or state.peers[peer].choice == choice
