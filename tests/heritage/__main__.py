"""Records what this commit writes: `PYTHONPATH=app:tests python -m heritage FOLDER`; what is there already stays."""

import sys
from pathlib import Path

from heritage import messages, samples, schema


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "schema.json", schema.text_of(schema.schema()))
    written = {
        "messages": messages.messages(),
        "packed": {"record": messages.packed_record().hex(), "sheet": messages.packed_sheet().hex()},
        "facts": messages.facts(),
        "samples": samples.samples(),
    }
    _write(folder / "messages.json", schema.text_of(written))


def _write(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
