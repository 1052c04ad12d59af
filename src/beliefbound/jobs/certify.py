"""`beliefbound certify`: a policy and models in, what it earns on them and how far it can be from the best out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from beliefbound.base.errors import FileError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.bounds.certified import Certified, certify
from beliefbound.bounds.record import TracePoint


@dataclass(frozen=True, kw_only=True)
class CertifyOptions:
    """What can be asked of `beliefbound certify`.

    Attributes:
      horizon, confidence, samples, target_gap, time_limit, threads: as for `certify`.
      reward_signal, absorbing: of the models, as for `read_models`.
      seed: of all randomness.
    """

    horizon: int | None = None
    confidence: float = 0.95
    samples: int = 1000
    target_gap: float | None = None
    time_limit: float | None = None
    reward_signal: RewardSignal | None = None
    absorbing: Sequence[str] | None = None
    seed: int = 1
    threads: int | None = None


class PolicyCertificate(NamedTuple):
    """The models, what was found, and whether somebody ended the search before its time."""

    folder: ModelFolder
    found: Certified
    interrupted: bool


def certify_policy(
    policy: Path,
    models: Path | str,
    file: Path,
    options: CertifyOptions,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[], object] = lambda: None,
) -> PolicyCertificate:
    """Certify the policy of a file on the training models of a folder, and write the result into `file`; Ctrl-C as for
    `certify_folder`."""
    if not policy.is_file():
        raise FileError(f"cannot read {policy}: it is no file")
    folder = read_models(models, reward_signal=options.reward_signal, absorbing=options.absorbing or ())
    check_writable(file.parent)
    with first_interrupt(say) as asked:
        found = certify(
            policy,
            folder.training,
            discount=folder.discount,
            horizon=options.horizon,
            initial=folder.initial,
            confidence=options.confidence,
            samples=options.samples,
            target_gap=options.target_gap,
            time_limit=options.time_limit,
            rng=options.seed,
            threads=options.threads,
            watch=watch,
            stop=asked.is_set,
        )
    found.save(file)
    return PolicyCertificate(folder, found, asked.is_set())
