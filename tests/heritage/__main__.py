"""Records what this commit writes: `PYTHONPATH=app:tests python -m heritage FOLDER`; what is there already stays.

A part is recorded once, by the version that it is named after. Where a later version writes something new, that is recorded in a
folder of its own.
"""

import json
import sys
from pathlib import Path

from heritage import messages, samples, schema, settings_file, starter, story


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "schema.json").exists():
        (folder / "schema.json").write_text(schema.text_of(schema.schema()), encoding="utf-8")
    if not (folder / "messages.json").exists():
        packed = {"record": messages.packed_record().hex(), "sheet": messages.packed_sheet().hex()}
        parts = {"messages": messages.messages(), "packed": packed, "facts": messages.facts(), "samples": samples.samples()}
        (folder / "messages.json").write_text(schema.text_of(parts), encoding="utf-8")
    if not (folder / "settings.toml").exists():
        settings_file.write(folder / "settings.toml")
        (folder / "settings.json").write_text(json.dumps(settings_file.CHOSEN, indent=1) + "\n", encoding="utf-8")
    if not (folder / "starter.json").exists():
        (folder / "starter.json").write_bytes(starter.recorded() + b"\n")
    if not (folder / "person.tar.xz").exists():
        story.live(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
