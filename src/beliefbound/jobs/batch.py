"""`beliefbound bound DIR1 DIR2 …`, `beliefbound plan LOG1 LOG2 …`: many problems, a folder with a certificate for each,
one table and one page of all.

A problem is a block of an executor (`base.executors`): threads here, or a Ray cluster. It is read here and its files
are written here, so that workers need no shared folder; each is searched on one thread, and `threads` says how many at
a time. A certificate does not depend on where it was made: it is that of `certify_folder`, or of `plan_file`.

`finished.json` lists, by the name of its folder, what was asked about each finished problem – a digest of its models or
its log, of the options and of the library's version – and its row. A problem that is listed there, and whose files are
as they were written, is not searched again: whoever was interrupted, or killed, runs the same command again.
"""

import hashlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import beliefbound
from beliefbound.base.errors import BeliefboundError, FileError, ParameterError
from beliefbound.base.executors import Executor
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable, write_bytes
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import digest, names_in, one_result, read_contents
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.bracket import seed_of
from beliefbound.jobs import bound
from beliefbound.jobs.bound import BoundOptions
from beliefbound.jobs.from_log import command, writing
from beliefbound.jobs.from_log.command import PlanFileOptions
from beliefbound.jobs.from_log.plan import PlanOptions, plan_of
from beliefbound.jobs.made import Made, write_json
from beliefbound.logs import Log
from beliefbound.report.batch import Row, row_of, row_of_plan, write_batch

FINISHED = "finished.json"
_drawing = threading.Lock()  # matplotlib has one set of styles for all threads


class Finished(msgspec.Struct):
    """A problem in `finished.json`."""

    asked: str
    row: Row


class Problem(NamedTuple):
    """One block: what finds its row and its files, and the digest of what is asked."""

    name: str
    asked: str
    find: Callable[[], tuple[Row, dict[str, bytes]]]


class Kind(NamedTuple):
    """What is asked of every problem: how one is read, by its name and where it is; the job, and its last file."""

    read: Callable[[str, str], Problem]
    job: str
    last: str


class Batch(NamedTuple):
    """What became of all problems: a row each, in the order they were given, with what is wrong with those that have
    no certificate; how many were finished before; whether somebody ended it early; and the page."""

    rows: list[Row]
    kept: int
    interrupted: bool
    report: Path


def certify_folders(
    models: Sequence[Path | str],
    out: Path | str,
    options: BoundOptions,
    *,
    executor: Executor,
    say: Callable[[], object] = lambda: None,
    done: Callable[[Row], object] = lambda row: None,
) -> Batch:
    """Certify every folder of models, each into a folder of `out` with its name; `done` is shown each row as it is
    there.

    What cannot be read, or is refused, has a row that says so, and the others go on. Ctrl-C finishes what runs; a
    second one leaves at once.
    """
    alone = replace(options, threads=1)

    def read(name: str, path: str) -> Problem:
        folder = alone.read(path)
        made = alone.made(folder, path)
        same = {"models": "", "name": "", "machine": ""}  # wherever it is made
        asked = _key(msgspec.to_builtins(made) | same, vars(alone))
        return Problem(name, asked, partial(_certified, name, folder, made, alone))

    return _all(Kind(read, bound.JOB, bound.FILE), models, out, executor, say, done)


def plan_files(
    logs: Sequence[str],
    out: Path | str,
    options: PlanFileOptions,
    *,
    executor: Executor,
    say: Callable[[], object] = lambda: None,
    done: Callable[[Row], object] = lambda row: None,
) -> Batch:
    """The same of logs: a plan for each."""
    alone = replace(options, threads=1)

    def read(name: str, source: str) -> Problem:
        log = command.read_source(source, alone, lambda text: None)
        kept = command.digest_of_log(source)
        meant = alone.of_log(log)
        asked = _key(kept or source, vars(alone))
        return Problem(name, asked, partial(_planned, name, log, meant, source, kept, alone))

    return _all(Kind(read, command.JOB, command.FILE), logs, out, executor, say, done)


def _all(
    kind: Kind,
    sources: Sequence[Path | str],
    out: Path | str,
    executor: Executor,
    say: Callable[[], object],
    done: Callable[[Row], object],
) -> Batch:
    place, names = as_path(out), names_of_problems(sources)
    check_writable(place)
    finished, rows, kept = _read(place / FINISHED), dict[str, Row](), 0

    def there(row: Row) -> None:
        rows[row.problem] = row
        done(row)

    def problems() -> Iterator[Problem]:
        nonlocal kept
        for name, source in zip(names, sources, strict=True):
            try:
                problem = kind.read(name, str(source))
            except BeliefboundError as refused:
                there(Row(problem=name, error=str(refused)))
                continue
            known = finished.get(name)
            if known is not None and known.asked == problem.asked and _intact(place / name, kind):
                kept += 1
                there(known.row)
            else:
                yield problem

    with first_interrupt(say) as asked:
        for problem, (row, files) in executor.map(find, problems(), stop=asked):
            if files:
                with one_result(place / problem.name, kind.job, last=kind.last) as aside:
                    for name, content in files.items():
                        write_bytes(aside / name, content)
                finished[problem.name] = Finished(problem.asked, row)
                entries = {name: msgspec.to_builtins(each) for name, each in sorted(finished.items())}
                write_json(place / FINISHED, entries)
            there(row)
    listed = [rows[name] for name in names if name in rows]
    return Batch(listed, kept, asked.is_set(), write_batch(listed, len(names), place))


def find(problem: Problem) -> tuple[Row, dict[str, bytes]]:
    """The row and the files of a problem; on a worker. Where it is refused, the row says why and there are no files."""
    try:
        return problem.find()
    except BeliefboundError as refused:
        return Row(problem=problem.name, error=str(refused)), {}


def _certified(name: str, folder: ModelFolder, made: Made, options: BoundOptions) -> tuple[Row, dict[str, bytes]]:
    knobs: dict[str, Any] = {"seed": seed_of(options.seed), "threads": 1, "watch": None}
    found = bound.certificate_of(folder, made, options.limits(), lambda: False, Path(), **knobs)

    def write(aside: Path) -> None:
        bound.write_files(found, made, aside)
        bound.write_pages(found, aside)

    return row_of(name, found), _files(write)


def _planned(
    name: str, log: Log, meant: PlanOptions, source: str, kept: str | None, options: PlanFileOptions
) -> tuple[Row, dict[str, bytes]]:
    found = plan_of(log, meant)
    job = command.PlanJob.of(found, source, kept, options)

    def write(aside: Path) -> None:
        writing.write_files(found, job.entries(), aside)
        writing.write_pages(found, job.words(), aside)

    return row_of_plan(name, found), _files(write)


def _files(write: Callable[[Path], object]) -> dict[str, bytes]:
    """What is written into a folder."""
    with tempfile.TemporaryDirectory() as held, _drawing:
        write(Path(held))
        return {file: (Path(held) / file).read_bytes() for file in names_in(Path(held))}


def names_of_problems(models: Sequence[Path | str]) -> list[str]:
    """What their folders are called: the last parts of their paths, as many as tell them apart.

    >>> names_of_problems(["north/well", "south/well", "mill.npz"])
    ['north-well', 'south-well', 'mill']
    """
    paths = [Path(str(path).removeprefix("minari:")).resolve() for path in models]
    parts = [(*path.parts[1:-1], path.name if path.is_dir() else path.name.split(".")[0]) for path in paths]
    if len(set(paths)) < len(paths):
        twice = next(path for i, path in enumerate(paths) if path in paths[:i])
        raise ParameterError(f"{twice} is given twice; give each problem once")
    for n in range(1, max(map(len, parts)) + 1):
        names = ["-".join(part[-n:]) for part in parts]
        same = {name for name in names if names.count(name) > 1}
        if not same:
            break
    else:
        raise ParameterError(f"two problems would both be called {min(same)}; rename one")
    shortest = ["-".join(part[-1:]) for part in parts]
    return [short if shortest.count(short) == 1 else name for short, name in zip(shortest, names, strict=True)]


def _key(what: Any, options: dict[str, Any]) -> str:
    """A digest of what is asked; the number of threads changes nothing."""
    asked = (what, {name: value for name, value in options.items() if name != "threads"}, beliefbound.__version__)
    return hashlib.sha256(msgspec.json.encode(asked, enc_hook=repr)).hexdigest()


def _read(file: Path) -> dict[str, Finished]:
    if not file.exists():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Finished])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{file} cannot be read: {cause}; remove it, and every problem is searched again") from None


def _intact(folder: Path, kind: Kind) -> bool:
    """Whether all files of a folder's result are as they were written."""
    listed = read_contents(folder)
    if listed is None or listed.job != kind.job or kind.last not in listed.files:
        return False
    try:
        return all(digest(folder / name) == known for name, known in listed.files.items())
    except OSError:
        return False
