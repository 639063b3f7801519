"""Places the labels of a chart's vertical lines: clear of each other and, if possible, of the curve. No Qt."""

from collections.abc import Iterator, Sequence

import msgspec


class LabelBox(msgspec.Struct, frozen=True):
    """A rectangle in pixels, from the top left."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "LabelBox") -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


def place_labels(
    lines: Sequence[tuple[float, float]], room: LabelBox, high: float, curve: Sequence[LabelBox]
) -> list[LabelBox | None]:
    """A box for each label, or None without room; `lines` are (x of the line, width of the label), the first chooses first.

    Prefers left of the line to right, above to below, and covering the curve to nothing. `high`: height of a label.
    """
    occupied: list[LabelBox] = []
    boxes: list[LabelBox | None] = []
    for x, wide in lines:
        free = [box for box in _candidate_boxes(x, wide, room, high) if not any(box.meets(other) for other in occupied)]
        best = next((box for box in free if not any(box.meets(part) for part in curve)), free[0] if free else None)
        boxes.append(best)
        occupied += [best] if best else []
    return boxes


def _candidate_boxes(x: float, wide: float, room: LabelBox, high: float) -> Iterator[LabelBox]:
    for x_left in (x - wide, x):
        if room.left <= x_left and x_left + wide <= room.right:
            for row in range(int((room.bottom - room.top) // high)):
                yield LabelBox(x_left, room.top + row * high, x_left + wide, room.top + (row + 1) * high)
