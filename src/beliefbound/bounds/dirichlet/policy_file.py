"""A particle policy as an archive of arrays, of the kind `particle` (see `policy.files` for the header).

belief_…                      the belief it plans with: the arrays of `beliefs.dirichlet_file`, their names after
                              `belief_`
start [s]                     where the certificate starts
discount, horizon             decisions; −1 for ever
seed                          of the policy's own particles
share [level], particles [level]   as long as this share of the value is left, so many particles; shares fall to 0
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefboundError, BeliefError, FileError, PolicyError
from beliefbound.base.io.arrays import Array, Shapes
from beliefbound.base.limits import FILE_BYTES
from beliefbound.base.validation import FloatArray, check_discount, check_distributions
from beliefbound.beliefs import Belief
from beliefbound.beliefs.capabilities import counted
from beliefbound.beliefs.dirichlet_file import belief_arrays, read_belief

KIND = "particle"
_BELIEF = "belief_"
_LARGEST = 1 << 62
_LEAST = 8  # particles: the policies to fall back on are those of single ones


def arrays_of(
    belief: Belief,
    start: FloatArray,
    discount: float,
    horizon: int | None,
    seed: int,
    levels: Sequence[tuple[float, int]],
) -> dict[str, Array]:
    """The arguments of a `ParticlePolicy`, by name."""
    try:
        own = belief_arrays(belief)
    except BeliefError as cause:
        raise PolicyError(f"a policy for {belief!r} cannot be saved: {cause}") from None
    arrays: dict[str, Any] = {f"{_BELIEF}{name}": array for name, array in own.items()}
    arrays |= {
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
    own = {name.removeprefix(_BELIEF): array for name, array in arrays.items() if name.startswith(_BELIEF)}
    if not own:
        raise FileError(
            f"{path} holds a particle policy in the form of an earlier release, which could not describe every belief: "
            f"make it again, or read it with the release of beliefbound that wrote it"
        )
    file = Shapes(path, {name: array for name, array in arrays.items() if not name.startswith(_BELIEF)})
    belief = read_belief(path, own)
    file.sizes["state"] = belief.n_states
    share, particles = file.take("share", "f8", "level"), file.ids("particles", "i8", "level", _LEAST, 1 << 40)
    if not len(share) or share[-1] != 0.0 or (np.diff(share) >= 0.0).any() or share[0] > 1.0:
        raise file.wrong("share", "does not fall to 0")
    if 32 * belief.n_states * belief.n_actions * (belief.n_states + 1) * int(particles.sum()) > FILE_BYTES:
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
        if counted(belief) is None:
            raise PolicyError("its belief has no counts, which a particle policy needs")
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
