"""Whatever is set aside stays, however often that happens."""

import pytest

from waggle.core import damaged_file


def test_what_was_set_aside_before_stays(tmp_path):
    path = tmp_path / "standings.json"
    names = []
    for content in ("first", "second", "third"):
        path.write_text(content)
        names.append(damaged_file.set_aside(path))
    assert [name.name for name in names] == ["standings.damaged", "standings.damaged-2", "standings.damaged-3"]
    assert [name.read_text() for name in names] == ["first", "second", "third"]
    assert not path.exists()


def test_a_disk_with_no_free_name_is_an_error_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(damaged_file, "MOST", 2)
    path = tmp_path / "standings.json"
    path.write_text("first")
    damaged_file.set_aside(path)
    path.write_text("second")
    with pytest.raises(FileExistsError):
        damaged_file.set_aside(path)
    assert path.read_text() == "second"
