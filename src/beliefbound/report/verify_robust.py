"""`robust.json`, checked: the same rounds again, and every number compared (`report.verify`)."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from beliefbound.base.errors import FileError
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.robust import RobustBracket, robust_bracket
from beliefbound.report.verify import (
    TOLERANCE,
    Made,
    Verification,
    compare_policies,
    content_of,
    differences,
    models_of,
    near,
)

_NOT_COMPARED = ("format", "version", "kind", "policy", "library", "made")


def is_robust(file: Path) -> bool:
    """Whether a file that says how it was made holds a robust bracket."""
    return content_of(file).get("kind") == RobustBracket._kind


def verify_robust(
    file: Path,
    models: Path | str | None = None,
    *,
    threads: int | None = None,
    watch: Callable[[TracePoint], object] | None = None,
) -> Verification:
    """Play the rounds of a `robust.json` again and compare."""
    content = content_of(file)
    written = RobustBracket.load(file)  # every entry is of its type, and the policy is there
    try:
        made = msgspec.convert(content["made"], Made)
    except (KeyError, msgspec.ValidationError) as cause:
        raise FileError(f"{file} is no certificate that can be made again: made: {cause}") from None
    path, folder = models_of(file, made, models)
    found = robust_bracket(
        folder.training,
        priors=written.priors,
        initial=folder.initial,
        discount=made.discount,
        horizon=made.horizon,
        confidence=made.confidence,
        effort=made.effort,
        rng=made.seed,
        threads=threads,
        watch=watch,
    )
    now = msgspec.json.decode(msgspec.json.encode(found.to_dict()))
    entries = {key: value for key, value in now.items() if key not in _NOT_COMPARED}
    others = [
        f"{key} is {content.get(key)!r} in the file and {value!r} now"
        for key, value in entries.items()
        if content.get(key) != value
    ]
    differs = differences(made)
    scale = max(abs(found.lower.value), abs(found.upper.value))
    exact = not others
    wrong, _ = compare_policies(file.parent, {str(content.get("policy")): found.policy})
    agree = bool(differs) and all(near(content.get(key), value, scale) for key, value in entries.items())
    same = not wrong if exact else agree
    words = [f"found again ({path}, seed {made.seed}, effort {made.effort}): {found!r}"]
    words += [f"not the same {difference}" for difference in differs]
    if exact:
        words += ["identical: both bounds, the prior and every model's value, bit for bit"]
        words += [f"but {complaint}" for complaint in wrong]
    elif same:
        words.append(f"equal within {TOLERANCE:g} of the value; the file of the policy was not compared")
    else:
        asked = f"within {TOLERANCE:g} of the value" if differs else "bit for bit"
        words += [f"different: that is not the same {asked}", *others]
    return Verification(same, exact, differs, found, tuple(words))
