"""Settings: defaults, files, overrides, and every way they can be wrong."""

import pytest

from waggle.core.errors import SettingsError
from waggle.core.settings import (
    LIVE_SHARING_STRATEGIES,
    ScheduleSettings,
    Settings,
    WebSettings,
    WindowSettings,
    assignment,
    change,
    profile_of,
    profiles,
    read,
    set_aside,
    unusable,
    value_of,
)


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
        ("[swarm]\nsolo = 'yes'\n", "swarm.solo", "Nothing was changed."),
        ("[model]\nfolder = 3\n", "model.folder", "Nothing was changed."),
        ("swarm = 3\n", "swarm", "Nothing was changed."),
        ("[swarm\n", "The settings file cannot be read.", " is not valid TOML: "),
        ("[swarm]\nport = 70000\n", "swarm.port", "Nothing was changed."),
        ("[swarm]\nport = 'a'\n", "swarm.port", "Nothing was changed."),
        ("[learning]\nlocal = 0\nexternal = 0\n", "cannot both be 0", "4 and 4"),
        ("[learning]\nlocal = 9\n", "only 8 questions", "raise learning.questions"),
        ("[model]\nfolder = 'a'\nname = 'b/c'\n", "are both set", "Remove the one"),
        ("a = " + "[" * 5000, "The settings file cannot be read.", " is not valid TOML: "),
        ("#" * 11_000, "is too long", "right file"),
        ("a = " + "1" * 5000, "The settings file cannot be read.", " is not valid TOML: "),
        ("[when]\nweek = ['########################']\n", "has 1 days", "seven"),
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


@pytest.mark.parametrize(
    ("content", "key", "says"),
    [
        ("[window]\ntheme = 'sepia'\n", "window.theme", "There are system, light, dark, high_contrast."),
        ("[window]\ntext_percent = 400\n", "window.text_percent", "<= 200"),
        ("[window]\nthem = 'dark'\n", "window.them", "Did you mean theme?"),
        ("[window]\ntheme = 'sepia'\ntext_percent = 400\nthem = 1\n", "window.theme", "There are"),
        ("window = 'dark'\n", "window", "object"),
        ("[learning]\nrule = 'reinforce'\n", "learning.rule", "There are dapo, dr_grpo, grpo, gspo, ppo"),
        ("[when]\nweek = ['#']\n", "when.week", "regex"),
        ("[computer]\ncpu_percent = 0\n", "computer.cpu_percent", ">= 5"),
        ("[computer]\ndisk_gb = inf\n", "computer.disk_gb", "<="),  # which JSON has no word for
        ("[learning]\nspecialties = 'bf'\n", "learning.specialties", "array"),
        ("[learning]\nspecialties = ['bf', 3]\n", "learning.specialties", "str"),
        ("[model]\ntraining = 'dora'\n", "model.training", "There are auto, full"),
    ],
)
def test_a_value_that_cannot_be_used_costs_that_value_and_is_named(tmp_path, content, key, says):
    path = tmp_path / "settings.toml"
    path.write_text(f"{content}\n[web]\nport = 8000\n")
    now = read(path)
    assert now == Settings(web=WebSettings(port=8000))
    reasons = unusable(path)
    assert len(reasons) == content.count("=")
    reason = next(reason for reason in reasons if reason.title.startswith(f"The setting {key} cannot be used"))
    assert f"In {path}: " in reason.advice
    assert says in reason.advice
    assert path.read_text().startswith(content)


def test_other_settings_can_be_changed_beside_a_value_that_cannot_be_used(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('[window]\ntheme = "sepia"\n')
    assert change(path, {"window.text_percent": 120}).window == WindowSettings(text_percent=120)
    assert path.read_text() == '[window]\ntheme = "sepia"\ntext_percent = 120\n'
    with pytest.raises(SettingsError, match=r"window\.theme"):
        change(path, {"window.theme": "rose"})
    assert change(path, {"window.theme": "dark"}).window.theme == "dark"
    assert unusable(path) == ()


@pytest.mark.parametrize(("content", "override", "healthy"), [
    ("[swarm]\nport = 4001\n", "computer.cpu_percent=200", True),
    ("# mine\n", "computer.cpu_percent=200", True),
    ("[swarm]\nport = 70000\n", "computer.cpu_percent=20", False),
])  # fmt: skip
def test_what_is_wrong_on_the_command_line_is_not_blamed_on_the_file_nor_the_other_way_round(
    tmp_path, content, override, healthy
):
    path = tmp_path / "settings.toml"
    path.write_text(content)
    with pytest.raises(SettingsError) as caught:
        read(path, (override,))
    place = "the command line" if healthy else path
    assert caught.value.title.startswith(f"In {place}: ")


def test_the_command_line_sets_right_what_is_wrong_in_the_file(tmp_path):
    (tmp_path / "settings.toml").write_text("[swarm]\nport = 70000\n")
    assert read(tmp_path / "settings.toml", ("swarm.port=4001",)).swarm.port == 4001


def test_what_a_newer_version_wrote_is_passed_over_and_kept_for_it(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("[swarm]\nport = 4001\nquorum = 3\n\n[telescope]\nlens = 'wide'\n")
    assert read(path).swarm.port == 4001
    assert change(path, {"swarm.port": 4002}).swarm.port == 4002
    assert path.read_text() == '[swarm]\nquorum = 3\nport = 4002\n\n[telescope]\nlens = "wide"\n'
    with pytest.raises(SettingsError, match="unknown setting `quorum`"):
        read(path, ("swarm.quorum=4",))


def test_the_mark_that_an_editor_puts_before_the_text_is_passed_over(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xef\xbb\xbf[swarm]\r\nport = 4001\r\n")
    assert read(path).swarm.port == 4001
    assert change(path, {"swarm.lan": True}).swarm.port == 4001


def test_a_file_that_is_set_aside_takes_the_place_of_none(tmp_path):
    path, names = tmp_path / "settings.toml", ["settings.toml.broken", "settings.toml.broken-2", "settings.toml.broken-3"]
    for number, name in enumerate(names):
        path.write_text(f"[{number}")
        assert set_aside(path) == tmp_path / name
    assert [(tmp_path / name).read_text() for name in names] == ["[0", "[1", "[2"]
    with pytest.raises(SettingsError, match="cannot be set aside"):
        set_aside(path)


def test_bytes_that_are_no_text_are_explained(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        read(path)


@pytest.mark.parametrize(
    "override",
    ["x", "x=1", "a.b.c=1", "swarm.nothing=1", "swarm.nothing=", "swarm.\udcff=1", "swarm.port=" + "[" * 5000,
     "swarm.port=" + "1" * 5000],
)  # fmt: skip
def test_a_wrong_override_is_explained(tmp_path, override):
    with pytest.raises(SettingsError):
        read(tmp_path / "settings.toml", (override,))


def test_a_file_may_name_a_sharing_strategy_that_the_window_does_not_offer(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('[learning]\nsharing = "truncated_importance"\n')
    assert read(path).learning.sharing == "truncated_importance"
    assert "truncated_importance" not in LIVE_SHARING_STRATEGIES


@pytest.mark.parametrize("key", ["computer.threads", "learning.rule", "swarm.seeds", "model.folder"])
def test_an_override_without_a_value_is_the_default_whatever_the_file_says(tmp_path, key):
    path = tmp_path / "settings.toml"
    path.write_text('[computer]\nthreads = 3\n[learning]\nrule = "dapo"\n[swarm]\nseeds = ["x"]\n[model]\nfolder = "x"\n')
    assert read(path) != read(path, (f"{key}=",))
    assert value_of(read(path, (f"{key}=",)), key) == value_of(Settings(), key)


def test_an_override_of_a_section_that_is_none_is_explained(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("swarm = 1\n")
    with pytest.raises(SettingsError, match="swarm: Expected `object`"):
        read(path, ("swarm.port=1",))


def test_changes_are_kept_and_the_rest_of_the_file_stays(tmp_path):
    path = tmp_path / "new" / "settings.toml"
    path.parent.mkdir()
    path.write_text("[swarm]\nport = 4001\n[when]\nidle_minutes = 5\n")
    week = ("#" * 24,) * 6 + ("." * 24,)
    changed = change(path, {"when.week": week, "when.idle_minutes": None, "computer.disk_gb": 3})
    assert changed == read(path)
    assert changed.when == ScheduleSettings(week=week)
    assert (changed.swarm.port, changed.computer.disk_gb) == (4001, 3.0)


def test_what_the_command_line_says_stays_out_of_the_file(tmp_path):
    path = tmp_path / "settings.toml"
    assert change(path, {"when.idle_minutes": 5}, ("swarm.port=4002",)).swarm.port == 4002
    assert read(path).swarm.port == 0


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"when.idle_minutes": 5, "swarm.port": 70000}, "swarm.port"),
        ({"when.nothing": 1}, "There is no setting when.nothing"),
        ({"nothing": 1}, "There is no setting nothing"),
        ({"__class__.__name__": "other"}, "There is no setting __class__.__name__"),
        ({"when.not_while": ("x" * 12_000,)}, "too long"),
        ({"learning.local": 9}, "only 8 questions"),
    ],
)
def test_a_wrong_change_changes_nothing(tmp_path, values, says):
    path = tmp_path / "settings.toml"
    path.write_text("# mine\n")
    with pytest.raises(SettingsError, match=says):
        change(path, values)
    assert path.read_text() == "# mine\n"


def test_a_change_that_the_command_line_rules_out_changes_nothing(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("# mine\n")
    with pytest.raises(SettingsError, match="only 4 questions"):
        change(path, {"learning.local": 8}, ("learning.questions=4",))
    assert path.read_text() == "# mine\n"


def test_a_file_that_takes_no_change_is_named(tmp_path):
    (tmp_path / "settings.toml.new").mkdir()
    with pytest.raises(SettingsError, match="cannot be written"):
        change(tmp_path / "settings.toml", {"when.idle_minutes": 5})


@pytest.mark.parametrize("cores", [1, 2, 8, 64])
def test_every_profile_is_valid_and_known_again_and_the_gentlest_is_the_default(tmp_path, cores):
    assert profile_of(Settings(), cores) == "quiet" == next(iter(profiles(cores)))
    for name, preset in profiles(cores).items():
        assert profile_of(change(tmp_path / "settings.toml", preset), cores) == name
    assert profile_of(change(tmp_path / "settings.toml", {"computer.priority": "low"}), cores) == "custom"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("when.idle_minutes=5", ("when.idle_minutes", 5)),
        ("when.idle_minutes=", ("when.idle_minutes", None)),
        ("model.name=a/b", ("model.name", "a/b")),
        ('when.not_while=["a"]', ("when.not_while", ["a"])),
    ],
)
def test_an_assignment_is_read_as_a_person_means_it(text, value):
    assert assignment(text) == value


@pytest.mark.parametrize("content", [b"", b"\n", b"  \r\n\t", b"\xef\xbb\xbf"])
def test_a_file_that_lost_its_content_is_not_taken_for_the_defaults(tmp_path, content):
    """Its owner may train alone, say, which the defaults do not: the engine stops, and the window asks."""
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    for use in (read, unusable, lambda path: change(path, {"window.welcomed": True})):
        with pytest.raises(SettingsError, match="is empty"):
            use(path)
    assert path.read_bytes() == content


def test_a_file_that_is_set_back_to_all_defaults_is_read_again(tmp_path):
    path = tmp_path / "settings.toml"
    change(path, {"swarm.solo": True})
    change(path, {"swarm.solo": None})
    assert path.stat().st_size
    assert read(path) == Settings()
