"""One folder and one line are all that a page needs: those of docs/adding/page.md, dropped into a copy of the product."""

import re
from pathlib import Path

from product_copy import GUIDES, copy_product, drop_in, run_python

LINE = re.compile(r"^`app/waggle/gui/pages/__init__\.py`.*?^```python\n(?P<line>.*?)^```$", re.MULTILINE | re.DOTALL)

OPEN = """
import sys
from waggle.cli.main import parse
from waggle.gui.application.main import application
from waggle.gui.application.main_window import MainWindow
from waggle.gui.pages.context import PageContext
from waggle.gui.theme.theme import Theme
from waggle.protocol.state import State

(name,) = sys.argv[1:]
assert parse(["--page", name]).page == name
application()
window = MainWindow(PageContext(Theme("light")))
window.rail.chosen.emit(name)
window.pages[name].show_state(State(round=217), 0.0)
print(window.page, window.pages[name].accessibleName(), window.pages[name]._rounds.text())
"""


def test_the_page_of_the_documentation_opens_once_its_folder_and_its_line_are_there(tmp_path: Path) -> None:
    copy_product(tmp_path)
    path = drop_in(tmp_path, "page.md")
    line = LINE.search((GUIDES / "page.md").read_text("utf-8"))
    assert line is not None
    table = tmp_path / "app/waggle/gui/pages/__init__.py"
    table.write_text(table.read_text("utf-8").replace('    "peers": ', f'{line["line"]}    "peers": '), "utf-8")
    assert run_python(tmp_path, "-c", OPEN, path.parent.name).split() == ["rounds", "Rounds", "217"]
