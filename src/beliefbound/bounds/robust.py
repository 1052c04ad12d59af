"""`robust_bracket`: the value when nature picks the worst prior from a set, with a certificate.

For finitely many models `max_π min_{w∈W} Σ_m w_m V_m^π = min_{w∈W} V*(w)` for convex `W`: the value vectors of (mixed)
policies are a convex compact set. **Double oracle.** From below, a linear program mixes the policies found so far:
their exact value vectors `[m]` against the worst prior for the mixture, which is found in closed form. Its dual is a
prior. From above, the upper bound of `bracket` at that prior, or at any other of the set, is no less than the value;
and the policies that `bracket` finds there join the mixture. The best of each side is kept.

The lower bound is always exact. Upper bounds may be sampled: round `j` gets the share `δ/(j(j+1))` of the error.

What a round does follows from its number, the seed and what was found before, never from the clock, which only decides
after which round to stop: one that would take longer than what is left is not begun, and one that somebody interrupts
is forgotten. So seed and number of rounds make the same bracket again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import ContradictionError, ParameterError
from beliefbound.base.progress import closing_display
from beliefbound.base.validation import (
    FloatArray,
    Rng,
    check_kind,
    check_probability,
    check_threads,
    frozen,
)
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.bound import Bound, BoundEntries, Kind
from beliefbound.bounds.bracket import Bracket, bracket_of, limits_of, seed_of
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.vector_oracle import VectorOracle
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.prior_game import ROBUST, Game
from beliefbound.bounds.prior_sets import prior_set
from beliefbound.bounds.record import TracePoint, contradiction, percent, relative
from beliefbound.bounds.steps import Limits
from beliefbound.bounds.warmup import warm_up
from beliefbound.kernels.compiling import clock
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import Policy
from beliefbound.policy.naming import Names, NamesEntries, names_of
from beliefbound.policy.results import Entries, Result, array_of, axis, literal

_EFFORT, _MORE_EFFORT = 8, 5  # steps of the bracket in the first round, and how many more in each one after
_GAMES, _MORE_GAMES = 8, 4  # games against the worst prior, likewise
_LONGER = 1.3  # times the time of a round: what the next one may take
_POINTS = 256  # beliefs between two games
_GRAPHS = (Kind.ALPHA_VECTORS, Kind.DISTINCT_BELIEFS, Kind.HISTORIES)  # kinds of bounds whose policies are large
_DRAWN = 40  # models that fit into a picture
_CLOSED = 1e-9  # of the value: a gap that counts as none


class RobustEntries(Entries):
    """A `RobustBracket` in a file."""

    lower: BoundEntries
    upper: BoundEntries
    priors: str
    prior: list[float]
    model_values: list[float]
    confidence: float
    rounds: int
    seed: int
    library: str
    width: float
    relative_gap: float
    names: NamesEntries = NamesEntries()


@dataclass(frozen=True)
class RobustBracket(Result):
    """The value under the least favourable prior lies in `[lower.value, upper.value]`.

    Attributes:
      lower, upper: the best bounds found; each says how it was proven. `lower` is exact.
      policy: a mixture that earns at least `lower` under every prior of the set.
      prior: `[m]`, the prior at which `upper` was found: no policy earns more than `upper` under it.
      model_values: `[m]`, the exact value of `policy` on each model.
      priors: the set, as it was asked for.
      confidence: probability with which everything here holds; 1 when all of it is exact.
      rounds: how many priors were tried: the effort. `robust_bracket(…, rng=seed, effort=rounds)` of the same version
        of the library gives the same again, bit for bit on the same kind of machine.
      seed, version: of what was drawn, and of the library.
      trace: `(seconds, lower, upper)` as the bracket closed.
      names: of states, actions and models, where the belief has any.
    """

    lower: Bound
    upper: Bound
    policy: Policy
    prior: FloatArray = field(compare=False)
    model_values: FloatArray = field(repr=False, compare=False)
    priors: str
    confidence: float
    rounds: int
    trace: tuple[TracePoint, ...] = field(default=(), repr=False, compare=False)
    names: Names = field(default=Names(), repr=False, compare=False)
    seed: int = field(default=0, repr=False)
    version: str = field(default="", repr=False)

    _kind, _entries, _version = "robust bracket", RobustEntries, 4

    def __post_init__(self) -> None:
        if self.lower.value > self.upper.value:
            raise ContradictionError(contradiction(self.lower, self.upper))

    @property
    def width(self) -> float:
        """`upper − lower`, in units of value; never negative."""
        return self.upper.value - self.lower.value

    @property
    def relative_gap(self) -> float:
        """`width` as a share of the larger of `|upper|` and `|lower|`."""
        return relative(self.lower.value, self.upper.value)

    def __repr__(self) -> str:
        kind = "proven" if self.confidence == 1.0 else f"{100 * self.confidence:.4g}% confidence"
        ends = f"[{self.lower.value:.6g}, {self.upper.value:.6g}]"
        return f"RobustBracket({ends}, {percent(self.relative_gap)} wide, {kind}, priors {self.priors})"

    def _rows(self) -> list[tuple[str, str]]:
        likely = np.argsort(-self.prior, kind="stable")[:5]
        shown = ", ".join(
            f"{self.names.model(int(m))} {100 * self.prior[m]:.3g}%" for m in likely if self.prior[m] > 0.0
        )
        rows = [("lower", f"{self.lower.value:.6g}, proven: {self.lower.method}")]
        how = "proven" if self.upper.exact else f"holds with probability {self.confidence:.4g}"
        rows.append(("upper", f"{self.upper.value:.6g}, {how}: {self.upper.method}"))
        rows.append(("least favourable", shown))
        rows.append(("policy", repr(self.policy)))
        worst = self.names.model(int(np.argmin(self.model_values)))
        return [*rows, ("worst model", f"{self.model_values.min():.6g}, on {worst}")]

    def plot(self, ax: Any = None) -> Any:
        """The least favourable prior, a bar for each model of largest weight in it, and what the policy earns there; on
        a matplotlib axis, returned."""
        ax = axis(ax, figsize=(6.4, 4.0))
        shown = np.sort(np.argsort(-self.prior, kind="stable")[:_DRAWN])
        place = np.arange(len(shown))
        bars = ax.bar(place, self.prior[shown], 0.6, color="tab:red")
        ax.bar_label(
            bars, [f"{self.model_values[m]:.4g}" for m in shown], fontsize=7, rotation=90 if len(shown) > 8 else 0
        )
        ax.set_xticks(place, [literal(self.names.model(int(m))) for m in shown], rotation=90 if len(shown) > 6 else 0)
        ax.set_ylabel("least favourable prior (above: what the policy earns)")
        ax.margins(y=0.15)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON."""
        return {
            "lower": self.lower.to_dict(),
            "upper": self.upper.to_dict(),
            "priors": self.priors,
            "prior": self.prior.tolist(),
            "model_values": self.model_values.tolist(),
            "confidence": float(self.confidence),
            "rounds": int(self.rounds),
            "seed": self.seed,
            "library": self.version,
            "width": self.width,
            "relative_gap": self.relative_gap,
            "names": self.names.to_dict(),
        }

    @staticmethod
    def _read_policy(file: Path) -> Policy:
        return load_policy(file)

    @classmethod
    def _from_entries(cls, entries: RobustEntries, policy: Policy | None) -> Self:
        if policy is None:
            raise ParameterError("it names no policy")
        lower, upper = Bound._from_entries(entries.lower, policy), Bound._from_entries(entries.upper, None)
        if (lower.side, upper.side) != ("lower", "upper"):
            raise ParameterError("its lower and upper bounds are on the wrong sides")
        prior, values = (array_of(getattr(entries, x), (None,), x) for x in ("prior", "model_values"))
        made: dict[str, Any] = {"seed": entries.seed, "version": entries.library}
        made["names"] = Names.from_entries(entries.names, models=len(values))
        return cls(lower, upper, policy, prior, values, entries.priors, entries.confidence, entries.rounds, **made)


def robust_bracket(
    models: FiniteBelief,
    *,
    priors: str = "all",
    initial: FloatArray | int | None = None,
    discount: float,
    horizon: int | None = None,
    confidence: float = 0.95,
    target_gap: float | None = None,
    time_limit: float | None = None,
    effort: int | None = None,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool = False,
    watch: Callable[[TracePoint], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> RobustBracket:
    """Bounds on what the best policy earns when nature picks the worst prior from a set, after it has been chosen.

    Args:
      models: a finite belief; its weights are the centre of a set of priors that has one.
      priors: `all`; `cvar:0.2`, no prior gives a model more than 1/0.2 times its weight; `l1:0.1`, priors within 0.1
        of the weights in L1.
      initial, discount, horizon: of the problem, as for `bracket`.
      confidence: with which both bounds hold. Exact ones hold with certainty.
      target_gap: stop when `upper − lower` is at most this share of the larger end. Default: 0.01, unless there is a
        time limit or an effort; then 0.
      time_limit: seconds, not exceeded by much: a round is not begun where there is no time left for it; default 60.
        Compiling comes before.
      effort: in place of a time limit, at most so many rounds: the same bracket every time, bit for bit.
      rng, threads, progress, watch, stop: as for `bracket`.

    >>> from beliefbound import FiniteBelief
    >>> stay, rewards = [[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]]
    >>> belief = FiniteBelief(stay, rewards, reward_signal="unobserved")
    >>> found = robust_bracket(belief, discount=0.5, rng=0)
    >>> round(found.lower.value, 3), round(found.upper.value, 3)  # the first arm with 3/4: 1.5 on both models
    (1.5, 1.5)
    >>> found.prior.round(3).tolist()
    [0.75, 0.25]
    """
    check_kind(models, FiniteBelief, "models", ParameterError, fix="give a FiniteBelief")
    set_ = prior_set(priors, models.weights)
    task = FiniteTask.of(models, discount=discount, horizon=horizon, initial=initial)
    error = 1.0 - check_probability(confidence, "confidence")
    seed, threads = seed_of(rng), check_threads(threads)
    source = np.random.default_rng(seed)
    limits = limits_of(target_gap=target_gap, time_limit=time_limit, effort=effort, stop=stop)
    warm_up(task)
    began, rounds, took = clock(), 0, 0.0
    allowance = Allowance(task)
    complete: RobustBracket | None = None  # after the last round

    def over() -> bool:
        if stop is not None and stop():
            return True
        if limits.effort is not None:
            return rounds >= limits.effort
        return clock() - began + _LONGER * took > limits.seconds

    with closing_display(show=progress, watch=watch) as seen:
        game = Game(task, set_, seen, began)
        for policy in policies_of(task):
            game.add(policy)
        prior = game.mix()
        oracle = VectorOracle(game.every, source) if horizon is None and models.signal.finite else None
        while True:
            round_began = clock()
            if oracle is not None:
                prior = _respond(game, oracle, prior, _GAMES + _MORE_GAMES * rounds)
            steps = _EFFORT + _MORE_EFFORT * rounds
            rounds += 1
            asked = Limits(effort=steps, stop=stop if complete is not None else None)
            sure = 1.0 - error / (rounds * (rounds + 1))
            at = task.reweighted(prior)
            found = bracket_of(at, asked, seed=seed_of(source), confidence=sure, threads=threads).bracket
            if complete is not None and stop is not None and stop():
                return complete
            game.above(found.upper, prior)
            _learn(game, found)
            prior, took = game.mix(), clock() - round_began
            game.note(clock() - began)
            complete = _result(game, str(set_), rounds, confidence, seed)
            low, high = complete.lower.value, complete.upper.value
            closed = complete.relative_gap <= _CLOSED or complete.width <= allowance(low, "lower") + allowance(
                high, "upper"
            )
            if over() or closed or complete.relative_gap <= limits.gap:
                return complete


def _respond(game: Game, oracle: VectorOracle, prior: FloatArray, games: int) -> FloatArray:
    """Vectors against the prior that is worst for those found, until neither moves, for so many games at most."""
    for _ in range(games):
        before = game.lower
        gained = 0.0 if oracle.full else oracle.improve(prior, _POINTS)
        game.respond(oracle, prior)
        prior = game.mix()
        if oracle.full or (gained == 0.0 and game.lower <= before):
            break
    return prior


def _learn(game: Game, found: Bracket) -> None:
    """The policies of a bracket join the game: all tables, and the best decision graph of each kind."""
    best: dict[Kind, Bound] = {}
    for bound in found.bounds:
        if bound.exact and bound.side == "lower" and bound.policy is not None:
            if bound.kind not in _GRAPHS:
                game.add(bound.policy)
            elif bound.kind not in best or bound.value > best[bound.kind].value:
                best[bound.kind] = bound
    for kind in _GRAPHS:
        if kind in best and (policy := best[kind].policy) is not None:
            game.add(policy)


def _result(game: Game, priors: str, rounds: int, confidence: float, seed: int) -> RobustBracket:
    policy, (best, prior) = game.policy(), game.best_above
    words = f"mixture of {len(policy.parts)} policies, by linear programming over {len(game.parts)}"
    lower = Bound(game.lower, "lower", words, policy=policy, of=ROBUST, kind=Kind.MIXTURE)
    upper = replace(best, of=ROBUST, values=None, confidence=1.0 if best.exact else confidence)
    return RobustBracket(
        lower,
        upper,
        policy,
        frozen(prior),
        frozen(game.model_values()),
        priors,
        upper.confidence,
        rounds,
        tuple(game.trace),
        names_of(game.task.belief),
        seed,
        version("beliefbound"),
    )
