"""`beliefbound robust`: a model folder in, the certificate under the least favourable prior out.

`robust.json` is what `RobustBracket.save` writes, and `RobustBracket.load` reads it; its entry `job` says besides how
it was `made` (`jobs.made`) and whether it was `interrupted`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.robust import RobustBracket, RobustEntries, robust_bracket
from beliefbound.jobs.made import Job, Made, write_json
from beliefbound.report.robust import write_robust

ROBUST, POLICY = "robust.json", "robust.policy.npz"


@dataclass(frozen=True, kw_only=True)
class RobustOptions:
    """What can be asked of `beliefbound robust`.

    Attributes:
      priors, horizon, confidence, target_gap, time_limit, effort, threads: as for `robust_bracket`.
      reward_signal, absorbing: of the models, as for `read_models`.
      seed: of all randomness.
    """

    priors: str = "all"
    horizon: int | None = None
    confidence: float = 0.95
    target_gap: float | None = None
    time_limit: float | None = None
    effort: int | None = None
    reward_signal: RewardSignal | None = None
    absorbing: Sequence[str] | None = None
    seed: int = 1
    threads: int | None = None


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
    folder = read_models(models, reward_signal=options.reward_signal, absorbing=options.absorbing or ())
    place = as_path(out)
    check_writable(place)
    with first_interrupt(say) as asked:
        bracket = robust_bracket(
            folder.training,
            priors=options.priors,
            initial=folder.initial,
            discount=folder.discount,
            horizon=options.horizon,
            confidence=options.confidence,
            target_gap=options.target_gap,
            time_limit=options.time_limit,
            effort=options.effort,
            rng=options.seed,
            threads=options.threads,
            watch=watch,
            stop=asked.is_set,
        )
    made = Made.of(folder, models, horizon=options.horizon, confidence=options.confidence)
    found = RobustCertificate(folder, bracket, Job(made=made, interrupted=asked.is_set()))
    with one_result(place, "robust", last=ROBUST) as aside:
        write_files(found, aside)
        write_pages(found, aside)
    return found


def again(
    folder: ModelFolder,
    entries: RobustEntries,
    job: Job,
    *,
    threads: int | None,
    watch: Callable[[TracePoint], object] | None,
) -> RobustCertificate:
    """The certificate that a file is of, found again; version and what `job` says are taken from the file."""
    bracket = robust_bracket(
        folder.training,
        priors=entries.priors,
        initial=folder.initial,
        discount=folder.discount,
        horizon=job.made.horizon,
        confidence=job.made.confidence,
        effort=entries.rounds,
        rng=entries.seed,
        threads=threads,
        watch=watch,
    )
    return RobustCertificate(folder, replace(bracket, version=entries.library), job)


def write_files(found: RobustCertificate, place: Path) -> None:
    """Write `robust.json` and the policy."""
    found.bracket.names.save(found.bracket.policy, place / POLICY)
    write_json(place / ROBUST, found.bracket.as_file(POLICY, found.job.entries()))


def write_pages(found: RobustCertificate, place: Path) -> None:
    """Write the picture and the page."""
    told, interrupted = found.job.made, found.job.interrupted
    write_robust(found.bracket, found.folder, told.name, place, horizon=told.horizon, interrupted=interrupted)
