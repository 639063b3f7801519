"""`waggle-lab swarm`: plays simulated swarms in several configurations, and reports whether sharing helps.

Finished runs are kept in a file of the output folder, so a study can be interrupted, gone on with, and spread over days; a run
in progress is lost. Left out: seconds as a cost (runs share one computer), and real networks.
"""

import argparse
import contextlib
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
from waggle.models import memory_fit
from waggle.models.shared import model_config
from waggle.models.storage.checkpoint import base_of
from waggle.network.exchange.pool import CAPACITY
from waggle.practice.results import Book, Key, Run
from waggle.practice.simulated_swarm import Weather
from waggle.sapo.stages import RoundSettings
from waggle_lab.starter_model.starters import SETTINGS
from waggle_lab.study import plan, report
from waggle_lab.study.plan import Study
from waggle_lab.study.worker import begin, charter_of, play, prepare

Number = TypeVar("Number", int, float)
PRESETS = {"paper": plan.paper, "options": plan.options}
# glibc gives large blocks back to the system at once and asks for them again, in small pages: a fifth of a small model's time
ALLOCATOR = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--paper", action="store_true", help="the paper's table, extended: about twelve hours of one core")
    parser.add_argument("--options", action="store_true", help="every strategy and update rule, on dev questions")
    parser.add_argument("--settings", default="sparse", help="sparse, identical, diversified, heterogeneous; several with commas")
    parser.add_argument(
        "--configurations",
        default="8/0,4/4,default",
        help="default, 8/0-filtered, I/J[:strategy[:rule[+rule]]][:crumbs=X][:questions=N]",
    )
    parser.add_argument("--strategy", default="", help="for every I/J that names none")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument(
        "--rates",
        default="",
        help="learning rates (default: the app's for the models); several: each configuration gets its best",
    )
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--asked", type=int, default=0, help="specialties each node asks about (default: all)")
    parser.add_argument("--charter", default="", help="a charter file")
    parser.add_argument("--starters", default="", help="model folders instead of a setting's; several with commas")
    parser.add_argument(
        "--longest", type=int, default=RoundSettings().max_new, help="tokens of an answer at most (default: %(default)s)"
    )
    parser.add_argument(
        "--split", choices=("dev", "test"), default="test", help="of the reserved questions: dev to choose, test to report"
    )
    parser.add_argument("--delay", type=int, default=1, help="rounds until a group arrives")
    parser.add_argument("--loss", type=float, default=0.0, help="share of groups that get lost")
    parser.add_argument("--offline", type=float, default=0.0, help="share of rounds that a node is away")
    parser.add_argument("--pool", type=int, default=CAPACITY, help="others' groups that wait at a node (default: %(default)s)")
    parser.add_argument("--speeds", default="1", help="rounds a node plays while the fastest plays one; several with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="swarms played at once, one core each")
    parser.add_argument("--out", type=Path, default=Path("lab"), help="folder for runs, tables and report.html")
    parser.add_argument(
        "--cache", type=Path, default=paths.cache() / "lab", help="folder for the models of the settings, made once"
    )
    parser.add_argument("--resume", action="store_true", help="continue the study in that folder")
    parser.add_argument(
        "--report", action="store_true", help="play nothing: write the report of the finished runs in that folder"
    )


def run(arguments: argparse.Namespace) -> int:
    """Play what is missing, then write the report; returns the exit code."""
    study = study_of(arguments)
    command = shlex.join(["waggle-lab", "swarm", *_said(sys.argv)])
    if arguments.report:
        book = Book(arguments.out / "runs.jsonl", Run)
        if not book.runs:
            raise LabError(f"{arguments.out} holds no finished run.", "Choose another --out.")
        write(book, arguments.out, command)
        return 0
    book = open_book(arguments.out, study, resume=arguments.resume)
    try:
        try:
            play_all(study, book, arguments.cache, jobs=arguments.jobs)
        finally:
            book = Book(arguments.out / "runs.jsonl", Run)  # as it was written: Ctrl+C may come before a written run is in ours
            if book.runs:
                write(book, arguments.out, command)
    except KeyboardInterrupt:
        raise LabError("Stopped.", "Finished runs are kept: go on with --resume.") from None
    except OSError as error:
        raise LabError(f"The study cannot go on: {error.strerror}.", "Finished runs are kept: go on with --resume.") from error
    return 0


def _said(argv: Sequence[str]) -> list[str]:
    """The options as they were given; where things lie on this computer is nobody else's affair."""
    words = list(argv[argv.index("swarm") + 1 :]) if "swarm" in argv else []
    private = {i + step for i, word in enumerate(words) if word in ("--cache", "--out") for step in (0, 1)}
    kept = [word for i, word in enumerate(words) if i not in private and not word.startswith(("--cache=", "--out="))]
    return [_without_folders(word) for word in kept]


def _without_folders(word: str) -> str:
    """--starters=/home/ann/a,/home/ann/b as --starters=a,b."""
    option, equals, values = word.rpartition("=")
    return option + equals + ",".join(Path(each).name if Path(each).is_absolute() else each for each in values.split(","))


def study_of(arguments: argparse.Namespace) -> Study:
    """What the arguments ask for; raises LabError."""
    if arguments.jobs < 1:
        raise LabError("A study needs at least one job.")
    for name, made in PRESETS.items():
        if getattr(arguments, name):
            _refuse_others(arguments, name)
            return made()
    names = [_with_strategy(name, arguments.strategy) for name in arguments.configurations.split(",")]
    chosen = tuple(dict.fromkeys(_numbers("--seeds", arguments.seeds, int)))
    seeds = dict.fromkeys(names, chosen)
    _refuse_twins(seeds)
    folders = tuple(folder for folder in arguments.starters.split(",") if folder)
    for folder in folders:
        if not (Path(os.path.expanduser(folder)) / "config.json").is_file():
            raise LabError(f"There is no model in {folder}.", "--starters takes transformers folders.")
    settings = ["own"] if folders else list(dict.fromkeys(arguments.settings.split(",")))
    if unknown := set(settings) - {"own", *SETTINGS}:
        raise LabError(f"There is no setting {unknown.pop()}.", f"Choose from {', '.join(SETTINGS)}.")
    if min(arguments.rounds, arguments.nodes, arguments.longest) < 1:
        raise LabError("A study needs at least one round, one node and one token.")
    known = len(charter_of(arguments.charter).specialties)
    if not 0 <= arguments.asked <= known:
        raise LabError(f"A node cannot ask about {arguments.asked} specialties.", f"The charter has {known}.")
    rates = _numbers("--rates", arguments.rates or repr(_usual_rate(folders)), float)
    if not all(0 < rate <= 1e-1 for rate in rates):
        raise LabError(f"--rates {arguments.rates} are not learning rates.", "For example: --rates 2.5e-4,5e-4,1e-3")
    return Study(
        parts=tuple(
            plan.Part(setting=setting, rounds=arguments.rounds, seeds=seeds, folders=folders, asked=arguments.asked)
            for setting in settings
        ),
        split=arguments.split,
        rates=tuple(dict.fromkeys(rates)),
        nodes=arguments.nodes,
        charter=arguments.charter,
        longest=arguments.longest,
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
    """Who shares nothing has no strategy of sharing."""
    found = plan.NAME.match(name)
    if not strategy or not found or found[3] or not int(found[2]):
        return name
    ratio = f"{found[1]}/{found[2]}"
    return f"{ratio}:{strategy}{name.removeprefix(ratio)}"


def _usual_rate(folders: Sequence[str]) -> float:
    """The app's for the largest of these models, or for the starter."""
    models = [model_config.read(Path(os.path.expanduser(folder))) for folder in folders]
    return min((memory_fit.rate_for(model, "full") for model in models), default=RoundSettings().learning_rate)


def _refuse_twins(names: Iterable[str]) -> None:
    """4/4 and 4/4:plain would be played as two and reported as one."""
    known: dict[plan.Configuration, str] = {}
    for name in names:
        first = known.setdefault(msgspec.structs.replace(plan.configuration(name), name=""), name)
        if first != name:
            raise LabError(f"{first} and {name} are the same configuration.", "Leave one of them out.")


def _refuse_others(arguments: argparse.Namespace, preset: str) -> None:
    """A preset decides everything but where and how fast it is played."""
    usual = argparse.ArgumentParser()
    add_arguments(usual)
    free = {preset, "jobs", "out", "cache", "resume", "report"}
    given = vars(usual.parse_args([]))
    if changed := [name for name, value in given.items() if name not in free and getattr(arguments, name) != value]:
        raise LabError(f"--{preset} and --{changed[0]} do not go together.", f"--{preset} decides what is played.")


def open_book(folder: Path, study: Study, *, resume: bool) -> Book[Run]:
    """The finished runs of that folder; raises LabError where it holds another study, or one that nobody asked to go on with."""
    described, runs = folder / "study.json", folder / "runs.jsonl"
    if described.exists() and runs.exists():
        if not resume:
            raise LabError(f"{folder} holds a study already.", "Add --resume to go on with it, or choose another --out.")
        if described.read_bytes() != _described(study):
            raise LabError(f"{folder} holds another study.", "Choose another --out.")
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            described.write_bytes(_described(study))
        except OSError as error:
            raise LabError(f"{folder} cannot be written: {error.strerror}.", "Choose another --out.") from error
    return Book(runs, Run)


def _described(study: Study) -> bytes:
    folders = [folder for part in study.parts for folder in part.folders]
    whole = {
        "study": study,
        "configurations": study.configurations,
        "charter": charter_of(study.charter).digest.hex(),
        "models": {folder: base_of(Path(os.path.expanduser(folder))) for folder in folders},
    }
    return msgspec.json.format(msgspec.json.encode(whole)) + b"\n"


def play_all(study: Study, book: Book[Run], cache: Path, *, jobs: int) -> None:
    """Play every missing run, `jobs` at a time; each is kept as soon as it is finished."""
    if next(study.missing(book), None) is None:  # then no model is made for it either
        return
    ready = prepare(study, cache)
    context = multiprocessing.get_context("spawn")
    ticks = context.Queue()
    os.environ.update(ALLOCATOR)  # for the workers, which are new programs
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=begin, initargs=(ticks,))
    done = sum(len(run.reward) for run in book.runs)
    with tqdm(total=study.total(), initial=done, unit=" rounds", file=sys.stderr, smoothing=0.02) as bar, _counting(bar, ticks):
        try:
            _play(study, book, executor, ready, jobs)
        except BrokenProcessPool as error:
            raise LabError("A worker of the laboratory ended.", "Finished runs are kept: go on with --resume.") from error
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()


def _play(study: Study, book: Book[Run], executor: ProcessPoolExecutor, ready: Any, jobs: int) -> None:
    playing: dict[Future[Run], Key] = {}
    while True:
        for key in study.missing(book):
            if len(playing) < jobs and key not in playing.values():
                playing[executor.submit(play, study, key, ready)] = key
        if not playing:
            return
        finished, _ = wait(playing, return_when=FIRST_COMPLETED)
        for future in finished:
            del playing[future]
            book.keep(future.result())


@contextlib.contextmanager
def _counting(bar: Any, ticks: Any) -> Iterator[None]:
    """Move the bar as the workers finish rounds."""

    def count() -> None:
        while (number := ticks.get()) is not None:
            bar.update(number)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ticks.put(None)
        thread.join(timeout=5)


def write(book: Book[Run], folder: Path, command: str) -> None:
    """report.html, and beside it the tables and the figures that documents may quote."""
    report.write(book.runs, folder / "report.html", command=command)
    report.write_tables(book.runs, folder)
    (folder / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(report.figures(book.runs))) + b"\n")
