"""A Dirichlet belief as an archive of arrays (`.npz`): plain numbers, nothing that is unpickled.

header                        UTF-8 bytes of a JSON object: `format`, `version`, `rewards` (a kind), optional `states`,
                              `actions` (names)
concentration [s,a,t]         prior and counts
terminal [s], available [s,a] booleans
observed [s,a]                transitions that were counted
initial [s]                   optional
rewards                       of a kind: `known`: reward_known [s,a,n], n = 1 or, on arrival, the number of states;
                              `beta`: reward_alpha, reward_beta [s,a], reward_low, reward_high; `values`: reward_values,
                              reward_counts [s,a,k]; `mixed`: reward_known, reward_missing [s,a,t], and as `values`;
                              `normal`: reward_location, reward_strength, reward_shape, reward_rate [s,a]

Version 2: pairs share parameters. The concentration is `[row,outcome]`, and `row [s,a]` and `arrive [s,a,outcome]` are
as for `DirichletBelief.tied`; pairs that stay where they are, in terminal states and where an action is not available,
have rows of their own.

The same arrays, their names after `belief_`, are part of the file of a policy that plans with a belief
(`bounds.dirichlet.policy_file`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from beliefbound.base.errors import BeliefboundError, BeliefError, FileError
from beliefbound.base.io.arrays import Array, Shapes
from beliefbound.base.limits import FILE_BYTES
from beliefbound.base.validation import check_kind
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.rewards import BetaRewards, DirichletRewards, KnownRewards, MixedRewards, NormalRewards
from beliefbound.beliefs.ties import tie

FORMAT = "beliefbound belief"
_VERSIONS = (1, 2)
_PAIRS = "state action"


def belief_arrays(
    belief: Any, *, states: Sequence[str] | None = None, actions: Sequence[str] | None = None
) -> dict[str, Array]:
    """Everything that a belief is, by name, for `read_belief`."""
    check_kind(belief, DirichletBelief, "belief", BeliefError, fix="give a DirichletBelief")
    kind, arrays = _rewards(belief.rewards)
    header: dict[str, Any] = {"format": FORMAT, "version": 1 if belief.ties is None else 2, "rewards": kind}
    header |= {key: list(names) for key, names in (("states", states), ("actions", actions)) if names is not None}
    arrays |= {name: getattr(belief, name) for name in ("concentration", "terminal", "available", "observed")}
    if belief.ties is not None:
        arrays |= {"row": belief.ties.row, "arrive": belief.ties.arrive}
    if belief.initial is not None:
        arrays["initial"] = belief.initial
    arrays["header"] = np.frombuffer(msgspec.json.encode(header), dtype=np.uint8)
    return {name: np.asarray(array) for name, array in arrays.items()}


def read_belief(path: Path, arrays: dict[str, Array]) -> DirichletBelief:
    """The belief of arrays that `belief_arrays` gave; a `FileError` names the file and its fault."""
    file = Shapes(path, arrays)
    header = read_header(path, file.arrays.pop("header", None))
    if "kind" in header:
        raise FileError(f"{path} holds a belief of the kind {header['kind']!r}, where a DirichletBelief is needed")
    kind, tied = str(header.get("rewards")), header["version"] == 2
    concentration = file.take("concentration", "f8", "row outcome" if tied else "state action next_state")
    terminal, available = file.take("terminal", "?", "state"), file.take("available", "?", _PAIRS)
    if not tied and concentration.shape[2] != len(terminal):
        raise file.wrong("concentration", f"has {concentration.shape[2]} next states for {len(terminal)} states")
    observed = file.ids("observed", "i8", _PAIRS, 0, 1 << 62)
    initial = file.take("initial", "f8", "state") if "initial" in file.arrays else None
    try:
        rewards, ties = _read_rewards(file, kind), None
        if tied:
            row = file.ids("row", "i8", _PAIRS, 0, len(concentration))
            arrive = file.ids("arrive", "i8", f"{_PAIRS} outcome", -1, len(terminal))
            ties, concentration = tie(row, arrive, concentration, None)
        belief = DirichletBelief.restored(concentration, ties, rewards, terminal, available, initial, observed)
    except FileError:
        raise
    except BeliefboundError as fault:
        raise FileError(f"{path}: {fault}") from None
    file.done()
    return belief


def read_header(file: Path, raw: Any) -> dict[str, Any]:
    """The header of a saved belief, of whatever kind."""
    if raw is None or raw.dtype != np.uint8 or raw.ndim != 1 or raw.size > FILE_BYTES:
        raise FileError(f"{file} is no saved belief: it has no header")
    try:
        header = msgspec.json.decode(raw.tobytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{file} is no saved belief: {cause}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileError(f"{file} is no saved belief: its format is not {FORMAT!r}")
    if type(header.get("version")) is not int or header["version"] not in _VERSIONS:
        raise FileError(f"{file} has version {header.get('version')!r}; this program reads versions 1 and 2")
    return header


def _rewards(rewards: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(rewards, KnownRewards):
        return "known", {"reward_known": _on_arrival(rewards.rewards)}
    if isinstance(rewards, BetaRewards):
        ends = {"reward_low": np.float64(rewards.low), "reward_high": np.float64(rewards.high)}
        return "beta", {"reward_alpha": rewards.alpha, "reward_beta": rewards.beta, **ends}
    if isinstance(rewards, DirichletRewards):
        return "values", {"reward_values": rewards.values, "reward_counts": rewards.counts}
    if isinstance(rewards, MixedRewards):
        arrays = _rewards(rewards.learnt)[1]
        known = np.isnan(rewards.known)
        return "mixed", {"reward_known": np.where(known, 0.0, rewards.known), "reward_missing": known, **arrays}
    if isinstance(rewards, NormalRewards):
        names = ("location", "strength", "shape", "rate")
        return "normal", {f"reward_{name}": getattr(rewards, name) for name in names}
    raise BeliefError(f"rewards of the kind {type(rewards).__name__} cannot be saved")


def _on_arrival(rewards: Any) -> Any:
    return rewards if rewards.ndim == 3 else rewards[..., None]


def _read_rewards(file: Shapes, kind: str) -> Any:
    if kind == "beta":
        alpha, beta = (file.take(f"reward_{name}", "f8", _PAIRS) for name in ("alpha", "beta"))
        low, high = (file.number(f"reward_{name}", "f8", -1e300, 1e300) for name in ("low", "high"))
        return BetaRewards(alpha, beta, low=low, high=high)
    if kind == "normal":
        names = ("location", "strength", "shape", "rate")
        location, strength, shape, rate = (file.take(f"reward_{name}", "f8", _PAIRS) for name in names)
        return NormalRewards(location, strength=strength, shape=shape, rate=rate)
    if kind == "known":
        known = file.take("reward_known", "f8", f"{_PAIRS} arrival")
        return KnownRewards(known if known.shape[2] > 1 else known[..., 0])
    if kind in ("values", "mixed"):
        values, counts = (file.take(f"reward_{name}", "f8", f"{_PAIRS} value") for name in ("values", "counts"))
        learnt = DirichletRewards(values, counts)
        if kind == "values":
            return learnt
        known = file.take("reward_known", "f8", f"{_PAIRS} arrival")
        missing = file.take("reward_missing", "?", f"{_PAIRS} arrival")
        return MixedRewards(np.where(missing, np.nan, known), learnt)
    raise FileError(f"{file.path} holds rewards of the unknown kind {kind!r}")
