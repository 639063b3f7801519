"""Every folder of the source is a package: the import contracts and the installed app see no other."""

from pathlib import Path

import waggle

APP = Path(waggle.__file__).parents[1]


def test_every_folder_with_python_files_is_a_package() -> None:
    folders = {path.parent for path in APP.rglob("*.py")} - {APP}
    assert len(folders) > 50
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
