"""The choice among the specialties that come with Waggle: a list to tick by topic, the difficulty, and a sample question."""

import math
from itertools import groupby
from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QPainter, QResizeEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListView,
    QScrollArea,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from waggle.gui.i18n.formatting import later, shortened, tr
from waggle.gui.pages.swarms.swarm_facts import unchecked_mark
from waggle.gui.theme.theme import Theme
from waggle.gui.widgets.containers.responsive_row import StretchRow
from waggle.gui.widgets.controls.buttons import SegmentedControl
from waggle.gui.widgets.drawing import mirror_box
from waggle.gui.widgets.layout import column, frame, row
from waggle.gui.widgets.text import ElidedLabel, say_in, text
from waggle.protocol.events import Difficulty
from waggle.protocol.events_swarms import SpecialtyOffer

LEVELS: tuple[Difficulty, ...] = ("easy", "standard", "hard")
TOPICS = {  # in the order of the list: what most people know comes first
    "arithmetic": later("Arithmetic"), "logic": later("Logic"), "games": later("Games"), "patterns": later("Patterns"),
    "geometry": later("Geometry"), "graphs": later("Graphs"), "algorithms": later("Algorithms"),
}  # fmt: skip
OFFER, SEARCH_ROLE = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1  # a specialty, and the words by which it is found
LONGEST_SAMPLE = 420  # characters
SEARCH_WIDE = 360  # pixels at a text size of 100%
COLUMN, LEAST = 250, 120  # pixels of the list at a text size of 100%: width of a column at least, and its own height
INDENT, ABOVE_BOXES = 7, 3  # pixels of a heading at a text size of 100%: before it and below it
UNVERIFIED = later("not verified")  # in a row, which is narrow: the whole words stand beside the list
APART = "  ·  "  # between the parts of a row
Index = QModelIndex | QPersistentModelIndex


def chosen_levels(offer: SpecialtyOffer, place: int) -> list[Difficulty]:
    """The levels of a specialty for a place of the switch: the closest to one of LEVELS, or behind them all that it has."""
    return list(offer.samples) if place == len(LEVELS) else [closest_level(offer, LEVELS[place])]


def closest_level(offer: SpecialtyOffer, preferred: Difficulty) -> Difficulty:
    """The difficulty of a specialty that is closest to the preferred one; of two, the easier."""
    place = LEVELS.index(preferred)
    return min(offer.samples, key=lambda level: (abs(LEVELS.index(level) - place), LEVELS.index(level)))


def _place(offer: SpecialtyOffer) -> tuple[int, str, str]:
    """The place of a specialty in the list; topics without a place of their own come last."""
    order = list(TOPICS)
    return order.index(offer.topic) if offer.topic in TOPICS else len(order), offer.topic, tr(offer.title).casefold()


def _topic_words(topic: str) -> str:
    return tr(TOPICS.get(topic, topic))


def _is_heading(place: Index) -> bool:
    """Whether a row of the list is the name of a topic."""
    return place.data(OFFER) is None


class _Rows(QStyledItemDelegate):
    """Draws the name of a topic as a heading, and what follows the title of a specialty in a paler ink."""

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme = theme
        self.columns, self.column_width = 1, 0  # pixels; 0: not known yet

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """As wide as the columns that its words need, or as all of them for a heading."""
        hint = super().sizeHint(option, index)
        if not self.column_width:
            return hint
        needed = self.columns if _is_heading(index) else math.ceil(hint.width() / self.column_width)
        return QSize(self.column_width * min(self.columns, needed), hint.height())

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if _is_heading(index):
            self._draw_heading(painter, option, index)
        else:
            self._draw_specialty(painter, option, index)

    def _draw_heading(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row_of: Any = option  # PySide's type lacks the fields
        view = row_of.widget
        painter.save()
        painter.setLayoutDirection(view.layoutDirection())
        painter.setFont(self._theme.font("label"))
        painter.setPen(self._theme.colour("text_soft"))
        place = QRectF(row_of.rect).adjusted(self._theme.px(INDENT), 0, 0, -self._theme.px(ABOVE_BOXES))
        to_the_boxes = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
        painter.drawText(mirror_box(painter, place, QRectF(row_of.rect)), to_the_boxes, index.data())
        painter.restore()

    def _draw_specialty(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        self.initStyleOption(option, index)
        row_of: Any = option  # PySide's type lacks the fields
        words, view = row_of.text, row_of.widget
        row_of.text, metrics, style = words.partition(APART)[0], row_of.fontMetrics, view.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, view)
        place = QRectF(style.subElementRect(QStyle.SubElement.SE_ItemViewItemText, option, view))
        margin = style.pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, option, view) + 1
        rest = place.adjusted(margin + metrics.horizontalAdvance(row_of.text), 0, -margin, 0)
        painter.save()
        painter.setLayoutDirection(view.layoutDirection())
        painter.setFont(row_of.font)
        painter.setPen(self._theme.colour("text_faint"))
        about = metrics.elidedText(words.removeprefix(row_of.text), Qt.TextElideMode.ElideRight, int(rest.width()))
        painter.drawText(mirror_box(painter, rest, place), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, about)
        painter.restore()


class _Columns(QListView):
    """A list in as many columns as fit under each heading. It scrolls by whole lines, or has its whole height."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._is_whole = theme, False
        self._rows = _Rows(theme, self)
        self.setItemDelegate(self._rows)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumWidth(theme.px(COLUMN))

    def set_whole(self, whole: bool) -> None:
        self._is_whole = whole
        bars = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(bars.ScrollBarAlwaysOff if whole else bars.ScrollBarAsNeeded)
        self.fit()

    def scrollTo(self, index: Index, hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible) -> None:
        """In its whole height, scroll the area around it, as for the arrow keys."""
        super().scrollTo(index, hint)
        area = self.parentWidget()
        while area is not None and not isinstance(area, QScrollArea):
            area = area.parentWidget()
        if self._is_whole and area is not None and (content := area.widget()) is not None:
            middle = self.viewport().mapTo(content, self.visualRect(index).center())
            area.ensureVisible(middle.x(), middle.y(), 0, self.sizeHintForRow(0))

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.minimumHeight())

    def whole_height(self) -> int:
        """Its height in pixels with the present columns, if it does not scroll."""
        return self._lines() * self._line_height() + self._edges()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Share the width among the columns, and show no line that is cut through."""
        columns = max(1, self._room() // self._theme.px(COLUMN))
        if (columns, self._room() // columns) != (self._rows.columns, self._rows.column_width):
            self._rows.columns, self._rows.column_width = columns, self._room() // columns
            self.scheduleDelayedItemsLayout()
        self.setViewportMargins(0, 0, 0, max(0, self.height() - self._edges()) % self._line_height())
        self.setMinimumHeight(max(self._theme.px(LEAST), self.whole_height() if self._is_whole else 0))
        self.updateGeometry()

    def _lines(self) -> int:
        """How many lines the headings and the columns below them take."""
        lines, used = 0, self._rows.columns
        for place in range(self.model().rowCount()):
            columns = self.sizeHintForIndex(self.model().index(place, 0)).width() // max(1, self._rows.column_width)
            lines, used = (lines + 1, columns) if used + columns > self._rows.columns else (lines, used + columns)
        return lines

    def _line_height(self) -> int:
        return max(1, self.sizeHintForRow(0))

    def _edges(self) -> int:
        """The height in pixels of what surrounds the lines."""
        return 2 * self.frameWidth()

    def _room(self) -> int:
        """The width in pixels within which Qt wraps: beside a scroll bar that may be needed."""
        bar = 0 if self._is_whole else self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent, None, self)
        return self.maximumViewportSize().width() - bar - 1  # what ends at the very edge wraps, too


class SpecialtyChoice(QWidget):
    """`changed`: other specialties are chosen. Beside the list stands a question of the specialty that was looked at last."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._offers: tuple[SpecialtyOffer, ...] = ()
        self._level = SegmentedControl(theme, (tr("Easy"), tr("Standard"), tr("Hard"), tr("All")), tr("Difficulty"))
        self._level.setToolTip(tr("All: each model asks most at the level where it learns most."))
        self._level.chosen.connect(lambda _index: self._show_level())
        self._make_list()
        self._about, self._sample = ElidedLabel(theme, role="label"), text(theme, "", "small", wrap=True)
        self._unchecked = text(theme, "", "caption", "soft", wrap=True)
        self._sample.setAlignment(Qt.AlignmentFlag.AlignTop)
        sample_box = frame("well", column(self._about, self._unchecked, (self._sample, 1), gap=4, margins=(12, 9, 12, 10)))
        difficulty = text(theme, tr("Difficulty"), "small", "soft")
        head = StretchRow((difficulty, 0), (self._level, 0), (self._filter, 3), (QWidget(), 1))
        self._lists = row((self._list, 5), (sample_box, 2), gap=12)
        self.setLayout(column(head, (self._lists, 1), gap=8))

    def _make_list(self) -> None:
        self._filter = QLineEdit()
        self._filter.setFont(self._theme.font("body"))
        self._filter.setAccessibleName(tr("Find a specialty"))
        self._filter.setPlaceholderText(tr("Find a specialty"))
        self._filter.setMaxLength(40)
        self._filter.setMaximumWidth(self._theme.px(SEARCH_WIDE))
        self._filter.setFixedHeight(self._theme.size["control"])
        self._model = QStandardItemModel(self)
        self._filtered = QSortFilterProxyModel(self)
        self._filtered.setSourceModel(self._model)
        self._filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._filtered.setFilterRole(SEARCH_ROLE)
        self._filter.textChanged.connect(self._filtered.setFilterFixedString)
        self._list = _Columns(self._theme)
        self._list.setProperty("kind", "ticks")  # a row that is looked at is not ticked yet
        self._list.setModel(self._filtered)
        self._list.setFont(self._theme.font("small"))
        self._list.setAccessibleName(tr("What the swarm asks; the space bar chooses"))
        self._list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._list.selectionModel().currentChanged.connect(lambda _now, _before: self._show_sample())
        self._model.dataChanged.connect(self._show_ticked_question)

    def set_whole(self, whole: bool) -> None:
        """Show the list in its whole height, or let it scroll."""
        self._list.set_whole(whole)

    def height_in_view(self) -> int:
        """The height in pixels at which the list need not scroll."""
        return self.sizeHint().height() + max(0, self._list.whole_height() - self._list.minimumHeight())

    def show_offers(self, offers: tuple[SpecialtyOffer, ...]) -> None:
        """Fill the list if the offers changed: by topic, and within one in the order of the alphabet."""
        if offers == self._offers:
            return
        self._offers = offers
        self._model.clear()
        for topic, group in groupby(sorted(offers, key=_place), key=lambda offer: offer.topic):
            items = [self._item(offer) for offer in group]
            heading = QStandardItem(_topic_words(topic))
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            heading.setData("\n".join(item.data(SEARCH_ROLE) for item in items), SEARCH_ROLE)  # found with any of its rows
            for item in (heading, *items):
                self._model.appendRow(item)
        self._list.setCurrentIndex(self._filtered.index(self._first_easy(), 0))
        self._list.fit()
        self.changed.emit()

    def _item(self, offer: SpecialtyOffer) -> QStandardItem:
        item = QStandardItem(self._offer_words(offer))
        item.setData(f"{item.text()} {_topic_words(offer.topic)}", SEARCH_ROLE)
        item.setCheckable(True)
        item.setData(offer, OFFER)
        return item

    def _first_easy(self) -> int:
        """The row of the first specialty with easy questions: its question is what a person sees first."""
        offers = ((place, self._filtered.index(place, 0).data(OFFER)) for place in range(self._filtered.rowCount()))
        return next((place for place, offer in offers if offer is not None and "easy" in offer.samples), 0)

    def chosen(self) -> list[SpecialtyOffer]:
        return [item.data(OFFER) for item in self._items() if item.checkState() == Qt.CheckState.Checked]

    def pairs(self) -> tuple[tuple[str, Difficulty], ...]:
        """The dataset and the difficulty of each chosen level."""
        return tuple((offer.dataset, level) for offer in self.chosen() for level in chosen_levels(offer, self._level.index))

    def take_over(self, before: "SpecialtyChoice") -> None:
        """Take over the offers, what is ticked, and the difficulty."""
        self.show_offers(before._offers)
        self._filter.setText(before._filter.text())
        self._level.choose(before._level.index)
        chosen, current_offer = before.chosen(), before._list.currentIndex().data(OFFER)
        for item in self._items():
            item.setCheckState(Qt.CheckState.Checked if item.data(OFFER) in chosen else Qt.CheckState.Unchecked)
        for item in self._items():
            if item.data(OFFER) == current_offer:
                self._list.setCurrentIndex(self._filtered.mapFromSource(item.index()))

    def reset(self) -> None:
        """Choose nothing."""
        for item in self._items():
            item.setCheckState(Qt.CheckState.Unchecked)

    def _offer_words(self, offer: SpecialtyOffer) -> str:
        """A row of the list: title, the level if it lacks the chosen one, and whether nobody verified the answers."""
        levels = chosen_levels(offer, self._level.index)
        other = "" if len(levels) > 1 or self._has_level(offer, levels[0]) else tr(levels[0])
        return APART.join(filter(None, (tr(offer.title), other, unchecked_mark(levels, offer.unchecked, UNVERIFIED))))

    def _has_level(self, offer: SpecialtyOffer, level: Difficulty) -> bool:
        """Whether a level is the chosen one."""
        return level == (LEVELS + LEVELS[:1])[self._level.index]

    def _items(self) -> list[QStandardItem]:
        """The specialties, without the headings above them."""
        items = (self._model.item(i) for i in range(self._model.rowCount()))
        return [item for item in items if item.data(OFFER) is not None]

    def _show_ticked_question(self, place: QModelIndex, _last: QModelIndex, roles: list[int]) -> None:
        """Show the question of a specialty when its box is ticked, as the click does not select the row."""
        if Qt.ItemDataRole.CheckStateRole not in roles:
            return
        if self._model.itemFromIndex(place).checkState() == Qt.CheckState.Checked:
            self._list.setCurrentIndex(self._filtered.mapFromSource(place))
        self.changed.emit()

    def _show_level(self) -> None:
        for item in self._items():
            item.setText(self._offer_words(item.data(OFFER)))
        self._show_sample()

    def _show_sample(self) -> None:
        offer = self._list.currentIndex().data(OFFER)
        if offer is None:
            return
        level, *harder = chosen_levels(offer, self._level.index)
        words = tr("%1: a question, %2").replace("%1", tr(offer.title)).replace("%2", tr(level))
        if not harder and level != (LEVELS + LEVELS[:1])[self._level.index]:
            words += tr(" (it has no other)") if len(offer.samples) == 1 else tr(" (the closest it has)")
        self._about.say(words)
        say_in(self._unchecked, self._unchecked_words(offer), "soft")
        sample = " ".join(offer.samples[level].split())
        self._sample.setText(shortened(sample, LONGEST_SAMPLE))

    def _unchecked_words(self, offer: SpecialtyOffer) -> str:
        """What it means that chosen levels are unchecked; empty if all were checked."""
        levels = chosen_levels(offer, self._level.index)
        unchecked = [level for level in levels if level in offer.unchecked]
        if not unchecked:
            return ""
        words = tr("Answers not verified: its answer keys could not be checked independently; its scorer was tested with altered "
                   "answers.")  # fmt: skip
        if len(unchecked) < len(levels):
            words = tr("Answers not verified (%1): its answer keys could not be checked independently; its scorer was tested "
                       "with altered answers.")  # fmt: skip
        return words.replace("%1", ", ".join(map(tr, unchecked)))
