"""A transport needs a folder and an entry of a table: those of docs/adding/transport.md, dropped into a copy of the product."""

import re
from pathlib import Path

from product_copy import GUIDES, copy_product, drop_in, run_python

ENTRY = re.compile(r"^## 2\..*?^```python\n(?P<entry>.*?)^```$.*?^```python\n(?P<imported>.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = "TRANSPORTS = {  # by the value of SwarmOptions.transport\n"
FIRST_IMPORT = "from waggle.network.identity.keys import Identity\n"
EXCHANGE = Path(__file__).with_name("exchange_record.py")  # a file, so that type checks and renames reach its imports


def test_two_nodes_exchange_a_record_by_the_transport_of_the_documentation(tmp_path: Path) -> None:
    copy_product(tmp_path)
    path = drop_in(tmp_path, "transport.md")
    lines = ENTRY.search((GUIDES / "transport.md").read_text("utf-8"))
    assert lines is not None
    choice = tmp_path / "app/waggle/network/transport/choice.py"
    source = choice.read_text("utf-8")
    source = source.replace(TABLE, TABLE + lines["entry"]).replace(FIRST_IMPORT, FIRST_IMPORT + lines["imported"])
    choice.write_text(source, "utf-8")
    printed = run_python(tmp_path, str(EXCHANGE), path.parent.name, search=Path(__file__).parents[2])
    assert printed.split() == ["received", "3", "groups"]
