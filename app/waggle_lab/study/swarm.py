"""`waggle-lab swarm`: play simulated swarms in several configurations, and report whether sharing helps.

Finished runs are saved in a file of the output folder, unfinished ones every few minutes (unfinished_runs.py), so a study can be
interrupted and continued.
Not measured: cost in seconds (runs share one computer), and real networks.
"""

import argparse
import contextlib
import hashlib
import math
import multiprocessing
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from tqdm import tqdm

from waggle.core import paths
from waggle.core.errors import LabError
from waggle.engine.storage import run_file
from waggle.models import memory_fit
from waggle.models.shared.configuration import model_config
from waggle.models.shared.training_mode import OPTIMIZERS, Method
from waggle.models.storage.checkpoint import base_of
from waggle.network.exchange.pool import CAPACITY
from waggle.practice.results import Book, Key, Run
from waggle.practice.simulated_swarm import Weather
from waggle.sapo.stages import RoundSettings
from waggle_lab import provenance
from waggle_lab.starter_model.setting_models import SETTINGS
from waggle_lab.study import plan, report, unfinished_runs
from waggle_lab.study.comparison import CONFIGURATIONS
from waggle_lab.study.plan import Study
from waggle_lab.study.unfinished_runs import Source, UnfinishedRuns
from waggle_lab.study.worker import PreparedStudy, charter_of, play, prepare, start_worker

Number = TypeVar("Number", int, float)
SETTINGS_BY_DEFAULT = "sparse"
CONFIGURATIONS_BY_DEFAULT = "8/0,4/4,default"
CONTINUE = "Finished runs and the last saves of others are kept; continue with --resume."
PRESETS = {"paper": plan.paper, "options": plan.options}
# By default glibc returns large blocks to the system at once and maps them again in small pages: a fifth of a small model's time.
ALLOCATOR_SETTINGS = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--paper", action="store_true", help="the paper's table, extended: about twelve hours of one core")
    parser.add_argument("--options", action="store_true", help="every strategy and update rule, on dev questions")
    parser.add_argument(
        "--settings", default=SETTINGS_BY_DEFAULT, help="sparse, identical, diversified, heterogeneous; several with commas"
    )
    parser.add_argument(
        "--configurations",
        default=CONFIGURATIONS_BY_DEFAULT,
        help="default, 8/0-filtered, published or I/J[:strategy[:rule[+rule]]]; behind each, options: "
        + ", ".join(f":{name}=" for name in plan.NAME_OPTIONS),
    )
    parser.add_argument("--strategy", default="", help="sharing strategy of every I/J that names none")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of each run")
    parser.add_argument("--seeds", default="1,2,3", help="a run for each; several with commas")
    parser.add_argument(
        "--rates",
        default="",
        help="learning rates of the first model; those of others are in proportion (default: the app's). With several, each "
        "configuration gets its best",
    )
    parser.add_argument("--nodes", type=int, default=8, help="in each swarm")
    parser.add_argument("--asked", type=int, default=0, help="how many specialties each node asks about (default: all)")
    parser.add_argument("--charter", default="", help="a charter file")
    parser.add_argument(
        "--starters",
        default="",
        help="model folders instead of a setting's, each with =METHOD behind it or not; several with commas",
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where models compute (default: %(default)s)")
    parser.add_argument("--measure-every", type=int, default=25, help="rounds between held-out scores (default: %(default)s)")
    parser.add_argument(
        "--longest", type=int, default=RoundSettings().max_new, help="maximum tokens of a completion (default: %(default)s)"
    )
    parser.add_argument(
        "--split",
        choices=("dev", "test"),
        default="test",
        help="of the reserved questions: dev to choose defaults, test to report",
    )
    parser.add_argument("--delay", type=int, default=1, help="rounds until a group arrives")
    parser.add_argument("--loss", type=float, default=0.0, help="share of groups that are lost")
    parser.add_argument("--offline", type=float, default=0.0, help="share of rounds that a node is away")
    parser.add_argument(
        "--pool", type=int, default=CAPACITY, help="external groups that a node's pool holds (default: %(default)s)"
    )
    parser.add_argument("--speeds", default="1", help="rounds that a node plays while the fastest plays one; several with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="swarms to play at once, one core each")
    parser.add_argument("--out", type=Path, default=Path("lab"), help="folder for runs, tables and report.html")
    parser.add_argument(
        "--cache", type=Path, default=paths.cache() / "lab", help="folder for the models of the settings, which are trained once"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue the study in that folder, unfinished runs at their last save"
    )
    parser.add_argument(
        "--save-every",
        type=float,
        default=10.0,
        metavar="MINUTES",
        help="minutes between two saves of an unfinished run: 12 bytes for each weight that is trained of each node, and twice "
        "that while it is written; 0: none (default: %(default)g)",
    )
    parser.add_argument(
        "--report", action="store_true", help="play nothing, only write the report of the finished runs in that folder"
    )


def run(arguments: argparse.Namespace) -> int:
    """Play the missing runs and write the report; returns the exit code."""
    study = study_of(arguments)
    command = shlex.join(["waggle-lab", "swarm", *_public_options(sys.argv)])
    if arguments.report:
        book = Book(arguments.out / "runs.jsonl", Run)
        if not book.runs:
            raise LabError(f"{arguments.out} has no finished run.", "Choose another --out.")
        write_report(book, arguments.out, command)
        return 0
    book = open_book(arguments.out, study, resume=arguments.resume)
    try:
        try:
            play_all(study, book, arguments.out, arguments.cache, jobs=arguments.jobs, save_every=60 * arguments.save_every)
        finally:
            # Read it again: after Ctrl+C, a written run may be missing from our copy.
            book = Book(arguments.out / "runs.jsonl", Run)
            if book.runs:
                write_report(book, arguments.out, command)
    except KeyboardInterrupt:
        raise LabError("Stopped.", CONTINUE) from None
    except OSError as error:
        raise LabError(f"The study cannot continue: {error.strerror}.", CONTINUE) from error
    return 0


def _public_options(argv: Sequence[str]) -> list[str]:
    """The options of the command line, without folders of this computer, because reports are published."""
    words = list(argv[argv.index("swarm") + 1 :]) if "swarm" in argv else []
    private = {i + step for i, word in enumerate(words) if word in ("--cache", "--out") for step in (0, 1)}
    public = [word for i, word in enumerate(words) if i not in private and not word.startswith(("--cache=", "--out="))]
    return [_without_folders(word) for word in public]


def _without_folders(word: str) -> str:
    """`--starters=/home/ann/a=lora,/home/ann/b` as `--starters=a=lora,b`."""
    option, equals, values = word.partition("=") if word.startswith("--") else ("", "", word)
    return option + equals + ",".join(Path(value).name if Path(value).is_absolute() else value for value in values.split(","))


def study_of(arguments: argparse.Namespace) -> Study:
    """The study that the arguments describe; raises LabError."""
    if arguments.jobs < 1:
        raise LabError("A study needs at least one job.")
    if not 0 <= arguments.save_every < math.inf:
        raise LabError(f"--save-every {arguments.save_every:g} is not a number of minutes.", "For example: --save-every 10")
    if arguments.paper and arguments.starters:
        arguments = _paper_with_models(arguments)
    for name, make_study in PRESETS.items():
        if getattr(arguments, name):
            _refuse_others(arguments, name)
            return make_study()
    names = [_with_strategy(name, arguments.strategy) for name in plan.names_in(arguments.configurations)]
    seed_numbers = tuple(dict.fromkeys(_numbers("--seeds", arguments.seeds, int)))
    seeds = dict.fromkeys(names, seed_numbers)
    _refuse_duplicates(seeds)
    folders, methods = _starters(arguments.starters)
    settings = ["own"] if folders else list(dict.fromkeys(arguments.settings.split(",")))
    if unknown := set(settings) - {"own", *SETTINGS}:
        raise LabError(f"There is no setting {unknown.pop()}.", f"Choose from {', '.join(SETTINGS)}.")
    if folders and arguments.settings != SETTINGS_BY_DEFAULT:
        raise LabError("--starters and --settings do not go together.", "A setting has models of its own.")
    if not folders and (with_form := next((name for name in names if plan.configuration(name).prompt_form), "")):
        raise LabError(f"{with_form} says how models of --starters are asked, and there are none.", "Leave prompt= out.")
    if min(arguments.rounds, arguments.nodes, arguments.longest, arguments.measure_every) < 1:
        raise LabError("A study needs at least one round, one node, one token and one round between two scores.")
    specialties = len(charter_of(arguments.charter).specialties)
    if not 0 <= arguments.asked <= specialties:
        raise LabError(f"A node cannot ask about {arguments.asked} specialties.", f"The charter has {specialties}.")
    rates = _numbers("--rates", arguments.rates or repr(_default_rate(folders, methods)), float)
    if not all(0 < rate <= 1e-1 for rate in rates):
        raise LabError(f"--rates {arguments.rates} are not learning rates.", "For example: --rates 2.5e-4,5e-4,1e-3")
    return Study(
        parts=tuple(
            plan.Part(
                setting=setting,
                rounds=arguments.rounds,
                seeds=seeds,
                folders=folders,
                methods=methods,
                specialties_per_node=arguments.asked,
            )
            for setting in settings
        ),
        split=arguments.split,
        rates=tuple(dict.fromkeys(rates)),
        nodes=arguments.nodes,
        charter=arguments.charter,
        longest=arguments.longest,
        device=arguments.device,
        measure_every=arguments.measure_every,
        weather=Weather(
            delay=arguments.delay,
            loss=arguments.loss,
            offline=arguments.offline,
            pool=arguments.pool,
            speeds=_numbers("--speeds", arguments.speeds, float),
        ),
    )


def _numbers(option: str, text: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise LabError(f"{option} {text} is not a list of numbers.", f"For example: {option} 1,2,3") from None


def _with_strategy(name: str, strategy: str) -> str:
    """Add the strategy to an I/J that names none; I/0 shares nothing, so it stays as it is."""
    ratio = name.split(":")[0]
    match = plan.CONFIGURATION_PATTERN.match(ratio)
    names_one = name.removeprefix(ratio).startswith(":") and "=" not in name.split(":")[1]
    if not strategy or not match or not int(match[2]) or names_one:
        return name
    return f"{ratio}:{strategy}{name.removeprefix(ratio)}"


def _paper_with_models(arguments: argparse.Namespace) -> argparse.Namespace:
    """`--paper --starters FOLDER`: the paper's configurations, and everything else as the options say."""
    if arguments.configurations != CONFIGURATIONS_BY_DEFAULT:
        raise LabError("--paper and --configurations do not go together.", "--paper decides which configurations are played.")
    changed = argparse.Namespace(**vars(arguments))
    changed.paper, changed.configurations = False, ",".join(CONFIGURATIONS)
    return changed


def _starters(text: str) -> tuple[tuple[str, ...], tuple[Method, ...]]:
    """The folders of `--starters`, and how each model is trained; raises LabError."""
    folders: list[str] = []
    methods: list[Method] = []
    for word in filter(None, text.split(",")):
        folder, _, name = word.partition("=")
        method = next((method for method in OPTIMIZERS if method == (name or "full")), None)
        if method is None:
            raise LabError(f"A model cannot be trained by {name}.", f"Choose from {', '.join(OPTIMIZERS)}.")
        path = Path(os.path.expanduser(folder)).resolve()  # one folder has one name: the starter is known by it
        if not (path / "config.json").is_file():
            raise LabError(f"There is no model in {folder}.", "--starters takes transformers folders.")
        folders.append(str(path))
        methods.append(method)
    return tuple(folders), tuple(methods) or ("full",)


def _default_rate(folders: Sequence[str], methods: Sequence[Method]) -> float:
    """The app's learning rate for the first of these models, to which the others' are relative; without models, the starter's."""
    if not folders:
        return RoundSettings().learning_rate
    return memory_fit.rate_for(model_config.read(Path(folders[0])), methods[0])


def _refuse_duplicates(names: Iterable[str]) -> None:
    """Refuse two names of one configuration, which would be played as two and reported as one; raises LabError."""
    names_by_configuration: dict[plan.Configuration, str] = {}
    for name in names:
        first = names_by_configuration.setdefault(msgspec.structs.replace(plan.configuration(name), name=""), name)
        if first != name:
            raise LabError(f"{first} and {name} are the same configuration.", "Leave one of them out.")


def _refuse_others(arguments: argparse.Namespace, preset: str) -> None:
    """Refuse options that a preset decides; raises LabError."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    allowed = {preset, "jobs", "out", "cache", "resume", "save_every", "report"}
    defaults = vars(parser.parse_args([]))
    if changed := [name for name, value in defaults.items() if name not in allowed and getattr(arguments, name) != value]:
        raise LabError(f"--{preset} and --{changed[0]} do not go together.", f"--{preset} decides what is played.")


def open_book(folder: Path, study: Study, *, resume: bool) -> Book[Run]:
    """The finished runs of a folder. Raises LabError if it has another study, or this one and `resume` is false."""
    description_path, runs_path = folder / "study.json", folder / "runs.jsonl"
    if description_path.exists() and (runs_path.exists() or unfinished_runs.folders(folder)):
        if not resume:
            raise LabError(f"{folder} holds a study already.", "Add --resume to continue it, or choose another --out.")
        if description_path.read_bytes() != _description(study):
            raise LabError(f"{folder} holds another study.", "Choose another --out.")
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            description_path.write_bytes(_description(study))
        except OSError as error:
            raise LabError(f"{folder} cannot be written: {error.strerror}.", "Choose another --out.") from error
    return Book(runs_path, Run)


def _description(study: Study) -> bytes:
    folders = [folder for part in study.parts for folder in part.folders]
    description = {
        "study": study,
        "configurations": study.configurations,
        "charter": charter_of(study.charter).digest.hex(),
        "models": {folder: base_of(Path(os.path.expanduser(folder))) for folder in folders},
    }
    return msgspec.json.format(msgspec.json.encode(description)) + b"\n"


def play_all(study: Study, book: Book[Run], folder: Path, cache: Path, *, jobs: int, save_every: float) -> None:
    """Play every missing run, `jobs` at a time, and save each when it is finished, and every so many seconds before.

    Raises LabError.
    """
    description = hashlib.sha256(_description(study)).hexdigest()
    unfinished = UnfinishedRuns(folder.absolute(), Source(description, provenance.commit(), run_file.versions()))
    for run in book.runs:  # a kill may have left its save
        unfinished.remove(run.key)
    if next(study.missing(book), None) is None:  # and train no models for nothing
        return
    unfinished.require_continuable()
    prepared = prepare(study, cache, unfinished, save_every)
    context = multiprocessing.get_context("spawn")
    reports, stop = context.Queue(), context.Event()
    os.environ.update(ALLOCATOR_SETTINGS)  # the workers inherit it; glibc reads it when a process starts
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=start_worker, initargs=(reports, stop))
    rounds_played = sum(len(run.reward) for run in book.runs) + unfinished.rounds()
    with (
        tqdm(total=study.total(), initial=rounds_played, unit=" rounds", file=sys.stderr, smoothing=0.02) as bar,
        _progress(bar, reports),
    ):
        try:
            _play(study, book, executor, prepared, jobs, stop)
        except BrokenProcessPool as error:
            raise LabError("A worker process of the study ended unexpectedly.", CONTINUE) from error
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()


def _play(
    study: Study, book: Book[Run], executor: ProcessPoolExecutor, prepared: PreparedStudy, jobs: int, stop: Any
) -> None:  # fmt: skip
    """Play until no run is missing, or until Ctrl+C and the end of the rounds that are under way then."""
    playing: dict[Future[Run | None], Key] = {}

    def keep(done: Iterable[Future[Run | None]]) -> None:
        for future in done:
            key, run = playing[future], future.result()
            if run is not None:
                if key not in book:  # Ctrl+C may have come after that
                    book.keep(run)
                prepared.unfinished.remove(key)
            del playing[future]

    try:
        while True:
            for key in study.missing(book):
                if len(playing) < jobs and key not in playing.values():
                    playing[executor.submit(play, study, key, prepared)] = key
            if not playing:
                return
            keep(wait(playing, return_when=FIRST_COMPLETED).done)
    except KeyboardInterrupt:
        stop.set()
        tqdm.write("Stopping when the rounds under way are played and saved. Ctrl+C again stops at once.", file=sys.stderr)
        keep(wait(playing).done)
        raise


@contextlib.contextmanager
def _progress(bar: Any, reports: Any) -> Iterator[None]:
    """Move the progress bar while the workers finish rounds, and write their sentences above it."""

    def update_bar() -> None:
        while (report := reports.get()) is not None:
            if isinstance(report, str):
                bar.write(report, file=sys.stderr)
            else:
                bar.update(report)

    thread = threading.Thread(target=update_bar, daemon=True)
    thread.start()
    try:
        yield
    finally:
        reports.put(None)
        thread.join(timeout=5)


def write_report(book: Book[Run], folder: Path, command: str) -> None:
    """Write report.html, the tables, and figures.json with the figures that documents may quote."""
    report.write(book.runs, folder / "report.html", command=command)
    report.write_tables(book.runs, folder)
    (folder / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(report.figures(book.runs))) + b"\n")
