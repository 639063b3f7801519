"""Records what this commit writes: `PYTHONPATH=app:tests python -m heritage FOLDER`; what is there already stays."""

import sys
from pathlib import Path

from heritage import schema


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "schema.json").open("x", encoding="utf-8") as file:
        file.write(schema.text_of(schema.schema()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
