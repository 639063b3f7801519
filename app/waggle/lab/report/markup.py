"""Elements of a page: a thin hand on the standard library's tree, which escapes every text and closes every tag."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element


def element(tag: str, *children: Element | str | None, **attributes: object) -> Element:
    """An element with its children in order; None is no child. `class_` is written class, `stroke_width` stroke-width."""
    made = Element(tag, {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, str):
            _append_text(made, child)
        elif child is not None:
            made.append(child)
    return made


def _append_text(made: Element, text: str) -> None:
    if len(made):
        made[-1].tail = (made[-1].tail or "") + text
    else:
        made.text = (made.text or "") + text


def page(root: Element) -> str:
    """The whole document as text. Text inside style is written as it stands, so nothing foreign may go in there."""
    return "<!doctype html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"
