"""Controls that a mouse cannot reach in a window: cut off, scrolled away where nothing scrolls, or covered."""

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QWidget,
)

from pictures.matrix import VIEWS, show
from pictures.screens import SCREENS, Screen
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.playground.page import PARTS, PlaygroundPage
from waggle.gui.pages.settings.page import SettingsPage
from waggle.gui.pages.settings.rows import SECTIONS
from waggle.gui.pages.swarms.page import SwarmsPage

CONTROLS = (QAbstractButton, QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit)
INSET = 3  # pixels inside the corners of a control


def fill(window: MainWindow, screen: Screen) -> None:
    """Give the window the size that a maximised window has on this screen."""
    window._screen_fit._least = QSize(1, 1)  # the screen of the tests is another one
    window.setMinimumSize(1, 1)
    window.resize(*screen.room)


def unreachable(window: MainWindow, screens: tuple[Screen, ...] = SCREENS) -> list[tuple[str, str, str]]:
    """Screen, page and name of every control that cannot be reached, over all screens and pages."""
    missed = []
    for screen in screens:
        fill(window, screen)
        for name in _views(window):
            missed += [
                (screen.name, name, _name(control)) for control in _controls(window) if not can_be_reached(window, control)
            ]
    return missed


def _views(window: MainWindow) -> Iterator[str]:
    """Show every page and view, one after the other."""
    for name in VIEWS:
        show(window, name)
        _settle()
        yield name
        if name == "swarms":
            window.pages.of(SwarmsPage).show_part("invite")
            _settle()
            yield "invite"
            window.pages.of(SwarmsPage).show_list()
        if name == "playground":
            for part in PARTS:
                window.pages.of(PlaygroundPage).show_part(part)
                _settle()
                yield part
        if name == "settings":
            for section in SECTIONS:
                window.pages.of(SettingsPage).show_part(section.name)
                _settle()
                yield f"settings, {section.name}"


def _settle() -> None:
    for _ in range(4):
        QApplication.processEvents()


def _controls(window: MainWindow) -> list[QWidget]:
    """The visible controls that are no part of another one, such as the field in a spin box."""
    controls = [control for control in window.findChildren(QWidget) if isinstance(control, CONTROLS) and control.isVisible()]
    inner = [control for control in controls if isinstance(control.parentWidget(), CONTROLS)]
    return [control for control in controls if control not in inner and control.isEnabled()]


def can_be_reached(window: MainWindow, control: QWidget) -> bool:
    """Scroll to the control, as its wheel and bars allow, and look whether it lies there, whole and uncovered."""
    if not all(_scroll_to(area, control) for area in _areas_around(control)):
        return False
    visible = control.visibleRegion().boundingRect()
    if isinstance(control, QAbstractItemView):  # it scrolls by itself: a line of it is enough
        return visible.width() > 100 and visible.height() >= 40
    if visible != control.rect() and not _is_larger_than_its_view(control):
        return False
    return all(_is_on_top(window, control, place) for place in _places(visible))


def _areas_around(control: QWidget) -> list[QScrollArea]:
    """From the innermost to the outermost."""
    areas, around = [], control.parentWidget()
    while around is not None:
        if isinstance(around, QScrollArea):
            areas.append(around)
        around = around.parentWidget()
    return areas


def _scroll_to(area: QScrollArea, control: QWidget) -> bool:
    middle = control.mapTo(area.widget(), control.rect().center())  # not ensureWidgetVisible, which shows a field's cursor only
    area.ensureVisible(middle.x(), middle.y(), control.width() // 2 + 4, control.height() // 2 + 4)
    bars = (
        (area.horizontalScrollBar(), area.horizontalScrollBarPolicy()),
        (area.verticalScrollBar(), area.verticalScrollBarPolicy()),
    )
    return all(bar.value() == bar.minimum() or policy != Qt.ScrollBarPolicy.ScrollBarAlwaysOff for bar, policy in bars)


def _is_larger_than_its_view(control: QWidget) -> bool:
    views = [area.viewport() for area in _areas_around(control)]
    return any(control.width() > view.width() or control.height() > view.height() for view in views)


def _places(visible: QRect) -> list[QPoint]:
    inner = visible.adjusted(INSET, INSET, -INSET, -INSET)
    return [inner.center(), inner.topLeft(), inner.topRight(), inner.bottomLeft(), inner.bottomRight()]


def _is_on_top(window: MainWindow, control: QWidget, place: QPoint) -> bool:
    top = window.childAt(control.mapTo(window, place))
    return top is not None and (top is control or control.isAncestorOf(top))


def _name(control: QWidget) -> str:
    return f"{type(control).__name__} {control.accessibleName()!r}"
