"""What the best possible agent earns where MDPs are drawn from a prior: a certified bracket, beside the scores.

The score of such a league is `Σ_{t<steps} γ^t r_t`, averaged over MDPs that are drawn from the prior. Its expectation,
maximised over all agents, is the Bayes-optimal value of that prior with discount γ and horizon `steps`, which `bracket`
encloses: nobody earns more than its upper end on average, whatever it was told, and somebody earns the lower end. Where
the steps are so many that little is left, the bracket is that of a problem without end, which closes faster; what comes
after the last step, `γ^steps / (1 − γ)` times the least and the largest reward, is taken off its ends. What an agent
earned over some hundreds of draws differs from its expectation by as much as its interval says.

The bracket is closed by steps of work, so that the same command finds the same, and kept in `band.json`.
"""

from pathlib import Path
from typing import NamedTuple

from beliefbound.base.errors import BeliefboundError
from beliefbound.base.io.paths import as_path
from beliefbound.bounds.bracket import Bracket, bracket
from beliefbound.lab.envs.environment import Environment

EFFORT = 200  # steps of work: a minute or two
GAP = 0.08  # of the larger end: enough for a picture
_LITTLE = 1e-4  # of the weight of all rewards


class Band(NamedTuple):
    """The best possible agent earns between `low` and `high` on average, with this confidence."""

    low: float
    high: float
    confidence: float

    @property
    def width(self) -> float:
        """As a share of the larger end."""
        return (self.high - self.low) / max(abs(self.low), abs(self.high), 1e-300)


def band_of(place: Environment, folder: Path | str, *, steps: int, discount: float, effort: int) -> Band | None:
    """The bracket of the prior that the environments of a league's runs are drawn from; `None` where there is none.

    One that the folder holds, of the same prior, task and effort, is taken as it is.
    """
    if place.of_run is None or place.prior is None or effort <= 0:
        return None
    endless = discount**steps <= _LITTLE
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in place.name)
    length = "" if endless else f"@{steps}"
    file = as_path(folder) / "band" / f"{name}@{discount:g}{length}@{effort}.json"
    found = _kept(file)
    if found is None:
        horizon = None if endless else steps
        found = bracket(
            place.prior(),
            initial=place.start,
            discount=discount,
            horizon=horizon,
            effort=effort,
            target_gap=GAP,
            rng=1,
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        found.save(file)
    least, most = (discount**steps / (1.0 - discount) * end if endless else 0.0 for end in place.reward_range)
    return Band(found.lower.value - most, found.upper.value - least, found.confidence)


def _kept(file: Path) -> Bracket | None:
    try:
        return Bracket.load(file) if file.exists() else None
    except BeliefboundError:
        return None  # of another version: made anew
