"""What `beliefbound plan` does: its words as options, the work, the files; and the same again, to verify it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.csv_table import numbers, read_table
from beliefbound.base.io.result_folder import digest, one_result
from beliefbound.base.options import chosen
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.from_log import action_id, state_id
from beliefbound.beliefs.log_rewards import RewardChoice
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.record import TracePoint
from beliefbound.jobs.from_log.plan import PlanOptions, Taken, plan_of
from beliefbound.jobs.from_log.writing import CERTIFICATE, SOMETIMES, write_files, write_pages
from beliefbound.jobs.log_files import LogFileOptions, prior_of, start_of
from beliefbound.jobs.made import Again, found_at, machine
from beliefbound.logs import Log, read_log, read_minari
from beliefbound.policy.naming import Names
from beliefbound.policy.rule_file import read_rule
from beliefbound.report.from_log.result import LogPlan
from beliefbound.report.page import REPORT

__all__ = ["FILE", "JOB", "SOMETIMES", "PlanFileOptions", "PlanJob", "again", "plan_file"]

JOB, FILE = "plan", CERTIFICATE
_MINARI = "minari:"
_EVERY = 10_000_000  # rows between two words about reading


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanFileOptions(LogFileOptions, PlanOptions):
    """What can be asked of `beliefbound plan`, in words of the command line.

    Attributes:
      behaviour: a file of the policy that made the log, `.csv` or `policy.json`.
      known_rewards: a CSV file `state, action, reward`.
      initial, terminal: names or numbers of states; `prior`: its name, or a number.
      others: as for `plan_log`.
    """

    known_rewards: Path | None = None
    initial: Sequence[str] | None = None
    terminal: Sequence[str] | None = None
    prior: str = "suggest"  # type: ignore[assignment]
    rewards: RewardChoice = "suggest"
    known: None = None
    behaviour: Path | None = None

    def of_log(self, log: Log) -> PlanOptions:
        """What the words mean for a log."""
        meant = {
            "initial": start_of(self.initial, log),
            "terminal": [state_id(log, name) for name in self.terminal] if self.terminal else None,
            "prior": prior_of(str(self.prior)),
            "behaviour": None if self.behaviour is None else _behaviour(self.behaviour, log),
            "known": None if self.known_rewards is None else _known(self.known_rewards, log),
        }
        return chosen(PlanOptions, vars(self) | meant)


def plan_file(
    source: str,
    out: Path,
    options: PlanFileOptions,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[str], object] = lambda text: None,
    stopping: Callable[[], object] = lambda: None,
) -> tuple[LogPlan, Path]:
    """Read a log, plan, and write everything into `out`: `(what was found, the page)`. Ctrl-C ends the search and
    writes what was found; a second one leaves at once and writes nothing."""
    check_writable(out)
    log = read_source(source, options, say)
    with first_interrupt(stopping) as asked:
        found = plan_of(log, options.of_log(log), watch=watch, stop=asked.is_set, say=say)
    say("writing")
    job = PlanJob.of(found, source, digest_of_log(source), options)
    with one_result(out, JOB, last=FILE) as aside:
        write_files(found, job.entries(), aside)
        write_pages(found, job.words(), aside)
    return found, out / REPORT


class PlanJob(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What makes a plan again.

    Attributes:
      log: where the log was read from, as it was said.
      digest: SHA-256 of that file; null for a dataset of Minari.
      machine, library: the kind of machine, and the version, that made it.
      effort, rounds: steps of the bracket and rounds of the robust one that were taken; null where there was none.
      options: what was asked for; the number of threads, which changes nothing, is left out.
    """

    log: str
    digest: str | None
    machine: str
    library: str
    effort: int | None
    rounds: int | None
    options: PlanFileOptions

    @classmethod
    def of(cls, found: LogPlan, source: str, digest: str | None, options: PlanFileOptions) -> "PlanJob":
        """From what was found, in a log from there with this digest."""
        return cls(
            log=source,
            digest=digest,
            machine=machine(),
            library=version("beliefbound"),
            effort=None if found.bracket is None else found.bracket.effort,
            rounds=None if found.robust is None else found.robust.bracket.rounds,
            options=replace(options, threads=None),
        )

    def entries(self) -> dict[str, Any]:
        """As entries of a file."""
        entries: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        return entries

    def words(self) -> str:
        """How to make it again."""
        how = f"seed {self.options.seed}, version {self.library}, on {self.machine}"
        return f"`beliefbound verify {FILE} {self.log}` makes the same certificate again: {how}."


def again(
    file: Path,
    content: dict[str, Any],
    log: Path | str | None,
    *,
    threads: int | None,
    watch: Callable[[TracePoint], object] | None,
) -> Again:
    """The plan that a certificate is of, found again; seconds, machine and version are taken from the file."""
    try:
        job = msgspec.convert(content["job"], PlanJob, dec_hook=lambda kind, held: kind(held))
        written = msgspec.convert((content.get("lower"), content.get("upper")), tuple[float, float])
        seconds = msgspec.convert((content.get("bracket") or {}).get("trace", []), list[tuple[float, float, float]])
    except (msgspec.ValidationError, TypeError, AttributeError, RecursionError) as cause:
        raise FileError(f"{file} is no certificate that can be made again: {cause}") from None
    if content.get("interrupted"):
        raise FileError(f"{file} was ended by hand before its time, and cannot be made again: plan once more")
    source, options = job.log, replace(job.options, threads=threads)
    if not source.startswith(_MINARI):
        path = found_at(file, source, log, "log")
        if not path.is_file() or digest(path) != job.digest:
            raise FileError(f"{path} is not the log of {file}; give the file it was made from")
        source = str(path)
    read = replace(read_source(source, options, lambda text: None), source=job.log)
    taken = Taken(job.effort, job.rounds)
    found = plan_of(read, options.of_log(read), taken=taken, watch=watch)
    if found.bracket is not None:
        trace = zip(found.bracket.trace, seconds, strict=False)
        told = tuple(point._replace(seconds=theirs[0]) for point, theirs in trace)
        found = replace(found, bracket=replace(found.bracket, trace=told + found.bracket.trace[len(told) :]))
    return Again(
        found,
        written,
        f"{source}, seed {options.seed}",
        job.machine,
        job.library,
        lambda place: write_files(found, job.entries(), place),
        lambda place: write_pages(found, job.words(), place),
    )


def digest_of_log(source: str) -> str | None:
    """SHA-256 of a log's file; nothing for a dataset of Minari."""
    return None if source.startswith(_MINARI) else digest(Path(source))


def read_source(source: str, options: PlanFileOptions, say: Callable[[str], object]) -> Log:
    """The log that a word names: a file, or a dataset of Minari."""
    say(f"reading {source}")
    if source.startswith(_MINARI):
        for_files = {"column": options.columns} | {
            name: getattr(options, name) for name in ("states", "actions", "names", "sort", "keep_suspicious")
        }
        for name, value in for_files.items():
            if value:
                raise ParameterError(f"--{name.replace('_', '-')} is for files; a Minari dataset says it itself")
        return read_minari(source.removeprefix(_MINARI))
    told = 0

    def progress(rows: int) -> None:
        nonlocal told
        if rows - told >= _EVERY:
            told = rows
            say(f"{rows:,} rows read")

    return read_log(source, progress=progress, **options.reading)


def _behaviour(file: Path, log: Log) -> Any:
    """The policy of a file, for the states of a log."""
    if file.suffix == ".json":
        return load_policy(file)
    idle = np.where(log.terminal, 0, -1)  # being over, where that is a state, needs no row
    return read_rule(file, Names(log.states, log.actions), log.n_states, log.n_actions, idle)


def _known(file: Path, log: Log) -> FloatArray:
    """Rewards `[s,a]` of a table; NaN for pairs that it does not have."""
    frame = read_table(file, ["state", "action", "reward"])
    rewards, lines = numbers(frame, "reward", file)
    known = np.full((log.n_states, log.n_actions), np.nan)
    for line, state, action, reward in zip(lines, frame["state"], frame["action"], rewards, strict=True):
        try:
            at = state_id(log, str(state)), action_id(log, str(action))
        except BeliefError as fault:
            raise FileError(f"{file}, line {line}: {fault}") from None
        if not np.isnan(known[at]):
            raise FileError(f"{file}, line {line}: state {state}, action {action} is given more than once")
        known[at] = reward
    return known
