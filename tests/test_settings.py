"""Settings: defaults, files, overrides, and every way they can be wrong."""

import pytest

from waggle.errors import SettingsError
from waggle.settings import Settings, read


def test_no_file_means_all_defaults(tmp_path):
    assert read(tmp_path / "settings.toml") == Settings()


def test_a_file_and_the_command_line_are_joined(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('[swarm]\nport = 4001\nseeds = ["/ip4/127.0.0.1/tcp/1/p2p/x"]\n')
    settings = read(path, ("swarm.port=4002", "model.folder=/a/b", "learning.learning_rate=1e-3"))
    assert (settings.swarm.port, settings.model.folder, settings.learning.learning_rate) == (4002, "/a/b", 1e-3)
    assert settings.swarm.seeds == ("/ip4/127.0.0.1/tcp/1/p2p/x",)


@pytest.mark.parametrize(
    ("content", "says", "advice"),
    [
        ("[swarm]\nseed = 1\n", "swarm: unknown setting `seed`", "Did you mean seeds?"),
        ("[swarms]\n", "unknown setting `swarms`", "Did you mean swarm?"),
        ("[swarm\n", "not valid TOML", "Mend that line"),
        ("[swarm]\nport = 70000\n", "swarm.port", "Nothing was changed."),
        ("[swarm]\nport = 'a'\n", "swarm.port", "Nothing was changed."),
        ("[learning]\nlocal = 0\nexternal = 0\n", "cannot both be 0", "4 and 4"),
        ("[learning]\nlocal = 9\n", "only 8 questions", "raise learning.questions"),
        ("[learning]\nrule = 'reinforce'\n", "learning.rule", "Nothing was changed."),
        ("[model]\nfolder = 'a'\nname = 'b/c'\n", "are both set", "Remove the one"),
        ("a = " + "[" * 5000, "not valid TOML", "Mend that line"),
        ("#" * 11_000, "is too long", "right file"),
        ("a = " + "1" * 5000, "not valid TOML", "Mend that line"),
        ("[learning]\nspecialties = 'bf'\n", "learning.specialties", "Nothing was changed."),
    ],
)
def test_a_wrong_file_is_explained_and_left_as_it_is(tmp_path, content, says, advice):
    path = tmp_path / "settings.toml"
    path.write_text(content)
    with pytest.raises(SettingsError) as caught:
        read(path)
    assert says in caught.value.title
    assert advice in caught.value.advice
    assert path.read_text() == content


def test_bytes_that_are_no_text_are_explained(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        read(path)


@pytest.mark.parametrize(
    "override",
    ["x", "x=1", "a.b.c=1", "swarm.nothing=1", "swarm.\udcff=1", "swarm.port=" + "[" * 5000, "swarm.port=" + "1" * 5000],
)
def test_a_wrong_override_is_explained(tmp_path, override):
    with pytest.raises(SettingsError):
        read(tmp_path / "settings.toml", (override,))


def test_an_override_of_a_section_that_is_none_is_explained(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("swarm = 1\n")
    with pytest.raises(SettingsError, match="swarm: Expected `object`"):
        read(path, ("swarm.port=1",))
