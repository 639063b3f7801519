"""One folder and one line are all that a page needs: those of docs/adding/page.md, dropped into a copy of the product."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import waggle

PRODUCT = Path(waggle.__file__).parent
PAGE = PRODUCT.parent.parent / "docs/adding/page.md"
FILE = re.compile(r"^`app/(?P<path>waggle/\S+\.py)`:\n+```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
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
    shutil.copytree(PRODUCT, tmp_path / "app/waggle", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("look", "language"):
        shutil.copytree(PRODUCT.parent.parent / "resources" / folder, tmp_path / "resources" / folder)
    documentation = PAGE.read_text("utf-8")
    file, line = FILE.search(documentation), LINE.search(documentation)
    assert file is not None
    assert line is not None
    path = tmp_path / "app" / file["path"]
    path.parent.mkdir()
    path.write_text(file["source"], "utf-8")
    table = tmp_path / "app/waggle/gui/pages/__init__.py"
    table.write_text(table.read_text("utf-8").replace('    "peers": ', f'{line["line"]}    "peers": '), "utf-8")

    finished = subprocess.run(
        [sys.executable, "-c", OPEN, path.parent.name],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "app"), "QT_QPA_PLATFORM": "offscreen", "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["rounds", "Rounds", "217"]
