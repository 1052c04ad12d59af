"""A particle policy as an archive of arrays, of the kind `particle` (see `policy.files` for the header).

concentration [s,a,t]         of the Dirichlet belief
start [s]                     where the certificate starts
discount, horizon             decisions; −1 for ever
seed                          of the policy's own particles
share [level], particles [level]   as long as this share of the value is left, so many particles; shares fall to 0
alpha [s,a], beta [s,a], low, high   of Beta rewards; or
rewards [s,a]                 known ones
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.beliefs import Belief, BetaRewards, DirichletBelief, KnownRewards
from beliefbound.errors import BeliefboundError, FileError, PolicyError
from beliefbound.io.arrays import Array, Shapes
from beliefbound.limits import FILE_BYTES
from beliefbound.validation import FloatArray, check_discount, check_distributions

KIND = "particle"
_LARGEST = 1 << 62
_LEAST = 8  # particles: the policies to fall back on are those of single ones
_REWARDS: dict[type, tuple[str, ...]] = {BetaRewards: ("alpha", "beta", "low", "high"), KnownRewards: ("rewards",)}


def arrays_of(
    belief: Belief,
    start: FloatArray,
    discount: float,
    horizon: int | None,
    seed: int,
    levels: Sequence[tuple[float, int]],
) -> dict[str, Array]:
    """The arguments of a `ParticlePolicy`, by name."""
    fields = _REWARDS.get(type(getattr(belief, "rewards", None)))
    if not isinstance(belief, DirichletBelief) or fields is None:
        raise PolicyError(f"a policy for {belief!r} cannot be saved: only Beta and known rewards can")
    arrays: dict[str, Any] = {name: getattr(belief.rewards, name) for name in fields}
    arrays |= {
        "concentration": belief.concentration,
        "start": np.asarray(start, dtype=np.float64),
        "discount": np.float64(discount),
        "horizon": np.int64(-1 if horizon is None else horizon),
        "seed": np.uint64(seed),
        "share": np.array([share for share, _ in levels], dtype=np.float64),
        "particles": np.array([n for _, n in levels], dtype=np.int64),
    }
    return {name: np.asarray(array) for name, array in arrays.items()}


def read_particle(path: Path, arrays: dict[str, Array]) -> dict[str, Any]:
    """The arguments of a `ParticlePolicy`, by name; a `FileError` names the file and its fault."""
    file = Shapes(path, arrays)
    concentration = file.take("concentration", "f8", "state action next_state")
    n_states, n_actions, _ = concentration.shape
    share, particles = file.take("share", "f8", "level"), file.ids("particles", "i8", "level", _LEAST, 1 << 40)
    if not len(share) or share[-1] != 0.0 or (np.diff(share) >= 0.0).any() or share[0] > 1.0:
        raise file.wrong("share", "does not fall to 0")
    if 32 * n_states * n_actions * (n_states + 1) * int(particles.sum()) > FILE_BYTES:
        raise file.wrong("particles", f"would need more than {FILE_BYTES >> 30} GiB of memory")
    discount = file.number("discount", "f8", 0.0, 1.0)
    horizon = int(file.number("horizon", "i8", -1, _LARGEST))
    if horizon == 0:
        raise file.wrong("horizon", "is 0; a policy has at least one decision")
    start = file.take("start", "f8", "state")
    seed = int(file.number("seed", "u8", 0, 2**63 - 1))
    try:
        check_discount(discount, None if horizon < 0 else horizon)
        check_distributions(start, "start", ("state",), PolicyError)
        rewards: BetaRewards | KnownRewards
        if "rewards" in file.arrays:
            rewards = KnownRewards(file.take("rewards", "f8", "state action"))
        else:
            alpha, beta = (file.take(name, "f8", "state action") for name in ("alpha", "beta"))
            low, high = (file.number(name, "f8", -1e300, 1e300) for name in ("low", "high"))
            rewards = BetaRewards(alpha, beta, low=low, high=high)
        belief = DirichletBelief(n_states, n_actions, concentration=concentration, rewards=rewards)
    except FileError:
        raise
    except BeliefboundError as fault:
        raise FileError(f"{path}: {fault}") from None
    file.done()
    return {
        "belief": belief,
        "start": start,
        "discount": discount,
        "horizon": None if horizon < 0 else horizon,
        "seed": seed,
        "levels": tuple(zip(share.tolist(), particles.tolist(), strict=True)),
    }
