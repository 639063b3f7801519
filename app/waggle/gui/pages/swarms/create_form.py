"""The form that creates a swarm: name, specialties, difficulty, the model it is meant for, and whether joining needs a key."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QAbstractItemView, QBoxLayout, QCheckBox, QFrame, QLineEdit, QListView

from waggle.gui.i18n.formatting import later, plural, tr, tr_sentence, visible
from waggle.gui.pages.swarms.swarm_facts import unchecked_mark
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.controls.buttons import Button, SegmentedControl
from waggle.gui.widgets.draft_text import copy_drafts
from waggle.gui.widgets.layout import as_widget, column, frame, row
from waggle.gui.widgets.responsive_row import StretchRow
from waggle.gui.widgets.scroll_anchor import is_in_view
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.commands import CreateSwarm, new_id
from waggle.protocol.events import Difficulty
from waggle.protocol.events_swarms import SpecialtyOffer
from waggle.protocol.state import SPECIALTIES

LEVELS: tuple[Difficulty, ...] = ("easy", "standard", "hard")
NAME, HINT = 60, 80  # characters, as in a charter
TOPICS = (
    later("algorithms"), later("arithmetic"), later("games"), later("geometry"), later("graphs"), later("logic"),
    later("patterns"),
)  # fmt: skip
OFFER = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex


def chosen_levels(offer: SpecialtyOffer, place: int) -> list[Difficulty]:
    """The levels of a specialty for a place of the switch: the closest to one of LEVELS, or behind them all that it has."""
    return list(offer.samples) if place == len(LEVELS) else [closest_level(offer, LEVELS[place])]


def closest_level(offer: SpecialtyOffer, preferred: Difficulty) -> Difficulty:
    """The difficulty of a specialty that is closest to the preferred one; of two, the easier."""
    place = LEVELS.index(preferred)
    return min(offer.samples, key=lambda level: (abs(LEVELS.index(level) - place), LEVELS.index(level)))


class CreateSwarmForm(QFrame):
    """`submitted` carries a CreateSwarm; the form is disabled until the engine answers. `declined`: the person gave up."""

    submitted = Signal(object)
    declined = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._theme = theme
        self._offers: tuple[SpecialtyOffer, ...] = ()
        self._waiting = False
        self._name = self._field(tr("Name of the swarm"), tr("Others see it before they join"), NAME)
        self._hint = self._field(tr("Which model it is meant for"), tr("Any; small ones do best with easy questions"), HINT)
        self._private = QCheckBox(tr("Private: only with your invite"))
        self._private.setFont(theme.font("body"))
        self._private.setAccessibleName(self._private.text())
        self._level = SegmentedControl(theme, (tr("Easy"), tr("Standard"), tr("Hard"), tr("All")), tr("Difficulty"))
        self._level.setToolTip(tr("All: each model asks most at the level where it learns most."))
        self._level.chosen.connect(lambda _index: self._show_level())
        self._filter = self._field(tr("Find a specialty"), tr("Find"), 40)
        self._make_list()
        self._about, self._sample = ElidedLabel(theme, role="label"), text(theme, "", "mono", wrap=True)
        self._unchecked = text(theme, "", "caption", "soft", wrap=True)
        self._sample.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._problem = text(theme, "", "small", "bad", wrap=True)
        self._create = Button(theme, tr("Create"), "primary")
        self._create.clicked.connect(self._ask)
        no = Button(theme, tr("Cancel"))
        no.clicked.connect(self.declined)
        self._count = ElidedLabel(theme, role="small", tone="text_soft")
        self.setLayout(self._new_layout(no))
        self._name.textChanged.connect(self._update_form)
        self._update_form()

    def _new_layout(self, no: Button) -> QBoxLayout:
        theme = self._theme
        left_column = column(
            text(theme, tr("Name"), "label"), self._name, 4, text(theme, tr("Meant for (optional)"), "label"), self._hint, 4,
            text(theme, tr("Difficulty"), "label"), self._level, 8, self._private,
            text(theme, tr("It is joined by its link only, and a link cannot be taken back."), "caption", "faint", wrap=True),
            None, gap=6,
        )  # fmt: skip
        sample_box = frame("well", column(self._about, self._unchecked, (self._sample, 1), gap=4, margins=(12, 9, 12, 10)))
        sample_box.setMinimumHeight(104)
        right = column(row((text(theme, tr("What it asks"), "label"), 1), self._filter), (self._list, 1), sample_box, gap=8)
        foot = row((self._count, 1), no, self._create, gap=8)
        title = text(theme, tr("Create a swarm"), "title")
        asks = StretchRow((as_widget(left_column), 2), (as_widget(right), 3), gap=28)
        return column(title, 4, (asks, 1), self._problem, foot, gap=8, margins=(24, 18, 24, 18))

    def _field(self, name: str, hint: str, longest: int) -> QLineEdit:
        edit = QLineEdit()
        edit.setFont(self._theme.font("body"))
        edit.setAccessibleName(name)
        edit.setPlaceholderText(hint)
        edit.setMaxLength(longest)
        edit.setFixedHeight(self._theme.size["control"])
        return edit

    def _make_list(self) -> None:
        self._model = QStandardItemModel(self)
        self._filtered = QSortFilterProxyModel(self)
        self._filtered.setSourceModel(self._model)
        self._filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._filter.textChanged.connect(self._filtered.setFilterFixedString)
        self._list = QListView()
        self._list.setModel(self._filtered)
        self._list.setFont(self._theme.font("small"))
        self._list.setAccessibleName(tr("What the swarm asks; the space bar chooses"))
        self._list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._list.setUniformItemSizes(True)
        self._list.setMinimumSize(self._theme.px(240), self._theme.px(120))
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.selectionModel().currentChanged.connect(lambda _now, _before: self._show_sample())
        self._model.dataChanged.connect(self._show_ticked_question)

    def show_offers(self, offers: tuple[SpecialtyOffer, ...]) -> None:
        """Fill the list if the offers changed. Specialties with an easy level come first: the starter can learn those."""
        if offers == self._offers:
            return
        self._offers = offers
        self._model.clear()
        for offer in sorted(offers, key=lambda each: ("easy" not in each.samples, tr_sentence(each.title).casefold())):
            item = QStandardItem(self._offer_words(offer))
            item.setCheckable(True)
            item.setData(offer, OFFER)
            self._model.appendRow(item)
        self._list.setCurrentIndex(self._filtered.index(0, 0))
        self._update_form()

    def _offer_words(self, offer: SpecialtyOffer) -> str:
        """A row of the list: title, topic, and whether the chosen levels are unchecked."""
        topic = "" if offer.title.lower() == offer.topic else tr(offer.topic)
        mark = unchecked_mark(chosen_levels(offer, self._level.index), offer.unchecked)
        return "  ·  ".join(filter(None, (tr_sentence(offer.title), topic, mark)))

    def handle_refusal(self, words: str) -> bool:
        """The engine refused: show why and enable the form; returns whether that is visible."""
        self._waiting = False
        self._problem.setText(visible(words))
        self._update_form()
        return is_in_view(self._problem)

    def take_over(self, before: "CreateSwarmForm") -> None:
        """Take over what was filled in, and whether an answer is awaited."""
        self.show_offers(before._offers)
        copy_drafts(self, before)
        self._private.setChecked(before._private.isChecked())
        self._level.choose(before._level.index)
        chosen, current_offer = before._chosen_specialties(), before._list.currentIndex().data(OFFER)
        for item in self._items():
            item.setCheckState(Qt.CheckState.Checked if item.data(OFFER) in chosen else Qt.CheckState.Unchecked)
        for item in self._items():
            if item.data(OFFER) == current_offer:
                self._list.setCurrentIndex(self._filtered.mapFromSource(item.index()))
        self._waiting = before._waiting
        self._problem.setText(before._problem.text())
        self._update_form()

    def begin(self) -> None:
        """Enable the form as it is filled in, waiting for no answer."""
        self._waiting = False
        self._problem.setText("")
        self._update_form()
        self._name.setFocus()

    def reset(self) -> None:
        """Empty the form."""
        self._waiting = False
        self._problem.setText("")
        self._name.clear()
        self._hint.clear()
        self._private.setChecked(False)
        for item in self._items():
            item.setCheckState(Qt.CheckState.Unchecked)

    def _items(self) -> list[QStandardItem]:
        return [self._model.item(i) for i in range(self._model.rowCount())]

    def _chosen_specialties(self) -> list[SpecialtyOffer]:
        return [item.data(OFFER) for item in self._items() if item.checkState() == Qt.CheckState.Checked]

    def _show_ticked_question(self, place: QModelIndex, _last: QModelIndex, roles: list[int]) -> None:
        """Show the question of a specialty when its box is ticked, as the click does not select the row."""
        if Qt.ItemDataRole.CheckStateRole not in roles:
            return
        if self._model.itemFromIndex(place).checkState() == Qt.CheckState.Checked:
            self._list.setCurrentIndex(self._filtered.mapFromSource(place))
        self._update_form()

    def _show_level(self) -> None:
        for item in self._items():
            item.setText(self._offer_words(item.data(OFFER)))
        self._show_sample()

    def _update_form(self) -> None:
        count = len(self._chosen_specialties())
        lacks = self._missing_text(count)
        self._problem.setVisible(bool(self._problem.text()))
        if self._waiting:
            self._count.say(tr("Making its questions; a few seconds."))
        else:
            chosen = plural(count, "%n kind of question chosen", "%n kinds of question chosen") if count else ""
            self._count.say(". ".join(words for words in (chosen, lacks) if words))
        self._create.setEnabled(not lacks and not self._waiting)

    def _missing_text(self, count: int) -> str:
        """What the form still lacks with `count` specialties chosen; empty: nothing."""
        if not count:
            return tr("Choose at least one kind of question.")
        if count > SPECIALTIES:
            return tr("At most %1 kinds.").replace("%1", str(SPECIALTIES))
        return "" if self._name.text().strip() else tr("Give it a name.")

    def _show_sample(self) -> None:
        offer = self._list.currentIndex().data(OFFER)
        if offer is None:
            return
        level, *harder = chosen_levels(offer, self._level.index)
        words = tr("%1: a question, %2").replace("%1", tr_sentence(offer.title)).replace("%2", tr(level))
        if not harder and level != (LEVELS + LEVELS[:1])[self._level.index]:
            words += tr(" (it has no other)") if len(offer.samples) == 1 else tr(" (the closest it has)")
        self._about.say(words)
        say_in(self._unchecked, self._unchecked_words(offer), "soft")
        sample = " ".join(offer.samples[level].split())
        self._sample.setText(sample if len(sample) <= 420 else f"{sample[:420]}…")

    def _unchecked_words(self, offer: SpecialtyOffer) -> str:
        """What it means that chosen levels are unchecked; empty if all were checked."""
        levels = chosen_levels(offer, self._level.index)
        unchecked = [level for level in levels if level in offer.unchecked]
        if not unchecked:
            return ""
        words = tr("Unchecked: its answer keys could not be checked independently; its scorer was tested with altered answers.")
        if len(unchecked) < len(levels):
            words = tr("Unchecked (%1): its answer keys could not be checked independently; its scorer was tested with altered "
                       "answers.")  # fmt: skip
        return words.replace("%1", ", ".join(map(tr, unchecked)))

    def _ask(self) -> None:
        chosen = tuple(
            (offer.dataset, level) for offer in self._chosen_specialties() for level in chosen_levels(offer, self._level.index)
        )
        self._waiting = True
        self._problem.setText("")
        self._update_form()
        self.submitted.emit(
            CreateSwarm(
                id=new_id(), name=self._name.text().strip(), specialties=chosen, model_hint=self._hint.text().strip(),
                private=self._private.isChecked(),
            )
        )  # fmt: skip
