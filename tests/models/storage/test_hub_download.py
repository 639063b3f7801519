"""Downloads from a hub on this computer: its requests, the checks, and every failure."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import waggle
from full_disk import full_beyond
from models.local_hub import COMMIT, TOKEN, Hub, local_hub, no_hub
from waggle.core import paths
from waggle.core.errors import HubUnavailable, ModelError, Stopped
from waggle.core.resumable_download import PIECE
from waggle.models import tokenizer_conversion
from waggle.models.storage import hub_download as hub_module
from waggle.models.storage.hub_cache import remove
from waggle.models.storage.hub_download import fetch

NAME = "bees/tiny"
WEIGHTS = random.Random(0).randbytes(8 * PIECE + 1234)
WARNINGS: list[str] = []


@pytest.fixture
def hub() -> Iterator[Hub]:
    with local_hub() as local:
        local.add(NAME, paths.starter(), pytorch_model__bin=b"never", notes__md=b"never", model__safetensors=WEIGHTS)
        yield local


def quiet(_here: int, _total: int) -> None:
    pass


def get(
    hub: Hub, cache: Path, name: str = NAME, progress: Callable[[int, int], None] = quiet, warn=WARNINGS.append, **more
) -> Path:
    return fetch(name, cache, progress, warn=warn, endpoint=hub.endpoint, **more)


def refused(hub: Hub, cache: Path, name: str = NAME, **more) -> ModelError:
    with pytest.raises(ModelError) as caught:
        get(hub, cache, name, **more)
    assert caught.value.advice.endswith(".")
    return caught.value


def part_of(cache: Path) -> Path:
    return cache / "bees/.downloading-tiny/model.safetensors.part"


def test_only_what_is_needed_is_downloaded_and_told_and_the_second_time_nothing_is_asked(hub, tmp_path):
    progress = []
    folder = get(hub, tmp_path, progress=lambda here, total: progress.append((here, total)))
    assert folder == tmp_path / "bees/tiny"
    names = {"README.md", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}
    assert {path.name for path in folder.iterdir()} == {*names, "plan.json"}
    assert json.loads((folder / "plan.json").read_text())["commit"] == COMMIT
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    total = sum((folder / name).stat().st_size for name in names)
    assert progress[-1] == (total, total)
    assert [here for here, _ in progress] == sorted(here for here, _ in progress)
    requests_before = len(hub.requests)
    assert get(hub, tmp_path) == folder
    assert len(hub.requests) == requests_before, "everything is here: the network is left alone"


def test_a_download_killed_in_the_middle_goes_on_where_it_was(hub, tmp_path):
    hub.hold["model.safetensors"] = 5 * PIECE
    child = """
import sys
from pathlib import Path
from waggle.models.storage.hub_download import fetch
told = lambda here, total: print(here, flush=True)
fetch("bees/tiny", Path(sys.argv[1]), told, warn=print, endpoint=sys.argv[2])
"""
    small = sum(len(hub.repositories[NAME][name]) for name in hub_module.WORDS if name in hub.repositories[NAME])
    with subprocess.Popen([sys.executable, "-c", child, str(tmp_path), hub.endpoint], stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if int(line) >= small + 4 * PIECE:
                break
        process.kill()
    size_on_disk = part_of(tmp_path).stat().st_size
    assert size_on_disk >= 4 * PIECE
    requests_before = len(hub.requests)
    del hub.hold["model.safetensors"]
    progress = []
    folder = get(hub, tmp_path, progress=lambda here, _total: progress.append(here))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    later = hub.requests[requests_before:]
    assert {request.path.split("/")[-1] for request in later} == {"model.safetensors"}, (
        "no small file, nor the list, a second time"
    )
    assert {request.range for request in later} == {f"bytes={size_on_disk}-"}
    assert progress[0] > small + size_on_disk, "what is here counts as done"


def test_a_connection_that_breaks_is_made_again_and_nothing_comes_twice(hub, tmp_path):
    hub.cut["model.safetensors"] = [3 * PIECE, 6 * PIECE]
    get(hub, tmp_path)
    assert [request.range for request in hub.requests_for("cdn/bees/tiny/model.safetensors")] == [
        "",
        f"bytes={3 * PIECE}-",
        f"bytes={6 * PIECE}-",
    ]
    assert hub.bytes_sent["model.safetensors"] == len(WEIGHTS)


def test_a_hub_that_does_not_know_ranges_is_asked_from_the_start(hub, tmp_path):
    hub.cut["model.safetensors"], hub.knows_range = [3 * PIECE], False
    progress = []
    folder = get(hub, tmp_path, progress=lambda here, total: progress.append((here, total)))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert progress[-1][0] == progress[-1][1]


def test_a_stop_ends_it_at_once_and_keeps_what_is_there(hub, tmp_path):
    def stop(here: int, total: int) -> None:
        if here > total // 2:
            raise Stopped

    with pytest.raises(Stopped):
        get(hub, tmp_path, progress=stop)
    assert part_of(tmp_path).stat().st_size > len(WEIGHTS) // 4
    get(hub, tmp_path)
    assert hub.requests_for("cdn/bees/tiny/model.safetensors")[-1].range


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_arrives_damaged_is_thrown_away_and_fetched_once_more(hub, tmp_path, name):
    hub.damage[name] = 1
    warnings: list[str] = []
    folder = get(hub, tmp_path, warn=warnings.append)
    assert warnings == [f"{name} of bees/tiny arrived damaged and was thrown away."]
    assert (folder / name).read_bytes() == hub.repositories[NAME][name]


def test_a_file_that_arrives_damaged_twice_is_not_used(hub, tmp_path):
    hub.damage["model.safetensors"] = 2
    assert refused(hub, tmp_path).title == "model.safetensors of bees/tiny arrived damaged, twice."
    assert not part_of(tmp_path).exists()
    get(hub, tmp_path)


def test_a_file_longer_than_was_said_is_cut_off_and_refused(hub, tmp_path):
    hub.sizes["model.safetensors"] = 2 * PIECE
    assert "damaged, twice" in refused(hub, tmp_path).title
    assert hub.bytes_sent["model.safetensors"] <= 2 * len(WEIGHTS)


def test_a_model_of_an_unknown_kind_is_refused_before_its_weights_come(hub, tmp_path):
    config = json.loads(hub.repositories[NAME]["config.json"])
    hub.repositories[NAME]["config.json"] = json.dumps(config | {"model_type": "t5"}).encode()
    error = refused(hub, tmp_path)
    assert (error.title, error.advice) == (
        "Waggle cannot train models of the type t5.",
        "Choose another language model from Hugging Face.",
    )
    assert hub.requests_for("model.safetensors") == []
    assert not (tmp_path / "bees/.downloading-tiny").exists()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("tokenizer.json", b"{", "The tokenizer in"),
        ("tokenizer_config.json", b"{", "cannot be read"),
        ("config.json", b'{"vocab_size": 9}', "do not fit it"),
    ],
)
def test_a_model_whose_words_cannot_be_used_is_refused_before_its_weights_come(hub, tmp_path, name, content, why):
    files = hub.repositories[NAME]
    files[name] = json.dumps(json.loads(files[name]) | json.loads(content)).encode() if name == "config.json" else content
    assert why in refused(hub, tmp_path).title
    assert hub.requests_for("model.safetensors") == []
    assert not part_of(tmp_path).parent.exists()


def test_a_download_that_goes_on_while_memory_is_short_is_refused_and_kept(hub, tmp_path):
    def full(_folder: Path) -> None:
        raise ModelError("This model does not fit.", "Close other programs.")

    def stop(here: int, total: int) -> None:
        if here > total // 2:
            raise Stopped

    assert refused(hub, tmp_path, examine=full).title == "This model does not fit."
    assert not part_of(tmp_path).parent.exists(), "no weights have come: it is not wanted"
    with pytest.raises(Stopped):
        get(hub, tmp_path, progress=stop)
    size_on_disk = part_of(tmp_path).stat().st_size
    assert refused(hub, tmp_path, examine=full).title == "This model does not fit."
    get(hub, tmp_path)
    assert hub.requests_for("cdn/bees/tiny/model.safetensors")[-1].range == f"bytes={size_on_disk}-"


def test_a_model_with_pickles_only_is_refused(hub, tmp_path):
    del hub.repositories[NAME]["model.safetensors"]
    assert "only as pickles" in refused(hub, tmp_path).title
    assert len(hub.requests) == 1


def test_a_model_in_several_pieces_comes_with_its_index_and_no_path_of_the_hub_leaves_the_folder(hub, tmp_path):
    files = hub.repositories[NAME]
    del files["model.safetensors"]
    shards = {f"model-0000{i}-of-00002.safetensors": bytes([i]) * 100 for i in (1, 2)}
    files |= shards | {"model.safetensors.index.json": b"{}", "model-00001-of-../../../x.safetensors": b"x"}
    folder = get(hub, tmp_path)
    assert {path.name for path in folder.glob("*.safetensors*")} == {*shards, "model.safetensors.index.json"}


def test_a_model_with_a_tokenizer_of_an_older_form_is_downloaded_with_it(hub, tmp_path, monkeypatch):
    files = hub.repositories[NAME]
    words = files.pop("tokenizer.json")
    files |= {"vocab.json": b"{}", "merges.txt": b"", "tokenization_bees.py": b""}
    monkeypatch.setattr(tokenizer_conversion, "convert", lambda folder: (folder / "tokenizer.json").write_bytes(words))
    names = {path.name for path in get(hub, tmp_path).iterdir()}
    assert {"vocab.json", "merges.txt", "tokenizer.json"} < names
    assert "tokenization_bees.py" not in names


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json"])
def test_an_incomplete_model_is_refused(hub, tmp_path, missing):
    del hub.repositories[NAME][missing]
    assert refused(hub, tmp_path).title == f"bees/tiny has no {missing}."


@pytest.mark.parametrize("name", ["tiny", "../../etc/passwd", "bees/tiny/x", "bees/..", "bees/tiny@", "bees/tiny@a/b", ""])
def test_what_is_no_name_is_refused_before_the_hub_is_asked(hub, tmp_path, name):
    assert "is not the name of a model" in refused(hub, tmp_path, name).title
    assert hub.requests == []


def test_a_model_that_is_not_there_and_a_revision_that_is_not_there_are_told_apart(hub, tmp_path):
    assert refused(hub, tmp_path, "bees/none").title == "Hugging Face has no model bees/none."
    assert refused(hub, tmp_path, f"{NAME}@v9").title == "bees/tiny has no such revision."


def test_a_revision_has_a_folder_of_its_own(hub, tmp_path):
    assert get(hub, tmp_path, f"{NAME}@{COMMIT}") == tmp_path / f"bees/tiny@{COMMIT}"
    assert get(hub, tmp_path) == tmp_path / "bees/tiny"


def test_what_was_trained_is_downloaded_again_and_not_what_its_name_means_by_now(hub, tmp_path):
    get(hub, tmp_path)
    named = hub_module.name_and_commit(NAME, tmp_path)
    assert named == f"{NAME} {COMMIT}"
    remove(tmp_path / NAME)
    assert hub_module.name_and_commit(NAME, tmp_path) == ""
    hub.newer[NAME] = {"generation_config.json": b"{}"}
    trained_folder = get(hub, tmp_path, commit=COMMIT)
    assert hub_module.name_and_commit(NAME, tmp_path) == named
    assert (trained_folder / "generation_config.json").read_bytes() != b"{}"
    remove(trained_folder)
    assert (get(hub, tmp_path) / "generation_config.json").read_bytes() == b"{}"
    gone = refused(hub, tmp_path / "other", commit="0" * 40)
    assert gone.title == "Hugging Face no longer has bees/tiny as it was when its training here began."


def test_a_model_with_a_licence_to_accept_says_how_and_comes_with_the_token(hub, tmp_path):
    hub.gated.add(NAME)
    error = refused(hub, tmp_path)
    assert "accepted its licence" in error.title
    assert "https://huggingface.co/bees/tiny" in error.advice
    assert "waggle token" in error.advice
    get(hub, tmp_path, token=lambda: TOKEN)
    requests = hub.requests_for("cdn/bees/tiny/model.safetensors")
    assert requests
    assert {request.token for request in requests} == {""}, "the token is for the hub, not for where it sends us"


def test_the_token_is_not_told_where_the_model_is_free(hub, tmp_path):
    def nobody() -> str:
        raise AssertionError("nobody needs the token")

    get(hub, tmp_path, token=nobody)
    assert {request.token for request in hub.requests} == {""}


def test_a_private_model_comes_with_the_token_only(hub, tmp_path):
    hub.private.add(NAME)
    assert refused(hub, tmp_path).title == "Hugging Face has no model bees/tiny."
    assert refused(hub, tmp_path, token=lambda: "hf_wrong").title == "Hugging Face has no model bees/tiny."
    get(hub, tmp_path, token=lambda: TOKEN)


def test_without_a_connection_it_says_so_and_keeps_what_has_come(hub, tmp_path):
    hub.cut["model.safetensors"] = [PIECE] * 9
    error = refused(hub, tmp_path)
    assert "cannot be reached" in error.title
    assert isinstance(error, HubUnavailable)
    assert part_of(tmp_path).stat().st_size == PIECE
    with no_hub() as hub.endpoint:
        assert "cannot be reached" in refused(hub, tmp_path / "new").title


@pytest.mark.parametrize(("status", "passes"), [(503, True), (429, True), (418, False)])
def test_trouble_of_the_hub_itself_may_pass(hub, tmp_path, status, passes):
    hub.trouble = status
    error = refused(hub, tmp_path)
    assert (error.title, isinstance(error, HubUnavailable)) == (
        f"Hugging Face answered {status} when asked for bees/tiny.",
        passes,
    )


@pytest.mark.parametrize(("status", "words"), [(511, "log in first"), (407, "refused the connection: 407")])
def test_what_stands_before_the_hub_is_named_with_what_to_do(hub, tmp_path, status, words):
    hub.trouble = status
    assert words in str(refused(hub, tmp_path))


def test_a_disk_with_too_little_room_is_refused_with_numbers_before_anything_comes(hub, tmp_path):
    hub.sizes["model.safetensors"] = 10**18
    error = refused(hub, tmp_path)
    assert error.title.startswith("bees/tiny needs 1,000,000,0")
    assert "MB free" in error.title
    assert len(hub.requests) == 1


@pytest.mark.parametrize("says", [b"<html>Log in</html>", b"[]", b"{}", b"1", b'{"id": "x/y", "siblings": [{}]}', b"\xff"])
def test_a_network_that_answers_in_the_place_of_the_hub_is_named(hub, tmp_path, says):
    hub.says = says
    assert refused(hub, tmp_path).title in ("What answered is not Hugging Face.", "bees/tiny has its weights nowhere.")


def test_a_disk_that_takes_no_more_is_named_and_what_has_come_is_kept(hub, tmp_path):
    with full_beyond(3 * PIECE):
        error = refused(hub, tmp_path)
    assert error.title == "bees/tiny cannot be written to the disk: File too large."
    assert part_of(tmp_path).stat().st_size == 3 * PIECE
    get(hub, tmp_path)
    assert hub.requests_for("cdn/bees/tiny/model.safetensors")[-1].range == f"bytes={3 * PIECE}-"


def test_two_programs_do_not_download_the_same_model(hub, tmp_path):
    def meanwhile(_here: int, _total: int) -> None:
        assert "being downloaded by another program" in refused(hub, tmp_path).title

    get(hub, tmp_path, progress=meanwhile)


def test_a_model_that_is_removed_is_gone_or_whole_also_after_a_kill_in_the_middle(hub, tmp_path):
    code = """
import os, sys
from pathlib import Path
from waggle.models.storage import hub_cache
def hear(event, arguments):
    if event == "os.remove":
        os._exit(9)
sys.addaudithook(hear)
hub_cache.remove(Path(sys.argv[1]))
"""
    folder = get(hub, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(Path(waggle.__file__).parents[1])}
    killed = subprocess.run([sys.executable, "-c", code, str(folder)], env=environment, check=False)
    assert killed.returncode == 9
    assert not folder.exists()
    get(hub, tmp_path)
    assert remove(folder)
    assert [path.name for path in folder.parent.iterdir() if not path.name.endswith(".lock")] == []


@pytest.mark.parametrize("plan", [b"{", None])
def test_files_whose_plan_is_lost_are_fetched_anew(hub, tmp_path, plan):
    unfinished = part_of(tmp_path).parent
    unfinished.mkdir(parents=True)
    if plan is not None:
        (unfinished / "plan.json").write_bytes(plan)
    (unfinished / "config.json").write_bytes(b"{}")
    assert (get(hub, tmp_path) / "config.json").read_bytes() == hub.repositories[NAME]["config.json"]


def test_a_network_that_leads_in_circles_is_named(hub, tmp_path):
    hub.circles = True
    assert "in circles" in refused(hub, tmp_path).title


def test_a_model_in_gguf_names_what_to_choose_instead(hub, tmp_path):
    hub.repositories["bees/tiny-GGUF"] = {"tiny.Q4_K_M.gguf": b"GGUF", "README.md": b""}
    assert refused(hub, tmp_path, "bees/tiny-GGUF").title == "bees/tiny-GGUF has GGUF files only, of which Waggle downloads none."


def test_shards_named_after_the_whole_file_are_downloaded_too(hub, tmp_path):
    files = hub.repositories[NAME]
    shard = "model.safetensors-00001-of-00001.safetensors"
    index = json.dumps({"weight_map": {"a": shard}}).encode()
    hub.repositories["bees/shards"] = {name: files[name] for name in files if name != "model.safetensors"} | {
        shard: WEIGHTS, "model.safetensors.index.json": index,
    }  # fmt: skip
    assert (get(hub, tmp_path, "bees/shards") / shard).read_bytes() == WEIGHTS


def test_the_number_of_weights_is_known_before_they_have_arrived(hub, tmp_path):
    hub.facts[NAME] = {"safetensors": {"parameters": {"F32": 1234}, "total": 1234}}
    known = []
    get(hub, tmp_path, examine=lambda folder: known.append(hub_module.planned_weights(folder)))
    assert known == [1234]
    assert hub_module.planned_weights(tmp_path) == 0
