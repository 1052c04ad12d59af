"""`beliefbound certify`: a policy and models in, what it earns on them and how far it can be from the best out.

One file and the policy's beside it, not a folder: `Certified.load` reads it, and its entry `job` says how it was made
(`PolicyJob`), so that `beliefbound verify` can make it again.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from beliefbound.base.errors import FileError
from beliefbound.base.grammar import nearest
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.result_folder import digest
from beliefbound.base.plugins import blamed, load_plugin
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.certified import Certified, certify
from beliefbound.bounds.record import TracePoint
from beliefbound.jobs.made import Again, Made, ModelOptions, found_at, write_json
from beliefbound.policy.results import policy_name

JOB, FILE = None, None  # no folder, and a file of any name
SOMETIMES = frozenset[str]()


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
    """Certify the policy of a file, or a class of a Python file (`agent.py:Class`), on the training models of a folder,
    and write the result into `file`; Ctrl-C as for `certify_folder`."""
    folder, source = options.read(models), _source(policy)
    check_writable(file.parent)
    with first_interrupt(say) as asked:
        found = _certified(policy, folder, options, watch=watch, stop=asked.is_set)
    how = {"horizon": options.horizon, "confidence": options.confidence, **options.chosen(folder)}
    job = PolicyJob(
        made=Made.of(folder, models, **how),
        policy=str(policy),
        digest=digest(source),
        samples=None if found.exact else options.samples,
        seed=options.seed,
        library=version("beliefbound"),
        interrupted=asked.is_set(),
    )
    _write(found, job, file, None if found.policy is None else policy_name(file, found.policy))
    return PolicyCertificate(folder, found, asked.is_set())


class PolicyJob(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What makes the certificate of a policy again, besides `effort`, which it holds.

    Attributes:
      made: the models and the problem (`jobs.made`).
      policy: where it was read from, as it was said; `digest`: SHA-256 of that file.
      samples: as asked for, where the value is simulated; null where it is exact.
      seed: as asked for; `library`: the version that made it.
      interrupted: whether somebody ended it before its time.
    """

    made: Made
    policy: str
    digest: str
    samples: int | None
    seed: int
    library: str
    interrupted: bool


def again(
    file: Path,
    content: dict[str, Any],
    models: Path | str | None,
    *,
    policy: str | None = None,
    threads: int | None,
    watch: Callable[[TracePoint], object] | None,
) -> Again:
    """The certificate that a file is of, found again; machine and version are taken from the file. Where the policy is
    a Python class it is loaded only if somebody names it: a file alone runs nothing."""
    entries, name = Certified.entries_of(file, content), content.get("policy")
    try:
        job = msgspec.convert(content["job"], PolicyJob)
    except (msgspec.ValidationError, RecursionError) as cause:
        raise FileError(f"{file} is no certificate that can be made again: job: {cause}") from None
    if name is not None and (not isinstance(name, str) or not name or Path(name).name != name):
        raise FileError(f"{file} is damaged: its policy is {name!r}, which is no name of a file beside it")
    if job.interrupted:
        raise FileError(f"{file} was ended by hand before its time, and cannot be made again: certify once more")
    if policy is None and _is_class(Path(job.policy)):
        raise FileError(f"{file} is of {job.policy}, a class of Python; name it to run it: --policy {job.policy}")
    acting = Path(policy) if policy is not None else found_at(file, job.policy, None, "policy by --policy")
    if digest(_source(acting)) != job.digest:
        raise FileError(f"{acting} is not the policy of {file}; give the file it was made from by --policy")
    path, folder = job.made.read(file, models)
    options = CertifyOptions(
        horizon=job.made.horizon,
        confidence=job.made.confidence,
        samples=CertifyOptions.samples if job.samples is None else job.samples,
        seed=job.seed,
        threads=threads,
    )
    found = _certified(acting, folder, options, effort=max(1, entries.effort or 1), watch=watch)
    told = msgspec.structs.replace(job, samples=None if found.exact else options.samples)
    return Again(
        found,
        (entries.lower.value, entries.upper.value),
        f"{path}, {acting}, seed {job.seed}",
        job.made.machine,
        job.library,
        lambda place: _write(found, told, place / file.name, name),
        lambda place: None,
    )


def _certified(policy: Path, folder: ModelFolder, options: CertifyOptions, **told: Any) -> Certified:
    module, _, name = str(policy).rpartition(":")
    is_class = _is_class(policy)
    acting = agent_of(module, name, folder) if is_class else policy
    with blamed(str(policy), foreign=is_class):
        return certify(acting, folder.training, samples=options.samples, **options.of(folder), **told)


def _write(found: Certified, job: PolicyJob, file: Path, policy: str | None) -> None:
    """Write the policy, where there is one, and then the certificate."""
    if found.policy is not None and policy is not None:
        found.names.save(found.policy, file.parent / policy)
    write_json(file, found.as_file(policy, msgspec.to_builtins(job)))


def _is_class(policy: Path) -> bool:
    """Whether a policy is a class of a Python file."""
    module, colon, _ = str(policy).rpartition(":")
    return bool(colon) and not policy.exists() and module.endswith(".py")


def _source(policy: Path) -> Path:
    """The file that a policy is in."""
    file = Path(str(policy).rpartition(":")[0]) if _is_class(policy) else policy
    if not file.is_file():
        raise FileError(f"cannot read {policy}: it is no file; give a policy's file, or agent.py:Class")
    return file


def agent_of(module: str, name: str, folder: ModelFolder) -> Any:
    """An object of the class `name` in a Python file: it gets those of `n_states`, `n_actions`, `discount`, `initial`
    and `belief` that its constructor asks for by name."""
    load_plugin(module)
    loaded = sys.modules[f"plugin_{Path(module).stem}"]
    made = getattr(loaded, name, None)
    if not isinstance(made, type):
        classes = [key for key, held in vars(loaded).items() if isinstance(held, type)]
        raise FileError(
            f"{module} has no class {name!r}; {nearest(name, classes)}known: {', '.join(classes) or 'none'}"
        )
    belief = folder.training
    known: dict[str, Any] = {"n_states": belief.n_states, "n_actions": belief.n_actions, "discount": folder.discount}
    known |= {"initial": folder.initial, "belief": belief}
    with blamed(f"{module}:{name}", foreign=True):
        asked = inspect.signature(made).parameters
        return made(**{key: value for key, value in known.items() if key in asked})
