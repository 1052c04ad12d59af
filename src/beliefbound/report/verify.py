"""A certificate, checked: the same steps again, and every number compared.

`bounds.json` says what was bounded (the models by a digest of their contents, the task, the confidence) and how
many steps were taken (seed, effort, version). The same version on the same kind of machine finds the same numbers, bit
for bit, with any number of threads. Another version or machine may round otherwise, and from there on search otherwise:
then numbers are compared within `TOLERANCE` of the value, and the result says so.

The files of policies beside it are compared as well: those of the certificate, or not. `robust.json` is checked in the
same way (`report.verify_robust`, which uses what is here).
"""

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from beliefbound.base.errors import BeliefboundError, FileError
from beliefbound.base.validation import check_threads
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.bounds.bound import Regret
from beliefbound.bounds.bracket import Bracket, Target, bracket_of
from beliefbound.bounds.finite.small_controller import small_controller_of
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.robust import RobustBracket
from beliefbound.bounds.steps import Limits
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.naming import names_of
from beliefbound.report.information import information_entries, measured_next
from beliefbound.report.memoryless import memoryless_plan, memoryless_regret

TOLERANCE = 1e-6  # of the larger end
_COMPARED = ("side", "value", "proof", "method", "confidence", "estimate")
FORMAT, VERSION = "beliefbound bounds", 3  # of bounds.json


class Made(msgspec.Struct, kw_only=True):
    """How a certificate was made; part of `bounds.json`."""

    models: str
    digest: str
    horizon: int | None
    discount: float
    reward_signal: str
    confidence: float
    target: Target
    seed: int
    effort: int
    version: str
    machine: str
    controller: int | None = None
    measure: int | None = None
    absorbing: list[str] = []

    @classmethod
    def of(cls, folder: ModelFolder, models: Path | str, **how: Any) -> "Made":
        """From models, where they were read, and `how`: the fields that neither they nor this machine decide."""
        return cls(
            models=str(models),
            digest=digest_of(folder),
            discount=folder.discount,
            reward_signal=folder.training.reward_signal,
            absorbing=list(folder.absorbing),
            machine=machine(),
            **how,
        )


class _Written(msgspec.Struct, kw_only=True):
    """What is read of `bounds.json`."""

    lower: float
    upper: float
    confidence: float
    width: float
    relative_gap: float
    bounds: list[dict[str, Any]]
    policy: dict[str, Any]
    memoryless: dict[str, Any]
    decision: dict[str, Any] | None
    made: Made
    controller: dict[str, Any] | None = None
    information: dict[str, Any] | None = None
    states: list[str] | None = None
    actions: list[str] | None = None
    models: list[str] | None = None


@dataclass(frozen=True)
class Verification:
    """What came of a check.

    Attributes:
      same: whether the certificate was found again: bit for bit, or within the tolerance where `differs` says why.
      exact: whether every number is the same, bit for bit.
      differs: version or machine, where they are not those that made it; empty where they are.
      found: the bracket that was found now.
      words: all that, in sentences.
    """

    same: bool
    exact: bool
    differs: tuple[str, ...]
    found: Bracket | RobustBracket
    words: tuple[str, ...]


def machine() -> str:
    """The kind of machine, as far as rounding depends on it: processor, and the compilers of loops and of arrays."""
    import llvmlite.binding as llvm

    kind = f"{platform.machine()} {llvm.get_host_cpu_name()}"
    return f"{kind}, numba {version('numba')}, numpy {version('numpy')}, scipy {version('scipy')}"


def digest_of(folder: ModelFolder) -> str:
    """SHA-256 of the training models, their weights and the start, whatever files they came from."""
    belief, hashed = folder.training, hashlib.sha256()
    rows = belief.models.compressed()
    rows.sort_indices()
    arrays = (belief.models.rewards, belief.models.available, belief.weights, folder.initial)
    for array in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, *arrays):
        hashed.update(str(array.shape).encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def verify_bounds(
    bounds: Path | str,
    models: Path | str | None = None,
    *,
    threads: int | None = None,
    watch: Callable[[TracePoint], object] | None = None,
) -> Verification:
    """Take the steps of a `bounds.json` again and compare.

    Args:
      models: the model folder; default: the path in the file, as it stands, or from where the file is.

    Raises:
      FileError: the file is damaged or of a certificate that cannot be made again; or the models are others.
    """
    file = Path(bounds)
    written = _converted(file, content_of(file))
    made = written.made
    path, folder = models_of(file, made, models)
    task = FiniteTask.of(folder.training, discount=made.discount, horizon=made.horizon, initial=folder.initial)
    asked: dict[str, Any] = {"confidence": made.confidence, "target": made.target, "threads": check_threads(threads)}
    found = bracket_of(task, Limits(effort=made.effort), seed=made.seed, watch=watch, **asked).bracket
    plan = memoryless_plan(task)
    policies: dict[str, Any] = {str(written.policy.get("file")): found.policy, "memoryless.json": plan.policy}
    numbers = _numbers(found, (plan.value(folder.initial), memoryless_regret(plan, task, found)))
    for kind, names in zip(("states", "actions", "models"), names_of(folder.training), strict=True):
        numbers[kind] = None if names is None else list(names)
    if made.controller is not None:
        graph = small_controller_of(task, nodes=made.controller, rng=made.seed)
        policies["controller.npz"] = graph.policy
        numbers |= {"controller.nodes": len(graph.nodes), "controller.value": graph.value}
        numbers["controller.gap"] = max(0.0, found.upper.value - graph.value)
    if made.measure is not None:
        knobs: dict[str, Any] = {"tries": made.measure, "confidence": made.confidence}
        numbers["information"] = information_entries(measured_next(task, found, seed=made.seed, **knobs))
    return _compared(written, found, path, numbers, compare_policies(file.parent, policies))


def compare_policies(place: Path, policies: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What is wrong with the files of policies in `place`, and which are not there to be compared."""
    wrong, missing = [], []
    for name, policy in policies.items():
        path = place / name
        if Path(name).name != name or not path.is_file():
            missing.append(f"{name} is not beside the certificate, and was not compared")
            continue
        try:
            same = load_policy(path) == policy
        except BeliefboundError as cause:
            wrong.append(f"{name} cannot be read: {cause}")
            continue
        if not same:
            wrong.append(f"{name} is not the policy that was certified")
    return wrong, missing


def content_of(file: Path) -> dict[str, Any]:
    """What a file holds that says how it was made."""
    try:
        content = msgspec.json.decode(file.read_bytes())
    except OSError as cause:
        raise FileError(f"cannot read {file}: {cause.strerror or cause}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{file} is no certificate that can be made again: {cause}") from None
    if not isinstance(content, dict) or "made" not in content:
        kind = content.get("kind") if isinstance(content, dict) else None
        raise FileError(
            f"{file} is no certificate that can be made again by this command; it takes what `beliefbound bound` "
            "and `beliefbound robust` wrote"
            + (f", and this is a {kind}: call the function that made it with its seed and effort" if kind else "")
        )
    return content


def _converted(file: Path, content: dict[str, Any]) -> _Written:
    found = content.get("format"), content.get("version")
    if found != (FORMAT, VERSION):
        raise FileError(
            f"{file} has format {found[0]!r} and version {found[1]!r}; this program makes {FORMAT!r} of version "
            f"{VERSION} again: use the release of beliefbound that wrote it"
        )
    try:
        return msgspec.convert(content, _Written)
    except (msgspec.ValidationError, RecursionError) as cause:
        raise FileError(f"{file} is no certificate that can be made again: {cause}") from None


def models_of(file: Path, made: Made, models: Path | str | None) -> tuple[Path, ModelFolder]:
    """The models that a certificate was made from, and where they are; an error where they are others."""
    places = [Path(made.models), file.parent / made.models] if models is None else [Path(models)]
    path = next((path for path in places if path.exists()), None if models is None else places[0])
    if path is None:
        raise FileError(f"{file} was made from {made.models}, which is not here; give the models as a second argument")
    folder = read_models(path, reward_signal=made.reward_signal, absorbing=made.absorbing)  # type: ignore[arg-type]
    if digest_of(folder) != made.digest or folder.discount != made.discount:
        raise FileError(f"the models in {path} are not those of {file}; give the folder it was made from")
    return path, folder


def _numbers(found: Bracket, memoryless: tuple[float, Regret]) -> dict[str, Any]:
    """What a certificate says besides its ends and bounds, by the names of its entries."""
    value, gap = memoryless
    decision = None if found.decision is None else found.decision.to_dict()
    return {
        "confidence": found.confidence,
        "width": found.width,
        "relative_gap": found.relative_gap,
        "policy.value_at_least": found.lower.value,
        "policy.gap": found.regret.value,
        "policy.confidence": found.regret.confidence,
        "memoryless.value": value,
        "memoryless.gap": gap.value,
        "memoryless.confidence": gap.confidence,
        "decision": msgspec.json.decode(msgspec.json.encode(decision)),
    }


def near(theirs: Any, ours: Any, scale: float) -> bool:
    """Whether numbers agree within the tolerance, wherever they stand; all else is the same."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(near(theirs[key], ours[key], scale) for key in ours)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(near(x, y, scale) for x, y in zip(theirs, ours, strict=True))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return bool(abs(theirs - ours) <= TOLERANCE * max(scale, abs(ours)))
    return bool(theirs == ours)


def _entry(written: _Written, name: str) -> Any:
    """An entry of the file; nothing where it is missing."""
    held: Any = written
    for key in name.split("."):
        held = held.get(key) if isinstance(held, dict) else getattr(held, key, None)
    return held


def differences(made: Made) -> tuple[str, ...]:
    """Version or machine, where they are not those that made a certificate."""
    return tuple(
        f"{what} {theirs} instead of {ours}"
        for what, theirs, ours in (
            ("version", version("beliefbound"), made.version),
            ("machine", machine(), made.machine),
        )
        if theirs != ours
    )


def _compared(
    written: _Written,
    found: Bracket,
    path: Path,
    numbers: dict[str, Any],
    files: tuple[list[str], list[str]],
) -> Verification:
    made, now = written.made, found.to_dict()["bounds"]
    others = [
        f"{name} is {_entry(written, name)!r} in the file and {value!r} now"
        for name, value in numbers.items()
        if _entry(written, name) != value
    ]
    differs, (wrong, missing) = differences(made), files
    ends = ((written.lower, found.lower.value), (written.upper, found.upper.value))
    compared = [tuple(b.get(key) for key in _COMPARED) for b in written.bounds]
    exact = (
        all(theirs == ours for theirs, ours in ends)
        and compared == [tuple(b[key] for key in _COMPARED) for b in now]
        and made.effort == found.effort
        and not others
    )
    scale = max(abs(value) for pair in ends for value in pair)
    off = max(abs(theirs - ours) for theirs, ours in ends)
    agree = all(near(_entry(written, name), value, scale) for name, value in numbers.items())
    same = (exact or (bool(differs) and agree and off <= TOLERANCE * scale)) and not (exact and wrong)
    where = f"{path}, seed {made.seed}, effort {made.effort}"
    words = [f"found again ({where}): [{found.lower.value!r}, {found.upper.value!r}]"]
    words += [f"not the same {difference}" for difference in differs]
    if exact:
        words.append(f"identical: all {len(now)} bounds, bit for bit")
        words += [*missing, *(f"but {complaint}" for complaint in wrong)]
    elif same:
        words.append(f"equal within {TOLERANCE:g} of the value: the ends differ by {off:.3g}")
        words.append("bounds other than the ends, and the files of policies, were not compared")
    else:
        asked = f"within {TOLERANCE:g} of the value" if differs else "bit for bit"
        words.append(f"different: the file says [{written.lower!r}, {written.upper!r}]; that is not the same {asked}")
        overlap = written.lower <= found.upper.value and found.lower.value <= written.upper
        words.append("the two brackets overlap" if overlap else "the two brackets contradict each other")
        words += others
    return Verification(same, exact, differs, found, tuple(words))
