"""What the best possible agent earns where MDPs are drawn from a prior: a certified bracket, beside the scores.

The score of such a league is `Σ_{t<steps} γ^t r_t`, averaged over MDPs that are drawn from the prior. Its expectation,
maximised over all agents, is the Bayes-optimal value of that prior with discount γ and horizon `steps`, which `bracket`
encloses: nobody who is not told more than the prior earns more than its upper end on average, and somebody earns the
lower end. Where the steps are so many that little is left, the bracket is that of a problem without end, which closes
faster; what comes after the last step, `γ^steps / (1 − γ)` times the least and the largest reward, is taken off its
ends. What an agent earned over some hundreds of draws differs from its expectation by as much as its interval says.

What the policy behind the bracket earns is one lower end; what any agent earns is another. `PLAYERS`, which are fixed
here and not chosen by how they do in a league, play so many runs for each step of work, the faster ones more, on MDPs
and noise that nobody in the league meets: a lower confidence bound of the mean of each (`bounds.statistics.betting`),
over as many steps as the league's. The bracket may fail with half of what is allowed, and the players share the other
half, so that the best lower end and the upper one hold together.

The bracket is closed by steps of work, so that the same command finds the same, and kept in the folder `band`. Where a
player earns more for certain than the policy of a short bracket is estimated to, all the work goes to the upper end.
That one is made on random numbers of its own, and only says which to make: of what chance may do wrong it has no share.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import BeliefboundError
from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.bounds.bracket import Bracket, bracket
from beliefbound.bounds.record import TracePoint, percent, relative
from beliefbound.bounds.statistics.betting import mean_at_least
from beliefbound.lab.engine.registry import canonical_agent
from beliefbound.lab.envs.environment import Environment
from beliefbound.lab.experiments.cells import play_cell
from beliefbound.lab.experiments.spec import Cell, Spec

PLAYERS = {  # and runs for each step of work
    "mcbrl-lookahead:schedule=moved,prior=environment": 60,
    "visits:prior=environment": 240,
}
EFFORT = 100  # steps of work: about a minute
GAP = 0.08  # of the larger end: enough for a picture
_TRIAL, _TRIAL_SEED = 60, 2  # steps of the short one
_LITTLE = 1e-4  # of the weight of all rewards
_ERROR = 0.05  # of the band: half for the bracket, half for the players
_SEED = 1
_POLICY = "the policy of the bracket"
_ELSEWHERE = 10**9  # the first run of a player: a league has fewer


class Band(NamedTuple):
    """The best possible agent earns between `low` and `high` on average, with this confidence."""

    low: float
    high: float
    confidence: float
    by: str  # who earns the lower end

    @property
    def width(self) -> float:
        """As a share of the larger end."""
        return (self.high - self.low) / max(abs(self.low), abs(self.high), 1e-300)


def band_of(
    place: Environment,
    folder: Path | str,
    *,
    steps: int,
    discount: float,
    effort: int,
    doing: Callable[[str], object] = lambda text: None,
) -> Band | None:
    """The bracket of the prior that the environments of a league's runs are drawn from; `None` where there is none.

    One that the folder holds, of the same prior, task and effort, is taken as it is. `doing` is told what is done.
    """
    if place.of_run is None or place.prior is None or effort <= 0:
        return None
    endless = discount**steps <= _LITTLE
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in place.name)
    length = "" if endless else f"@{steps}"
    file = as_path(folder) / "band" / f"{name}@{discount:g}{length}@{effort}.json"
    horizon = None if endless else steps
    least, most = (discount**steps / (1.0 - discount) * end if endless else 0.0 for end in place.reward_range)
    knobs: dict[str, Any] = {"initial": place.start, "discount": discount, "horizon": horizon, "rng": 1}
    knobs["confidence"] = 1.0 - _ERROR / 2
    found = _kept(file)
    if found is None or found.confidence < 1.0 - _ERROR / 2:
        file.parent.mkdir(parents=True, exist_ok=True)
        now = _Closing(least, most, doing)
        knobs |= {"effort": effort, "target_gap": GAP, "watch": now.watch}
        if effort > _TRIAL:
            trial = bracket(place.prior(), **knobs | {"effort": _TRIAL, "rng": _TRIAL_SEED})
            now.low, now.high = -np.inf, np.inf
            if trial.relative_gap > GAP:
                own = _earnings(place, file, steps=steps, discount=discount, effort=effort, doing=doing)
                now.low = max(own)[0]
                if trial.lower.estimate is None or now.low + least > trial.lower.estimate:
                    knobs |= {"target": "upper", "target_gap": None, "stop": now.near}
        found = bracket(place.prior(), **knobs)
        found.save(file)
    low, high = found.lower.value - most, found.upper.value - least
    if high - low <= GAP * max(abs(low), abs(high)):
        return Band(low, high, found.confidence, _POLICY)
    own = _earnings(place, file, steps=steps, discount=discount, effort=effort, doing=doing)
    low, by = max([(low, _POLICY), *own])  # what is earned at least, and by whom
    return Band(low, high, 1.0 - _ERROR, by)


class _Closing:
    """The band as it closes; `least`, `most`: of what comes after the last step."""

    def __init__(self, least: float, most: float, doing: Callable[[str], object]) -> None:
        self.low, self.high = -np.inf, np.inf
        self._least, self._most, self._doing = least, most, doing

    def watch(self, point: TracePoint) -> None:
        self.low, self.high = max(self.low, point.lower.value - self._most), point.upper.value - self._least
        wide = percent(relative(self.low, self.high))
        self._doing(f"the best possible agent earns between {self.low:.4g} and {self.high:.4g}, {wide} wide …")

    def near(self) -> bool:
        return self.high - self.low <= GAP * max(abs(self.low), abs(self.high))


def _earnings(
    place: Environment, bracketed: Path, *, steps: int, discount: float, effort: int, doing: Callable[[str], object]
) -> list[tuple[float, str]]:
    """What each player earns at least, and who it is."""
    found = []
    for agent, runs in PLAYERS.items():
        player = canonical_agent(agent)
        doing(f"what {agent} earns at least, over {runs * effort} MDPs …")
        low = _earned(place, player, bracketed, steps=steps, discount=discount, runs=runs * effort)
        found.append((low, player))
    return found


def _earned(place: Environment, player: str, bracketed: Path, *, steps: int, discount: float, runs: int) -> float:
    """What a player earns at least, on average over the prior, with a probability of one minus its share of the error;
    kept beside the bracket."""
    file = bracketed.with_name(f"{bracketed.stem}@{Cell(player, place.name, _SEED).folder}.json")
    if not file.exists():
        spec = Spec(agents=(player,), environments=(place.name,), runs=runs, steps=steps, discount=discount)
        played = play_cell(spec, Cell(player, place.name, _SEED), range(_ELSEWHERE, _ELSEWHERE + runs)).utility
        weight = (1.0 - discount**steps) / (1.0 - discount)
        least, most = (weight * end for end in place.reward_range)
        low = mean_at_least(played, low=least, high=most, alpha=_ERROR / (2 * len(PLAYERS)))
        write_text(file, json.dumps({"player": player, "runs": runs, "mean": float(played.mean()), "at least": low}))
    return float(json.loads(file.read_text(encoding="utf-8"))["at least"])


def _kept(file: Path) -> Bracket | None:
    try:
        return Bracket.load(file) if file.exists() else None
    except BeliefboundError:
        return None  # of another version: made anew
