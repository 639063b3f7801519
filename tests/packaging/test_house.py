"""The measuring script counts the current layout of the repository and the one before."""

import ast
import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "tests/measured"
PAGES = {
    "waggle.gui.pages.page": "from waggle.gui.pages.home import page",
    "waggle.gui.pages.home.page": "from . import status_card\nfrom ..live.page import Live\nimport waggle.gui.pages.you.page",
    "waggle.gui.pages.home.status_card": "from waggle.gui.pages.page import Page\nfrom waggle.gui.widgets import button",
    "waggle.gui.pages.live.page": "def later():\n    from waggle.gui.pages.home import page, status_card",
    "waggle.gui.pages.you.page": "",
    "waggle.gui.application.window": "from waggle.gui.pages.home.page import Home",
}


@pytest.fixture
def house(monkeypatch):
    monkeypatch.syspath_prepend(str(MEASURED))
    return importlib.import_module("house")


@pytest.fixture(scope="module")
def sizes():
    """Of this repository: it takes seconds to read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(MEASURED))
        house = importlib.import_module("house")
        return house.sizes(ROOT, house.trees_of(ROOT))


def imports(house, tmp_path, sources):
    paths = {module: tmp_path / "app" / f"{module.replace('.', '/')}.py" for module in sources}
    return {
        module: {target for target, _ in house.imported(tmp_path, paths[module], ast.parse(source))}
        for module, source in sources.items()
    }


def test_pages_that_import_each_other_are_counted_by_module(house, tmp_path):
    assert sorted(house.imports_between_pages(imports(house, tmp_path, PAGES))) == [
        "waggle.gui.pages.home.page > waggle.gui.pages.live.page",
        "waggle.gui.pages.home.page > waggle.gui.pages.you.page",
        "waggle.gui.pages.live.page > waggle.gui.pages.home.page",
        "waggle.gui.pages.live.page > waggle.gui.pages.home.status_card",
    ]


def test_flat_pages_are_told_apart_by_what_they_are_made_of(house, tmp_path):
    sources = {
        "waggle.gui.pages.you.page": "from waggle.gui.pages.home import page as home, privacy",
        "waggle.gui.pages.home.page": "",
        "waggle.gui.pages.settings.sent_messages": "",
    }
    assert house.imports_between_pages(imports(house, tmp_path, sources)) == [
        "waggle.gui.pages.you.page > waggle.gui.pages.home.page"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "import waggle_lab.study.run",
        "from waggle_lab import study",
        "from waggle.lab import race",
        "from .lab import race",
        'importlib.import_module(f"waggle.lab.{name}")',
        'command = [sys.executable, "-m", "waggle_lab"]',
    ],
)
def test_each_way_to_the_laboratory_is_counted(house, tmp_path, line):
    assert house.laboratory_lines(tmp_path, tmp_path / "app/waggle/cli.py", ast.parse(line)) == [1]


@pytest.mark.parametrize("line", ["from waggle import labels", "import waggle.laboratory", '"see waggle_lab for more"'])
def test_what_only_sounds_like_the_laboratory_is_not(house, tmp_path, line):
    assert house.laboratory_lines(tmp_path, tmp_path / "app/waggle/cli.py", ast.parse(line)) == []


@pytest.mark.parametrize(("count", "names"), [(7, []), (8, ["Node"])])
def test_a_constructor_may_have_seven_parameters_beside_self(house, count, names):
    parameters = ", ".join(f"p{number}" for number in range(count - 2))
    tree = ast.parse(f"class Node:\n    def __init__(self, {parameters}, *rest, last=0): ...")
    assert house.constructors_over_7(tree) == names


@pytest.mark.parametrize(("count", "names"), [(12, []), (13, ["Node"])])
def test_a_class_may_have_twelve_public_methods(house, count, names):
    methods = [f"    def method_{number}(self): ..." for number in range(count)]
    private = [f"    def _private_{number}(self): ..." for number in range(count)]
    assert house.classes_over_12_public(ast.parse("\n".join(["class Node:", *methods, *private]))) == names


@pytest.mark.parametrize(
    ("figure", "most"),
    [
        ("files_flat_max", 20),
        ("classes_over_12_public", 0),
        ("constructors_over_7", 0),
        ("page_imports_page", 0),
        ("lab_imports_from_product", 0),
    ],
)
def test_what_belongs_together_is_grouped(sizes, figure, most):
    assert sizes[figure] <= most, sizes.get(f"{figure}_which", sizes.get(f"{figure}_folder"))


def write_runs(path: Path, runs: list[tuple[bool, int]], commit: str = "this") -> None:
    with path.open("a") as file:
        file.writelines(json.dumps({"commit": commit, "green": green, "load": load}) + "\n" for green, load in runs)


TEN_RUNS = [(True, 0), (True, 8)] * 5


@pytest.mark.parametrize(
    ("runs", "figure"),
    [([], None), (TEN_RUNS[:9], None), ([*TEN_RUNS[:9], (False, 8)], 9), ([(False, 0), (False, 8), *TEN_RUNS], 10)],
)
def test_only_the_last_ten_runs_of_the_suite_count_and_fewer_are_no_figure(house, tmp_path, runs, figure):
    path = tmp_path / "suite_soak.jsonl"
    write_runs(path, runs)
    assert house.suite_green_of_10(path, "this") == figure


@pytest.mark.parametrize("runs", [[(True, 0)] * 6 + [(True, 8)] * 4, [(True, 0)] * 5 + [(True, 4)] * 5])
def test_ten_green_runs_are_no_figure_unless_five_were_beside_the_full_load(house, tmp_path, runs):
    path = tmp_path / "suite_soak.jsonl"
    write_runs(path, runs)
    assert house.suite_green_of_10(path, "this") is None


def test_runs_of_another_source_do_not_count(house, tmp_path):
    path = tmp_path / "suite_soak.jsonl"
    write_runs(path, TEN_RUNS[:5], "this")
    write_runs(path, TEN_RUNS, "another")
    assert house.suite_green_of_10(path, "this") is None
    write_runs(path, TEN_RUNS[5:], "this")
    assert house.suite_green_of_10(path, "this") == 10


def test_all_runs_of_the_suite_are_counted_whatever_their_source(house, tmp_path):
    path = tmp_path / "suite_soak.jsonl"
    write_runs(path, [(True, 0), (False, 8)], "this")
    write_runs(path, [(True, 4)], "another")
    assert house.suite_runs(path) == {"suite_runs": 3, "suite_runs_green": 2, "suite_runs_loaded": 1}
    assert house.suite_runs(tmp_path / "none")["suite_runs"] == 0


@pytest.mark.parametrize(
    ("loads", "only", "missing"),
    [
        ([], None, [0, 8] * 5),
        ([0, 8, 0], None, [0, 8] * 3 + [8]),
        ([], "quiet", [0] * 5),
        ([0] * 5, "quiet", []),
        ([0] * 5, "loaded", [8] * 5),
        ([0] * 5 + [4] * 5, None, [8] * 5),
        ([0, 8] * 5, None, []),
    ],
)
def test_the_soak_of_the_suite_continues_with_the_runs_that_are_missing(monkeypatch, loads, only, missing):
    monkeypatch.syspath_prepend(str(MEASURED))
    suite_soak = importlib.import_module("suite_soak")
    assert suite_soak.missing_loads([{"load": load} for load in loads], 10, 8, only) == missing
