"""Test the report of a study: complete, escaped, honest about its seeds, and with dev runs separate."""

import base64
import csv
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from lab.study.test_statistics import make_run, scored_run
from waggle.practice.results import Aha, Run
from waggle_lab.study import report
from waggle_lab.study.comparison import CONFIGURATIONS
from waggle_lab.study.report.charts import line_over_seeds, line_styles
from waggle_lab.study.report.number_format import percent_change, span, three_digits
from waggle_lab.study.report.page import render

TABLES = ("runs", "rounds", "heldout", "specialties")
HOSTILE = '</td><script>alert("1")</script>&'
VOID = {"meta", "br", "hr", "link", "img"}


class Reader(HTMLParser):
    """Fails on a tag that is not closed in order; collects tags, text with the descriptions of pictures, and sections."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.sections: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.text += f" {dict(attrs).get('alt', '')} "
        if tag == "section":
            self._before = len(self.text)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "section":
            self.sections.append(" ".join(self.text[self._before :].split()))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def pictures(self) -> list[str]:
        """The SVG of each."""
        sources = [str(attributes["src"]) for tag, attributes in self.tags if tag == "img"]
        assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
        return [base64.b64decode(source.partition(",")[2]).decode() for source in sources]


def study() -> list[Run]:
    """Two seeds of every configuration in two settings, one of a stranger, and a sweep on the dev split."""
    runs = []
    for place, name in enumerate((*CONFIGURATIONS, HOSTILE)):
        for seed in (4, 5) if name != HOSTILE else (4,):
            fields = {"seed": seed, "reward": (0.01 * place + 0.001 * seed,) * 60, "per_round": 64 - place}
            aha = Aha(node=1, specialty="bf", round=9, learned_from=0)
            runs.append(make_run(name, held_out=((0.0, 0.1 + 0.01 * place),) * 2, ahas=(aha,), **fields))
            runs.append(make_run(name, setting="heterogeneous", models=("wide", "deep"), **fields))
    sweep = [(1e-4, 0.771), (3e-4, 0.883)]
    return runs + [scored_run("4/4", score, rate=rate, split="dev", seed=77) for rate, score in sweep]


def parsed(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def section(runs: Sequence[Run], head: str) -> str:
    """All text of the part that begins with this heading, descriptions of pictures as well."""
    return part(parsed(render(runs, command="")), head)


def part(page: Reader, head: str) -> str:
    return next(words for words in page.sections if words.startswith(head))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "new" / "report.html"
    report.write(study(), path, command="waggle-lab swarm <all>")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text: str) -> Reader:
    return parsed(text)


def test_the_page_is_whole_and_needs_nothing_else(text: str, page: Reader) -> None:
    assert len(text) < 1_000_000
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object"}
    assert not re.search(r"https?://|@import|url\(", text)
    assert all(not name.startswith("on") and name != "href" for _, attributes in page.tags for name in attributes)
    for words in ("waggle-lab swarm <all>", "0123456789ab", "4, 5", "14.0 CPU hours"):
        assert words in page.text


def test_the_same_runs_give_the_same_page() -> None:
    assert render(study()[:3], command="") == render(study()[:3], command="")


def test_every_configuration_and_every_seed_stands_there(text: str, page: Reader) -> None:
    assert all(name in page.text for name in (*CONFIGURATIONS, HOSTILE))
    assert "<script" not in text
    assert "&lt;/td&gt;&lt;script&gt;" in text
    sparse = part(page, "Sparse")
    assert "0.84 0.90" in sparse  # the cumulative rewards of 6/2's two seeds: 60 rounds of .024 and .025 less .01
    for title in ("Training reward by round", "Held-out score by completions generated", "Final held-out score by specialty"):
        assert title in sparse
    assert "Who gains" not in sparse
    unequal = part(page, "Heterogeneous")
    assert "against 8/0-filtered" in unequal.partition("Who gains")[2], "and against the control with equal privilege"
    assert "First right answers" not in unequal


def test_pictures_and_tables_can_be_read_aloud(page: Reader) -> None:
    assert len(page.pictures) == 8
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    glance = part(page, "Sparse").partition("Cumulative training reward: ")[2]
    assert glance.startswith("8/0 0.27 ["), "means stand there with their intervals"


def test_pictures_hold_their_words_as_text_and_run_nothing(page: Reader) -> None:
    for picture in page.pictures:
        elements = list(ElementTree.fromstring(picture).iter())
        assert not [element for element in elements if element.tag.endswith("}script")]
        words = [element.text or "" for element in elements if element.tag.endswith("}text")]
        assert any(HOSTILE in text for text in words), "a dash and a colour mean nothing without a name"


def test_dev_runs_stay_out_of_the_test_tables(page: Reader) -> None:
    sparse, sweep = part(page, "Sparse"), part(page, "How the learning rates were chosen")
    assert "88.3%" not in sparse
    assert "44.1%" not in sparse
    assert "44.1%" in sweep  # the mean height on the way to .883
    assert "at the edge of those tried" in sweep
    tested = [run for run in study() if run.key.split == "test"]
    assert sparse == section(tested, "Sparse")
    assert report.figures(study()) == report.figures(tested)


def test_a_dev_study_shows_what_was_played_at_the_best_rates_beside_the_sweep_that_chose_them() -> None:
    sweep = [
        scored_run(name, score, rate=rate, split="dev", seed=77)
        for name in ("8/0", "4/4")
        for rate, score in ((1e-4, 0.771), (3e-4, 0.883))
    ]
    reported = [scored_run(name, 0.2, rate=3e-4, split="dev", seed=seed) for name in ("8/0", "4/4") for seed in (1, 2)]
    sparse = section(sweep + reported, "Sparse")
    assert "20.0%" in sparse
    assert "88.3%" not in sparse, "a run that chose a rate is no result at that rate"
    assert "44.1%" in section(sweep + reported, "How the learning rates were chosen")
    for unfinished in (sweep, sweep[:3]):
        headings = parsed(render(unfinished, command="")).sections
        assert not [head for head in headings if head.startswith("Sparse")], "a sweep alone compares rates, not configurations"


def test_one_seed_is_flagged() -> None:
    text = section([scored_run("8/0", 0.1), scored_run("default", 0.2)], "Sparse")
    assert text.count("one seed: no interval") == 2
    assert "○ one seed" in text
    assert "▲" not in text


@pytest.mark.parametrize("runs", [[], [scored_run("2/6", 0.0, reward=(0.0,) * 5)], [scored_run("2/6", 0.1, split="dev")]])
def test_a_study_that_has_hardly_begun_has_a_page_too(runs: Sequence[Run], tmp_path: Path) -> None:
    assert parsed(render(runs, command="")).sections
    report.write_tables(runs, tmp_path)
    assert "default_last_over_peak" not in report.figures(runs)


def test_the_tables_hold_every_run(tmp_path: Path) -> None:
    report.write_tables(study(), tmp_path)
    rows = {name: list(csv.DictReader((tmp_path / f"{name}.csv").open(newline=""))) for name in TABLES}
    assert len(rows["runs"]) == len(study())
    assert {row["split"] for row in rows["runs"]} == {"test", "dev"}
    assert len(rows["rounds"]) == sum(len(run.reward) // 10 for run in study())
    assert len(rows["heldout"]) == sum(len(run.models) * len(run.measured_at) for run in study())
    assert len(rows["specialties"]) == sum(len(run.specialties) for run in study())
    first_run = study()[0]
    last = {"specialty": first_run.specialties[0], "heldout_final": str(first_run.specialty_held_out[0][-1])}
    assert last.items() <= rows["specialties"][0].items()
    first = rows["rounds"][0]
    assert (first["round"], first["reward"], first["completions"]) == ("10", "0.004", "640")
    assert (first["entropy"], first["external_share"], first["length"]) == ("1.0", "0.0", "")
    assert rows["runs"][0]["rounds_to_0.05"] == ""
    assert HOSTILE in {row["configuration"] for row in rows["heldout"]}


def test_the_figures_are_those_of_the_test_runs() -> None:
    rewards = {"8/0": (1.0, 2.0, 3.0), "default": (2.0, 4.0, 6.0)}
    runs = [
        scored_run(name, 0.2, seed=seed, reward=(total / 40,) * 40)
        for name, totals in rewards.items()
        for seed, total in enumerate(totals)
    ]
    figures = json.loads(json.dumps(report.figures(runs)))
    assert figures["default_last_over_peak"] == pytest.approx(1.0)
    assert figures["sparse"]["8/0"]["reward_cumulative"] == pytest.approx([2.0, 2 - 2.48417, 2 + 2.48417], abs=1e-4)
    assert figures["sparse"]["default"]["reward_cumulative_ratio"] == pytest.approx([2.0, 2.0, 2.0])
    assert figures["sparse"]["default"]["heldout_auc"] == pytest.approx([0.1, 0.1, 0.1])


def test_the_default_is_compared_with_training_alone_with_filtered_groups_and_with_the_papers_best() -> None:
    scores = {"8/0": 0.1, "8/0-filtered": 0.24, "4/4": 0.2, "default": 0.3}
    runs = [scored_run(name, score, seed=seed) for name, score in scores.items() for seed in (1, 2, 3)]
    text = section(runs, "Sparse")
    assert "+200% against 8/0 ▲ higher" in text
    assert "+50% against 4/4 ▲ higher" in text
    assert "+25% against 8/0-filtered ▲ higher" in text
    sparse_figures = report.figures(runs)["sparse"]
    assert sparse_figures["default"]["heldout_final_ratio_to_4/4"] == pytest.approx([1.5, 1.5, 1.5])
    assert sparse_figures["default"]["heldout_final_ratio_to_8/0-filtered"] == pytest.approx([1.25, 1.25, 1.25])
    assert "At equal cost in completions" in text
    assert not [name for name in sparse_figures["8/0-filtered"] if "_ratio_to_" in name]
    strangers = [scored_run("default", 0.3, seed=9), scored_run("4/4", 0.2, seed=8)]
    assert "against 4/4" not in section(strangers, "Sparse"), "nothing is paired"


def test_the_default_is_read_beside_each_baseline_where_both_generated_as_much() -> None:
    runs = [
        make_run(name, held_out=(heights,) * 2, seed=seed, reward=(0.1,) * 40, per_round=per_round)
        for name, heights, per_round in (("8/0-filtered", (0.0, 0.4), 200), ("4/4", (0.0, 0.1), 50), ("default", (0.0, 0.3), 100))
        for seed in (1, 2)
    ]
    default_figures = report.figures(runs)["sparse"]["default"]
    # filtered had generated as much as the default ever did when it was half way: .2 on its straight line
    assert default_figures["heldout_at_equal_cost_ratio_to_8/0-filtered"] == pytest.approx([1.5, 1.5, 1.5])
    assert default_figures["heldout_at_equal_cost_ratio_to_4/4"] == pytest.approx([1.5, 1.5, 1.5])
    assert default_figures["heldout_final_ratio_to_4/4"] == pytest.approx([3.0, 3.0, 3.0])
    assert "4,000" in section(runs, "Sparse")


def test_entropy_stands_there_always_and_others_share_where_anything_was_shared() -> None:
    alone, mixed = make_run("8/0"), make_run("4/4")
    assert "Entropy by round" in section([alone], "Sparse")
    assert "Others' share" not in section([alone], "Sparse")
    mixed = msgspec.structs.replace(mixed, entropy=(0.5, 0.4, 0.3, 0.2), external_share=(0.5, 0.6, 0.7, 0.8))
    text = section([alone, mixed], "Sparse")
    assert "At the end of each line: 8/0 1.00, 4/4 0.20." in text
    assert "At the end of each line: 4/4 80%." in text, "who shares nothing has no line there"


def test_a_line_joins_seeds_that_end_at_different_places() -> None:
    line = line_over_seeds([((0, 10, 20), (0.0, 0.1, 0.2)), ((0, 20, 40), (0.0, 0.4, 0.8))])
    assert tuple(line.x) == (0, 10, 20)
    assert line.mean == pytest.approx((0.0, 0.15, 0.3))
    assert (line.low[-1], line.high[-1]) == pytest.approx((0.2, 0.4))
    assert line_over_seeds([((0, 10, 20), (0.0, 0.1, 0.2))], end=15).mean[-1] == pytest.approx(0.15)


def test_a_long_curve_is_drawn_with_few_points_and_to_its_end() -> None:
    xs = range(1, 2001)
    line = line_over_seeds([(xs, [x / 1000 for x in xs])])
    assert (line.x[0], line.x[-1]) == (1, 2000)
    assert len(line.x) == 60
    assert line.mean == pytest.approx(line.x / 1000)


def test_no_two_of_28_strategies_look_the_same() -> None:
    styles = line_styles([*CONFIGURATIONS, *(f"strategy {number}" for number in range(28))])
    assert len(set(styles.values())) == len(CONFIGURATIONS) + 28


def test_numbers_as_a_person_reads_them() -> None:
    assert [three_digits([top])(top) for top in (0.1234, 1.234, 12.34, 1234.5)] == ["0.123", "1.23", "12.3", "1,234"]
    assert [percent_change(ratio) for ratio in (1.45, 0.5, 12.0, 1e9)] == ["+45%", "-50%", "+1,100%", "> +9,999%"]
    assert [span(seeds) for seeds in ([0], [0, 1], [0, 1, 2], [0, 1, 3])] == ["0", "0, 1", "0–2", "0, 1, 3"]
