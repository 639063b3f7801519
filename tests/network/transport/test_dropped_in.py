"""A transport needs a folder and an entry of a table: those of docs/adding/transport.md, dropped into a copy of the product."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import waggle
from waggle.core import paths

PRODUCT = Path(waggle.__file__).parent
GUIDE = PRODUCT.parent.parent / "docs/adding/transport.md"
FILE = re.compile(r"`app/(?P<path>waggle/\S+\.py)`:\n+```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^## 2\..*?^```python\n(?P<entry>.*?)^```$.*?^```python\n(?P<imported>.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = "TRANSPORTS = {  # by the value of SwarmOptions.transport\n"
FIRST_IMPORT = "from waggle.network.identity.keys import Identity\n"
EXCHANGE = Path(__file__).with_name("exchange_record.py")  # a file, so that type checks and renames reach its imports


def test_two_nodes_exchange_a_record_by_the_transport_of_the_documentation(tmp_path: Path) -> None:
    shutil.copytree(PRODUCT, tmp_path / "app/waggle", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.resources(), tmp_path / "resources")
    guide = GUIDE.read_text("utf-8")
    file, lines = FILE.search(guide), ENTRY.search(guide)
    assert file is not None
    assert lines is not None
    path = tmp_path / "app" / file["path"]
    path.parent.mkdir()
    path.write_text(file["source"], "utf-8")
    choice = tmp_path / "app/waggle/network/transport/choice.py"
    source = choice.read_text("utf-8")
    source = source.replace(TABLE, TABLE + lines["entry"]).replace(FIRST_IMPORT, FIRST_IMPORT + lines["imported"])
    choice.write_text(source, "utf-8")

    tests = Path(__file__).parents[2]
    finished = subprocess.run(
        [sys.executable, str(EXCHANGE), path.parent.name],
        cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path / 'app'}{os.pathsep}{tests}", "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["received", "3", "groups"]
