"""`beliefbound bound DIR1 DIR2 …`: many problems, a folder with a certificate for each, one table and one page of all.

A problem is a block of an executor (`base.executors`): threads here, or a Ray cluster. It is read here and its files
are written here, so that workers need no shared folder; each is searched on one thread, and `threads` says how many at
a time. A certificate does not depend on where it was made: it is that of `certify_folder`.

`finished.json` lists, by the name of its folder, what was asked about each finished problem – a digest of its models,
of the options and of the library's version – and its row. A problem that is listed there, and whose files are as they
were written, is not searched again: whoever was interrupted, or killed, runs the same command again.
"""

import hashlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

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
from beliefbound.jobs.bound import FILE, JOB, BoundOptions, certificate_of, write_files, write_pages
from beliefbound.jobs.made import Made, write_json
from beliefbound.report.batch import Row, row_of, write_batch

FINISHED = "finished.json"
_drawing = threading.Lock()  # matplotlib has one set of styles for all threads


class Finished(msgspec.Struct):
    """A problem in `finished.json`."""

    asked: str
    row: Row


class Problem(NamedTuple):
    """One block: what is to be found, and the digest of it."""

    name: str
    folder: ModelFolder
    made: Made
    options: BoundOptions
    asked: str


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
    """Certify every problem, each into a folder of `out` with its name; `done` is shown each row as it is there.

    What cannot be read, or is refused, has a row that says so, and the others go on. Ctrl-C finishes what runs; a
    second one leaves at once.
    """
    place, names = as_path(out), names_of_problems(models)
    check_writable(place)
    finished, rows, kept = _read(place / FINISHED), dict[str, Row](), 0
    options = BoundOptions(**{**asdict(options), "threads": 1})

    def there(row: Row) -> None:
        rows[row.problem] = row
        done(row)

    def problems() -> Iterator[Problem]:
        nonlocal kept
        for name, path in zip(names, models, strict=True):
            try:
                problem = _problem(name, path, options)
            except BeliefboundError as refused:
                there(Row(problem=name, error=str(refused)))
                continue
            known = finished.get(name)
            if known is not None and known.asked == problem.asked and _intact(place / name):
                kept += 1
                there(known.row)
            else:
                yield problem

    with first_interrupt(say) as asked:
        for problem, (row, files) in executor.map(find, problems(), stop=asked):
            if files:
                with one_result(place / problem.name, JOB, last=FILE) as aside:
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
    name, folder, made, options, _ = problem
    try:
        limits, seed = options.limits(), seed_of(options.seed)
        found = certificate_of(folder, made, limits, lambda: False, Path(), seed=seed, threads=1, watch=None)
        with tempfile.TemporaryDirectory() as held, _drawing:
            aside = Path(held)
            write_files(found, made, aside)
            write_pages(found, aside)
            files = {file: (aside / file).read_bytes() for file in names_in(aside)}
    except BeliefboundError as refused:
        return Row(problem=name, error=str(refused)), {}
    return row_of(name, found), files


def names_of_problems(models: Sequence[Path | str]) -> list[str]:
    """What their folders are called: the last parts of their paths, as many as tell them apart.

    >>> names_of_problems(["north/well", "south/well", "mill.npz"])
    ['north-well', 'south-well', 'mill']
    """
    paths = [Path(path).resolve() for path in models]
    parts = [(*path.parts[1:-1], path.name if path.is_dir() else path.stem) for path in paths]
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


def _problem(name: str, path: Path | str, options: BoundOptions) -> Problem:
    folder = options.read(path)
    made = options.made(folder, path)
    same = {"models": "", "name": "", "machine": ""}  # wherever it is made
    asked = (msgspec.to_builtins(made) | same, asdict(options) | {"threads": None}, beliefbound.__version__)
    key = hashlib.sha256(msgspec.json.encode(asked, enc_hook=repr)).hexdigest()
    return Problem(name, folder, made, options, key)


def _read(file: Path) -> dict[str, Finished]:
    if not file.exists():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Finished])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{file} cannot be read: {cause}; remove it, and every problem is searched again") from None


def _intact(folder: Path) -> bool:
    """Whether all files of a folder's result are as they were written."""
    listed = read_contents(folder)
    if listed is None or listed.job != JOB or FILE not in listed.files:
        return False
    try:
        return all(digest(folder / name) == known for name, known in listed.files.items())
    except OSError:
        return False
