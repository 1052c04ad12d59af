"""`beliefbound robust`: a model folder in, the certificate under the least favourable prior out.

`robust.json` is what `RobustBracket.save` writes, and `RobustBracket.load` reads it; its entry `job` says besides how
it was `made` (`jobs.made`) and whether it was `interrupted`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.robust import RobustBracket, robust_bracket
from beliefbound.jobs.made import Again, Job, Made, ModelOptions, write_json
from beliefbound.report.robust import write_robust

JOB, FILE, POLICY = "robust", "robust.json", "robust.policy.npz"
SOMETIMES = frozenset[str]()  # files that not every certificate has: none


@dataclass(frozen=True, kw_only=True)
class RobustOptions(ModelOptions):
    """What can be asked of `beliefbound robust`; `priors` and `effort` as for `robust_bracket`."""

    priors: str = "all"
    effort: int | None = None


class RobustCertificate(NamedTuple):
    """The models, the bracket found for them, and what is told with it."""

    folder: ModelFolder
    bracket: RobustBracket
    job: Job


def robust_folder(
    models: Path | str,
    out: Path | str,
    options: RobustOptions,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[], object] = lambda: None,
) -> RobustCertificate:
    """Bracket the value of a model folder under the worst prior of a set, and write into `out`: `robust.json`, its
    policy `robust.policy.npz`, `prior.{png,svg}` and `report.html`. Ctrl-C and earlier results: as for
    `certify_folder`."""
    folder, place = options.read(models), as_path(out)
    check_writable(place)
    with first_interrupt(say) as asked:
        bracket = _bracket(folder, options, watch=watch, stop=asked.is_set)
    how = {"horizon": options.horizon, "confidence": options.confidence, **options.chosen(folder)}
    made = Made.of(folder, models, **how)
    found = RobustCertificate(folder, bracket, Job(made=made, interrupted=asked.is_set()))
    with one_result(place, JOB, last=FILE) as aside:
        write_files(found, made, aside)
        write_pages(found, aside)
    return found


def again(
    file: Path,
    content: dict[str, Any],
    models: Path | str | None,
    *,
    threads: int | None,
    watch: Callable[[TracePoint], object] | None,
) -> Again:
    """The certificate that a file is of, found again; version and what `job` says are taken from the file."""
    entries, job = RobustBracket.entries_of(file, content), Job.of(file, content)
    path, folder = job.made.read(file, models)
    how = {"horizon": job.made.horizon, "confidence": job.made.confidence, "priors": entries.priors}
    options = RobustOptions(**how, effort=entries.rounds, seed=entries.seed, threads=threads)
    bracket = _bracket(folder, options, watch=watch)
    found = RobustCertificate(folder, replace(bracket, version=entries.library), job)
    return Again(
        found.bracket,
        (entries.lower.value, entries.upper.value),
        f"{path}, seed {bracket.seed}",
        job.made.machine,
        entries.library,
        lambda place: write_files(found, job.made, place),
        lambda place: write_pages(found, place),
    )


def _bracket(folder: ModelFolder, options: RobustOptions, **told: Any) -> RobustBracket:
    return robust_bracket(folder.training, priors=options.priors, effort=options.effort, **options.of(folder), **told)


def write_files(found: RobustCertificate, made: Made, place: Path) -> None:
    """Write `robust.json` and the policy."""
    found.bracket.names.save(found.bracket.policy, place / POLICY)
    job = Job(made=made, interrupted=found.job.interrupted)
    write_json(place / FILE, found.bracket.as_file(POLICY, job.entries()))


def write_pages(found: RobustCertificate, place: Path) -> None:
    """Write the picture and the page."""
    told, interrupted = found.job.made, found.job.interrupted
    write_robust(found.bracket, found.folder, told.name, place, horizon=told.horizon, interrupted=interrupted)
