"""The menu of what to compare with: earlier runs on this computer, drawn beside the present one, and others' models."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from waggle.gui.charts.plotted.run_curves import MOST, run_name
from waggle.gui.i18n.formatting import plural, tr
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import menu_button
from waggle.protocol.events import TrainingRun

Key = tuple[str, bool]  # what a run is known by: its model, and whether that is the starter


class RunChoice(QObject):
    """`opened`: the menu opens, so the runs have to be asked for. `changed`: other runs are chosen, at most MOST.

    `models_wanted`: the person asked for the models of other computers.
    """

    opened, changed, models_wanted = Signal(), Signal(), Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.button = menu_button(theme, tr("Compare"))
        self._menu = QMenu(self.button)
        self._menu.aboutToShow.connect(self.opened)
        self._menu.setToolTipsVisible(True)
        self.button.setMenu(self._menu)
        self._runs: tuple[TrainingRun, ...] | None = ()
        self._actions: list[QAction] = []  # of the runs
        self._by_rounds = True
        self._chosen: list[Key] = []
        self.show_runs(None)

    @property
    def chosen(self) -> list[TrainingRun]:
        """The chosen runs, in the order in which they were chosen."""
        known = {_key(run): run for run in self._runs or ()}
        return [known[key] for key in self._chosen if key in known]

    def take_over(self, before: "RunChoice") -> None:
        self._chosen = list(before._chosen)
        self.show_runs(before._runs)

    def allow(self, *, by_rounds: bool) -> None:
        """Runs are compared by rounds: their times mean nothing beside each other."""
        self._by_rounds = by_rounds
        for action in self._actions:
            action.setEnabled(by_rounds)
            action.setToolTip("" if by_rounds else tr("Runs are compared by rounds."))

    def show_runs(self, runs: Sequence[TrainingRun] | None) -> None:
        """Fill the menu; None: they were not read yet."""
        runs = None if runs is None else tuple(runs)
        if runs == self._runs:
            return
        self._runs = runs
        self._menu.clear()
        self._actions = []
        if not runs:
            words = tr("Looking for earlier runs.") if runs is None else tr("No other model has scores on this computer.")
            self._menu.addAction(words).setEnabled(False)
        for run in runs or ():
            words = f"{run_name(run)}, {plural(run.rounds, '%n round', '%n rounds')}".replace("&", "&&")
            action = self._menu.addAction(words)
            action.setCheckable(True)
            action.setChecked(_key(run) in self._chosen)
            action.toggled.connect(partial(self._choose, _key(run)))
            self._actions.append(action)
        self.allow(by_rounds=self._by_rounds)
        self._menu.addSeparator()
        self._menu.addAction(tr("Models of other computers"), self.models_wanted.emit)
        self.changed.emit()

    def _choose(self, key: Key, chosen: bool) -> None:
        """The one that was chosen first goes, where there are too many to be told apart."""
        if chosen == (key in self._chosen):
            return
        if chosen:
            self._chosen = [*self._chosen, key]
            dropped = self._chosen[:-MOST]
            self._chosen = self._chosen[-MOST:]
            for action, run in zip(self._actions, self._runs or (), strict=True):
                if _key(run) in dropped:
                    action.setChecked(False)
        else:
            self._chosen.remove(key)
        self.changed.emit()


def _key(run: TrainingRun) -> Key:
    return run.model, run.is_starter
