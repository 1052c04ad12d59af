"""`load_policy`: any policy from the file that its `save` wrote; `read_policy`: from whatever people keep rules in."""

from pathlib import Path

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import IntArray
from beliefbound.bounds.finite import adaptive_file, alpha_policy, mixed
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import Policy
from beliefbound.policy.files import read_archive
from beliefbound.policy.naming import names_of
from beliefbound.policy.tables import read_table

_ZIP = b"PK"


def load_policy(path: Path | str) -> Policy:
    """A policy from a file: a table from JSON, a policy that learns from an archive of arrays (`policy.files`).

    It acts exactly as the one that was saved, and is at its start. The content decides, not the name of the file;
    nothing in it is executed or unpickled.

    Raises:
      FileError: the file is missing, damaged, of another version, or its arrays do not fit together.

    >>> import tempfile
    >>> from beliefbound.policy import StationaryPolicy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     StationaryPolicy([1, 0]).save(f"{folder}/policy.json")
    ...     load_policy(f"{folder}/policy.json")
    StationaryPolicy([1, 0])
    """
    file = as_path(path)
    try:
        with file.open("rb") as opened:
            start = opened.read(len(_ZIP))
    except OSError as cause:
        raise FileError(f"cannot read {file}: {cause.strerror or cause}") from None
    except ValueError as cause:
        raise FileError(f"{str(file)!a} is no name of a file: {cause}") from None
    if start != _ZIP:
        if file.suffix.lower() == ".csv":
            raise FileError(
                f"{file} is a table of states and actions, which `certify` takes with models; to act, load the "
                ".json beside it, or a StationaryPolicy that you save"
            )
        return read_table(file)
    kind, arrays = read_archive(file)
    if kind == adaptive_file.KIND:
        return AdaptivePolicy.of(*adaptive_file.read_adaptive(file, arrays))
    if kind == alpha_policy.KIND:
        return alpha_policy.read_alpha(file, arrays)
    if kind == mixed.KIND:
        return mixed.read_mixed(file, arrays)
    from beliefbound.bounds.dirichlet import policy_file as particle_file  # loaded where there is one
    from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
    from beliefbound.bounds.drawn import policy as completed_policy

    if kind == particle_file.KIND:
        return ParticlePolicy(**particle_file.read_particle(file, arrays))
    if kind == completed_policy.KIND:
        return completed_policy.read_completed(file, arrays)
    raise FileError(f"{file} holds a policy of the unknown kind {kind!r}")


def read_policy(path: Path, task: Task) -> Policy:
    """A policy from a file: a table of comma-separated values, SARSOP's, or one that `save` wrote."""
    if path.suffix.lower() == ".csv":
        from beliefbound.policy.rule_file import read_rule

        idle = _idle(task) if isinstance(task, FiniteTask) else None
        return read_rule(path, names_of(task.belief), task.belief.n_states, task.belief.n_actions, idle)
    if isinstance(task, FiniteTask) and path.suffix.lower() in (".policy", ".policyx"):
        return alpha_policy.read_sarsop(path, task)
    return load_policy(path)


def _idle(task: FiniteTask) -> IntArray:
    """`[s]`: the first action of states where nothing happens any more and nothing is paid, in every model; else -1."""
    models, rows = task.models, task.models.compressed().tocoo()
    _, s, _ = np.unravel_index(rows.row, models.rewards.shape)
    matters = (models.rewards != 0.0).any(axis=(0, 2))
    matters[s[(rows.col != s) & (rows.data > 0.0)]] = True
    return np.where(matters, -1, models.available.argmax(axis=1))
