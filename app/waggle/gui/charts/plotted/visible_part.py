"""The part of the horizontal axis that the charts of a page show, and the place that is read there. No pyqtgraph."""

from PySide6.QtCore import QObject, Signal

LEAST = 1 / 500  # of the whole axis: the shortest part that is shown


class VisiblePart(QObject):
    """Shared by charts one above the other: zooming or pointing in one does so in all of them. In the unit of the axis.

    `part_changed`: another part is shown. `place_changed`: another place is read, or none any more.
    """

    part_changed = Signal()
    place_changed = Signal()

    def __init__(self, parent: QObject | None) -> None:
        super().__init__(parent)
        self.place: float | None = None  # that is read in all charts
        self._whole = (0.0, 1.0)
        self._part: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        return self._part or self._whole

    @property
    def whole(self) -> tuple[float, float]:
        """Both ends of the data."""
        return self._whole

    @property
    def is_whole(self) -> bool:
        return self._part is None

    @property
    def has_newest(self) -> bool:
        """Whether the newest values are shown."""
        return self._part is None or self._part[1] >= self._whole[1]

    def set_whole(self, ends: tuple[float, float]) -> None:
        """Take over both ends of the data. A part that showed the newest values follows them; no signal is emitted."""
        grown = ends[1] - self._whole[1]
        if self._part is not None and self.has_newest:
            self._part = (self._part[0] + grown, self._part[1] + grown)
        self._whole = ends
        if self._part is not None:
            self._part = self._within(*self._part)

    def forget(self) -> None:
        """Another axis, or other data: show all of it, and read no place. No signal is emitted."""
        self._part = self.place = None

    def show_whole(self) -> None:
        self._take(None)

    def choose(self, first: float, last: float) -> None:
        """Show the part between two places, in either order."""
        self._take(self._within(min(first, last), max(first, last)))

    def zoom(self, around: float, factor: float) -> None:
        """Show `factor` as much, so that `around` stays where it is."""
        first, last = self.ends
        self._take(self._within(around - (around - first) * factor, around + (last - around) * factor))

    def move(self, share: float) -> None:
        """Show what lies right (negative: left) of this part, by a share of its width."""
        first, last = self.ends
        by = share * (last - first)
        self._take(self._within(first + by, last + by))

    def read(self, place: float | None) -> None:
        if place != self.place:
            self.place = place
            self.place_changed.emit()

    def _within(self, first: float, last: float) -> tuple[float, float] | None:
        """The part moved and cut so that it lies in the whole; None if it is all of it."""
        low, high = self._whole
        width = max(last - first, (high - low) * LEAST)
        if width >= high - low:
            return None
        first = min(max(first, low), high - width)
        return first, first + width

    def _take(self, part: tuple[float, float] | None) -> None:
        if part != self._part:
            self._part = part
            self.part_changed.emit()
