"""`beliefbound certify`: a policy and models in, what it earns on them and how far it can be from the best out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from beliefbound.base.errors import FileError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.certified import Certified, certify
from beliefbound.bounds.record import TracePoint
from beliefbound.jobs.made import ModelOptions


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(ModelOptions):
    """What can be asked of `beliefbound certify`; `samples`: walks, where the policy's value is simulated."""

    samples: int = 1000


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
    folder = options.read(models)
    check_writable(file.parent)
    with first_interrupt(say) as asked:
        knobs = options.of(folder) | {"watch": watch, "stop": asked.is_set}
        found = certify(policy, folder.training, samples=options.samples, **knobs)
    found.save(file)
    return PolicyCertificate(folder, found, asked.is_set())
