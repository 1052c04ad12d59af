"""`robust_bracket`: the value when nature picks the worst prior from a set, with a certificate.

For finitely many models `max_π min_{w∈W} Σ_m w_m V_m^π = min_{w∈W} V*(w)` for convex `W`: the value vectors of (mixed)
policies are a convex compact set. **Double oracle.** From below, a linear program mixes the policies found so far:
their exact value vectors `[m]` against the worst prior for the mixture, which is found in closed form. Its dual is a
prior. From above, the upper bound of `bracket` at that prior, or at any other of the set, is no less than the value;
and the policies that `bracket` finds there join the mixture. The best of each side is kept.

The lower bound is always exact. Upper bounds may be sampled: round `j` gets the share `δ/(j(j+1))` of the error.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.bound import Bound, BoundEntries
from beliefbound.bounds.bracket import DEFAULT_GAP, DEFAULT_SECONDS, Bracket, bracket
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.controller import Controller
from beliefbound.bounds.finite.controller_value import completed, controller_values, start_value
from beliefbound.bounds.finite.mixed import MixedPolicy, join_controllers, table_controller
from beliefbound.bounds.finite.problem import named_pool
from beliefbound.bounds.finite.vector_oracle import VectorOracle
from beliefbound.bounds.log import TracePoint, relative
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.prior_sets import PriorSet, prior_set
from beliefbound.bounds.warmup import warm_up
from beliefbound.errors import ParameterError
from beliefbound.naming import Names, NamesEntries, names_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, Policy, StationaryPolicy
from beliefbound.progress import closing_display
from beliefbound.results import Entries, Result, array_of
from beliefbound.validation import (
    FloatArray,
    Rng,
    as_rng,
    check_gap,
    check_kind,
    check_positive,
    check_probability,
    check_threads,
    frozen,
)

ROBUST = "value under the least favourable prior"
_FIRST, _GROWTH = 0.02, 1.5  # share of the time of the first round, and how much longer each one is than the last
_POINTS = 256  # beliefs between two games
_LEANS = (0.05, 0.3)  # how far priors are moved towards one model, for policies beside the best one
_CHANCE = 1e-9  # parts of a mixture with less are left out


class RobustEntries(Entries):
    """A `RobustBracket` in a file."""

    lower: BoundEntries
    upper: BoundEntries
    priors: str
    prior: list[float]
    model_values: list[float]
    confidence: float
    rounds: int
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
      rounds: how many priors were tried.
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

    _kind, _entries = "robust bracket", RobustEntries

    @property
    def width(self) -> float:
        """`upper − lower`, in units of value; 0 where rounding makes the ends cross."""
        return max(0.0, self.upper.value - self.lower.value)

    @property
    def relative_gap(self) -> float:
        """`width` as a share of the larger of `|upper|` and `|lower|`."""
        return relative(self.lower.value, self.upper.value)

    def __repr__(self) -> str:
        kind = "proven" if self.confidence == 1.0 else f"{100 * self.confidence:.4g}% confidence"
        ends = f"[{self.lower.value:.6g}, {self.upper.value:.6g}]"
        return f"RobustBracket({ends}, {100 * self.relative_gap:.2g}% wide, {kind}, priors {self.priors})"

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
        names = Names.from_entries(entries.names, models=len(values))
        found = entries.priors, entries.confidence, entries.rounds
        return cls(lower, upper, policy, prior, values, *found, names=names)


class _Part(NamedTuple):
    """A policy found so far: its value on every model, and how to have it as a controller."""

    values: FloatArray
    controller: Callable[[], Controller]


class _Game:
    """Policies found so far, and the best of each side."""

    def __init__(self, task: FiniteTask, priors: PriorSet, watch: Any, clock: float) -> None:
        self.task, self.priors, self.watch, self.clock = task, priors, watch, clock
        # Value vectors must hold for models that a prior leaves out as well.
        self.every = FiniteTask.of(
            task.belief.reweight(np.full(task.models.n_models, 1.0 / task.models.n_models)),
            discount=task.discount,
            horizon=task.horizon,
            initial=task.start,
        )
        self.parts: list[_Part] = []
        self._known: set[bytes] = set()
        self.chances: FloatArray = np.empty(0)
        self.lower = -np.inf
        self.upper: Bound | None = None
        self.prior: FloatArray = task.weights
        self.trace: list[TracePoint] = []

    def add(self, policy: Any) -> None:
        """A deterministic table, or a policy that has settled; others are left out."""
        if isinstance(policy, StationaryPolicy | MemorylessPolicy):
            controller = table_controller(policy, self.every)
        elif isinstance(policy, AdaptivePolicy) and policy.data[1] is None:
            controller = completed(policy.data[0])
        else:
            return
        values = start_value(controller_values(controller, self.every), controller, self.every)
        self._keep(values, lambda: controller)

    def _keep(self, values: FloatArray, controller: Callable[[], Controller]) -> None:
        if values.tobytes() not in self._known:
            self._known.add(values.tobytes())
            self.parts.append(_Part(values, controller))

    def respond(self, oracle: VectorOracle, prior: FloatArray) -> None:
        """The best policies that an oracle knows at a prior, and at priors that lean from it towards each model."""
        corners = np.eye(len(prior))
        for lean in (0.0, *_LEANS):
            for corner in corners if lean else corners[:1]:
                numbers, values = oracle.best((1.0 - lean) * prior + lean * corner)
                self._keep(values, lambda own=numbers: oracle.controller(own))  # type: ignore[misc]

    def mix(self) -> FloatArray:
        """Mix the policies anew; returns the prior that is worst for them."""
        values = np.array([part.values for part in self.parts])
        chances, prior = self.priors.play(values)
        kept = np.where(chances > _CHANCE, chances, 0.0)
        kept /= kept.sum()
        lower = self.priors.worst(kept @ values)[0]
        if lower > self.lower:
            self.lower, self.chances = lower, kept
        return prior

    def above(self, found: Bound, prior: FloatArray) -> None:
        """An upper bound at a prior of the set."""
        if self.upper is None or found.value < self.upper.value:
            self.upper, self.prior = found, prior

    def note(self, seconds: float) -> None:
        """Tell whoever watches."""
        assert self.upper is not None
        lower = Bound(self.lower, "lower", f"mixture of {int((self.chances > 0.0).sum())} policies", of=ROBUST)
        if not self.trace or (lower.value, self.upper.value) != (
            self.trace[-1].lower.value,
            self.trace[-1].upper.value,
        ):
            self.trace.append(TracePoint(seconds, lower, self.upper))
            if self.watch is not None:
                self.watch(self.trace[-1])

    def policy(self) -> MixedPolicy:
        """The mixture of the lower bound."""
        used = np.flatnonzero(self.chances)
        return MixedPolicy(join_controllers([self.parts[i].controller() for i in used]), self.chances[used])

    def model_values(self) -> FloatArray:
        """Of the mixture."""
        used = np.flatnonzero(self.chances)
        values: FloatArray = self.chances[used] @ np.array([self.parts[i].values for i in used])
        return values


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
        time limit; then 0.
      time_limit: seconds, roughly; default 60. Compiling comes before.
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
    source, threads = as_rng(rng), check_threads(threads)
    limit = DEFAULT_SECONDS if time_limit is None else check_positive(time_limit, "time_limit")
    if target_gap is None:
        target_gap = DEFAULT_GAP if time_limit is None else 0.0
    target_gap = check_gap(target_gap, "target_gap")
    warm_up(task)
    began, rounds = time.perf_counter(), 0
    rounding = 1e3 * task.rounding

    def left() -> float:
        return 0.0 if stop is not None and stop() else limit - (time.perf_counter() - began)

    with closing_display(show=progress, watch=watch) as seen:
        game = _Game(task, set_, seen, began)
        for _, policy in named_pool(task):
            game.add(policy)
        prior, share = game.mix(), _FIRST * limit
        oracle = VectorOracle(game.every, source) if horizon is None and models.signal.finite else None
        while True:
            if oracle is not None:
                prior = _respond(game, oracle, prior, min(share, left()))
            rounds += 1
            at = FiniteBelief.reweight(models, prior)
            found = bracket(
                at,
                initial=task.start,
                discount=discount,
                horizon=horizon,
                confidence=1.0 - error / (rounds * (rounds + 1)),
                target_gap=0.1 * target_gap,
                time_limit=max(1e-3, min(share, left())),
                rng=source,
                threads=threads,
                stop=stop,
            )
            game.above(found.upper, prior)
            _learn(game, found)
            before, prior = prior, game.mix()
            game.note(time.perf_counter() - began)
            assert game.upper is not None
            width = game.upper.value - game.lower
            if left() <= 0.0 or width <= rounding or relative(game.lower, game.upper.value) <= target_gap:
                break
            share *= _GROWTH if np.abs(prior - before).max() > 1e-6 else 2.0 * _GROWTH
    return _result(game, str(set_), rounds, confidence)


def _respond(game: _Game, oracle: VectorOracle, prior: FloatArray, seconds: float) -> FloatArray:
    """Vectors against the prior that is worst for those found, until neither moves or the time is over."""
    end = time.perf_counter() + seconds
    while True:
        before = game.lower
        gained = 0.0 if oracle.full else oracle.improve(prior, _POINTS)
        game.respond(oracle, prior)
        prior = game.mix()
        settled = gained == 0.0 and game.lower <= before
        if settled or oracle.full or time.perf_counter() >= end:
            return prior


def _learn(game: _Game, found: Bracket) -> None:
    """The policies of a bracket join the game: all tables, and the best decision graphs."""
    exact = [bound for bound in found.bounds if bound.exact and bound.side == "lower" and bound.policy is not None]
    graphs = [bound for bound in exact if isinstance(bound.policy, AdaptivePolicy)]
    for bound in exact:
        if not isinstance(bound.policy, AdaptivePolicy):
            game.add(bound.policy)
    for kind in ("finite-state", "distinct beliefs", " beliefs"):
        own = [bound for bound in graphs if kind in bound.method]
        if own:
            game.add(max(own, key=lambda bound: bound.value).policy)


def _result(game: _Game, priors: str, rounds: int, confidence: float) -> RobustBracket:
    assert game.upper is not None
    policy, best = game.policy(), game.upper
    words = f"mixture of {len(policy.parts)} policies, by linear programming over {len(game.parts)}"
    lower = Bound(game.lower, "lower", words, policy=policy, of=ROBUST)
    upper = Bound(
        best.value,
        "upper",
        best.method,
        exact=best.exact,
        confidence=1.0 if best.exact else confidence,
        estimate=best.estimate,
        n_samples=best.n_samples,
        of=ROBUST,
    )
    return RobustBracket(
        lower,
        upper,
        policy,
        frozen(game.prior),
        frozen(game.model_values()),
        priors,
        upper.confidence,
        rounds,
        tuple(game.trace),
        names_of(game.task.belief),
    )
