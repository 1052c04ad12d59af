"""A certificate, checked: the same ladder again, rung by rung, and every number compared.

`bounds.json` says what was bounded (the models by a digest of their contents, the task, the confidence) and how far the
ladder was climbed (seed, effort, version). The same version on the same kind of machine finds the same numbers, bit for
bit, with any number of threads. Another version or machine may round otherwise, and from there on search otherwise:
then numbers are compared within `TOLERANCE` of the value, and the result says so.
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

from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.bounds.bound import Regret
from beliefbound.bounds.bracket import Bracket, Target, bracket
from beliefbound.bounds.log import TracePoint
from beliefbound.errors import FileError
from beliefbound.report.memoryless import memoryless_plan, memoryless_regret

TOLERANCE = 1e-6  # of the larger end
_COMPARED = ("side", "value", "method", "confidence", "estimate")
FORMAT, VERSION = "beliefbound bounds", 2  # of bounds.json; the first one did not say


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
    found: Bracket
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
    """Run the ladder of a `bounds.json` again and compare.

    Args:
      models: the model folder; default: the path in the file, as it stands, or from where the file is.

    Raises:
      FileError: the file is damaged or of a certificate that cannot be made again; or the models are others.
    """
    file = Path(bounds)
    written = _read(file)
    made = written.made
    path = _models(file, made, models)
    folder = read_models(path, reward_signal=made.reward_signal)  # type: ignore[arg-type]
    if digest_of(folder) != made.digest or folder.discount != made.discount:
        raise FileError(f"the models in {path} are not those of {file}; give the folder it was made from")
    found = bracket(
        folder.training,
        initial=folder.initial,
        discount=made.discount,
        horizon=made.horizon,
        confidence=made.confidence,
        target=made.target,
        target_gap=0.0,
        effort=made.effort,
        rng=made.seed,
        threads=threads,
        watch=watch,
    )
    plan = memoryless_plan(folder, made.horizon)
    own = plan.value(folder.initial), memoryless_regret(plan, folder, made.horizon, found)
    return _compared(written, found, path, own)


def _read(file: Path) -> _Written:
    try:
        content = msgspec.json.decode(file.read_bytes())
        if not isinstance(content, dict) or "made" not in content:
            kind = content.get("kind") if isinstance(content, dict) else None
            raise FileError(
                f"{file} is no certificate that can be made again by this command; it takes a bounds.json"
                + (f", and this is a {kind}: call the function that made it with its seed and effort" if kind else "")
            )
        found = content.get("format"), content.get("version")
        if found != (FORMAT, VERSION):
            raise FileError(
                f"{file} has format {found[0]!r} and version {found[1]!r}; this program makes {FORMAT!r} of version "
                f"{VERSION} again: use the release of beliefbound that wrote it"
            )
        return msgspec.convert(content, _Written)
    except OSError as cause:
        raise FileError(f"cannot read {file}: {cause.strerror or cause}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{file} is no certificate that can be made again: {cause}") from None


def _models(file: Path, made: Made, models: Path | str | None) -> Path:
    if models is not None:
        return Path(models)
    for path in (Path(made.models), file.parent / made.models):
        if path.exists():
            return path
    raise FileError(f"{file} was made from {made.models}, which is not here; give the models as a second argument")


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


def _near(theirs: Any, ours: Any, scale: float) -> bool:
    """Whether numbers agree within the tolerance; of a decision, which action is proven optimal."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return bool(theirs.get("best") == ours["best"])
    if not isinstance(theirs, int | float) or ours is None:
        return theirs is ours
    return bool(abs(theirs - ours) <= TOLERANCE * max(scale, abs(ours)))


def _entry(written: _Written, name: str) -> Any:
    """An entry of the file; nothing where it is missing."""
    held: Any = written
    for key in name.split("."):
        held = held.get(key) if isinstance(held, dict) else getattr(held, key)
    return held


def _compared(written: _Written, found: Bracket, path: Path, memoryless: tuple[float, Regret]) -> Verification:
    made, now = written.made, found.to_dict()["bounds"]
    others = [
        f"{name} is {_entry(written, name)!r} in the file and {value!r} now"
        for name, value in _numbers(found, memoryless).items()
        if _entry(written, name) != value
    ]
    differs = tuple(
        f"{what} {theirs} instead of {ours}"
        for what, theirs, ours in (
            ("version", version("beliefbound"), made.version),
            ("machine", machine(), made.machine),
        )
        if theirs != ours
    )
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
    near = all(_near(_entry(written, name), value, scale) for name, value in _numbers(found, memoryless).items())
    same = exact or (bool(differs) and near and off <= TOLERANCE * scale)
    where = f"{path}, seed {made.seed}, effort {made.effort}"
    words = [f"found again ({where}): [{found.lower.value!r}, {found.upper.value!r}]"]
    words += [f"not the same {difference}" for difference in differs]
    if exact:
        words.append(f"identical: all {len(now)} bounds, bit for bit")
    elif same:
        words.append(f"equal within {TOLERANCE:g} of the value: the ends differ by {off:.3g}")
    else:
        asked = f"within {TOLERANCE:g} of the value" if differs else "bit for bit"
        words.append(f"different: the file says [{written.lower!r}, {written.upper!r}]; that is not the same {asked}")
        overlap = written.lower <= found.upper.value and found.lower.value <= written.upper
        words.append("the two brackets overlap" if overlap else "the two brackets contradict each other")
        words += others
    return Verification(same, exact, differs, found, tuple(words))
