"""`learn_population`: what logs of several similar tasks say about the next one.

Sites, patients, machines: K earlier tasks with a log each, one to come. A row of task k is `θ_k ~ Dirichlet(κ β)`, the
mean of its reward `Beta(ν m, ν (1 − m))`, each pair of state and action with hyperparameters of its own. A large `κ`
says that tasks are alike, so that their counts are one; a small one that a task says nothing about another but where
its rows lead: chances of an outcome have the variance `β_j (1 − β_j) / (κ + 1)` between tasks.

The hyperparameters are drawn by Markov chains, row by row (`kernels.hierarchy`), the same ones of equal seeds; the next
task is a `PopulationBelief` of these draws. Without logs it is the prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.convergence import GOOD_RHAT, bulk_ess, rhat
from beliefbound.base.errors import BeliefError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    Rng,
    as_rng,
    check_count,
    check_positive,
    check_sequence,
    frozen,
)
from beliefbound.beliefs.kinds.population import PopulationBelief
from beliefbound.beliefs.signals import check_range
from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.hierarchy import sample_row
from beliefbound.kernels.random import stream_from
from beliefbound.logs.files import as_log
from beliefbound.logs.joining import all_joined
from beliefbound.logs.log import Log

STRENGTH = (1.0, 2.0)  # of log κ: its mean and deviation; 95% of κ between 0.05 and 150
CHAINS, WARMUP, THIN = 4, 100, 4
_ENOUGH = 100  # draws in all, from which R̂ says something


@dataclass(frozen=True, eq=False)
class Population:
    """The belief about the next task, and what it was learnt from.

    Attributes:
      belief: of the next task.
      strength: draws of κ, `[s,a,draw]`, chain after chain; `reward_strength`: of ν.
      shared: draws of β, `[s,a,draw,t]`.
      counts: what each task showed, `[task,s,a,t]`; `successes`: sums of its rewards scaled to [0, 1], `[task,s,a]`.
      tasks: where their logs came from.
      log: all logs as one, whose states and actions these are; `None` without logs.
      rhat, ess: the largest R̂ and the smallest effective size of `log κ` and `log ν` over all rows of which two tasks
        have seen something; NaN where there are none, or fewer than 100 draws.

    >>> from beliefbound.logs import log_of
    >>> sites = [log_of([0] * 9, [0] * 9, [0.0] * 9, [k] * 9) for k in (0, 1, 1, 0, 1)]
    >>> found = learn_population(sites, draws=120, rng=1)
    >>> bool(found.between[0, 0] > 0.4), found.belief
    (True, PopulationBelief(2 states, 1 actions, 120 draws))
    """

    belief: PopulationBelief
    strength: FloatArray = field(repr=False)
    reward_strength: FloatArray = field(repr=False)
    shared: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)
    successes: FloatArray = field(repr=False)
    log: Log | None = field(repr=False)
    tasks: tuple[str, ...]
    rhat: float
    ess: float

    @property
    def between(self) -> FloatArray:
        """How far rows differ between tasks, `[s,a]`: the standard deviation `√(Σ_j β_j (1 − β_j) / (κ + 1))`, from 0,
        all tasks alike, up to 1; its posterior mean. NaN where fewer than two tasks have tried the pair, and only the
        prior says so."""
        return self._where_known(_deviation(self.belief.rows.weight))

    @property
    def between_rewards(self) -> FloatArray:
        """The standard deviation of mean rewards between tasks, as a share of their range; likewise."""
        return self._where_known(_deviation(self.belief.paid.weight) / np.sqrt(2.0))

    def _where_known(self, x: FloatArray) -> FloatArray:
        tried = (self.counts.sum(axis=3) > 0.0).sum(axis=0) if len(self.counts) else np.zeros(x.shape)
        return np.where(tried >= 2, x, np.nan)

    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        said = []
        if len(self.tasks) < 5:
            said.append(f"{len(self.tasks)} tasks say little about how much tasks differ: there the prior decides")
        if self.rhat > GOOD_RHAT + 0.04:
            said.append(f"chains of the hyperparameters have not met (R̂ {self.rhat:.2f}); take more draws")
        never = int((~(self.counts.sum(axis=(0, 3)) > 0.0) & self._open).sum())
        if never:
            said.append(f"{never} of {int(self._open.sum())} pairs of state and action were tried in no task")
        return tuple(said)

    @property
    def _open(self) -> BoolArray:
        return np.asarray(self.belief.available & ~self.belief.terminal[:, None])


def learn_population(
    logs: Sequence[Any],
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    reward_range: tuple[float, float] | None = None,
    concentration: float | None = None,
    strength: tuple[float, float] = STRENGTH,
    initial: Any = None,
    draws: int = 64,
    rng: Rng = None,
) -> Population:
    """The belief about the next task, from the logs of others.

    Args:
      logs: one a task: from `read_log`, `roll_out`, or tables that `read_log` takes. States and actions with the same
        name, or number, are the same.
      n_states, n_actions: where tasks have more than the logs show; needed without logs.
      reward_range: the least and largest reward; default: as in the logs.
      concentration: b, of each next state in the prior of β; default `1 / n_states`.
      strength: mean and standard deviation of the Normal prior of `log κ` and `log ν`.
      initial: start distribution or state; default: as episodes of the logs begin.
      draws: of the hyperparameters that are kept, of four chains together.
      rng: a generator, a seed, or `None`.

    >>> from beliefbound.logs import log_of
    >>> sites = [log_of([0, 0, 0, 1], [0, 0, 0, 0], [0.0, 0.0, 1.0, 1.0], [0, k, k, 0]) for k in (0, 1, 1)]
    >>> found = learn_population(sites, draws=40, rng=1)
    >>> found.belief.predictive(0, 0).shape, found.between.shape
    ((2,), (2, 1))
    """
    read = [as_log(log) for log in check_sequence(logs, "logs", BeliefError, fix="give a list of logs")]
    for i, log in enumerate(read):
        if not isinstance(log, Log):
            raise BeliefError(f"logs[{i}] is a {type(log).__name__}; give logs, such as read_log(path)")
    n = -(-check_count(draws, "draws", least=4) // CHAINS)
    mean, deviation = (float(x) for x in strength)
    check_positive(deviation, "strength's deviation")
    given = _aligned(read, n_states, n_actions, reward_range)
    counts, successes, ends = given.counts, given.successes, given.ends
    S, A = counts.shape[1:3]
    check_size((S, A, CHAINS * n, S), "draws of the hyperparameters", BeliefError, fix="keep fewer draws")
    b = 1.0 / S if concentration is None else check_positive(concentration, "concentration")
    source, prior = as_rng(rng), np.array([mean, deviation])
    tried = counts.sum(axis=3)
    kappa, shared = _hyperparameters(counts, np.full(S, b), prior, n, source)
    both = np.stack([successes, tried - successes], axis=3)
    nu, means = _hyperparameters(both, np.ones(2), prior, n, source)
    belief = PopulationBelief(
        np.maximum(kappa[..., None] * shared, 1e-250),
        np.maximum(nu[..., None] * means, 1e-250),
        reward_range=given.range,
        terminal=ends,
        initial=given.starts if initial is None else initial,
    )
    known = ((tried > 0.0).sum(axis=0) >= 2) & ~ends[:, None] if len(read) else np.zeros((S, A), bool)
    worst, least = float("nan"), float("nan")
    if n * CHAINS >= _ENOUGH and known.any():
        chains = np.log(np.concatenate([kappa[known], nu[known]])).reshape(-1, CHAINS, n)
        worst, least = max(map(rhat, chains)), min(map(bulk_ess, chains))
    tasks = tuple(log.source for log in read)
    kept = {"strength": kappa, "reward_strength": nu, "shared": shared, "counts": counts, "successes": successes}
    return Population(
        belief=belief,
        **{name: frozen(x) for name, x in kept.items()},
        log=given.log,
        tasks=tasks,
        rhat=worst,
        ess=least,
    )


def _deviation(weight: FloatArray) -> FloatArray:
    """`√(Σ_j β_j (1 − β_j) / (κ + 1))` of `κβ[s,a,draw,j]`, its mean over draws."""
    kappa = weight.sum(axis=3)
    beta = weight / kappa[..., None]
    return np.asarray(np.sqrt((beta * (1.0 - beta)).sum(axis=3) / (kappa + 1.0)).mean(axis=2))


def _hyperparameters(
    counts: FloatArray, b: FloatArray, prior: FloatArray, n: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws `κ[s,a,draw]` and `β[s,a,draw,j]` from counts `[task,s,a,j]`."""
    n_states, n_actions, n_outcomes = counts.shape[1:]
    kappa = np.empty((n_states, n_actions, CHAINS * n))
    beta = np.zeros((n_states, n_actions, CHAINS * n, n_outcomes))
    rest = np.empty(n_outcomes)
    for s, a in np.ndindex(n_states, n_actions):
        stream = stream_from(rng)
        seen = counts[:, s, a]
        seen = seen[seen.sum(axis=1) > 0.0]
        some = np.flatnonzero(seen.sum(axis=0) > 0.0)
        others = np.setdiff1d(np.arange(n_outcomes), some)
        columns = [seen[seen[:, j] > 0.0, j] for j in some] + [np.empty(0)] * bool(len(others))
        weights = np.append(b[some], b[others].sum()) if len(others) else b[some]
        begin = np.append(0, np.cumsum([len(x) for x in columns]))
        row = (np.concatenate([*columns, np.empty(0)]), begin, seen.sum(axis=1), weights, prior)
        shares = np.empty((n, len(columns)))
        for chain in range(CHAINS):
            part = slice(chain * n, (chain + 1) * n)
            sample_row(stream, row, WARMUP, THIN, kappa[s, a, part], shares)
            beta[s, a, part, some] = shares[:, : len(some)].T
            if len(others):
                for i in range(n):
                    dirichlet_row(stream, np.array(b[others]), rest[: len(others)])
                    beta[s, a, part.start + i, others] = shares[i, -1] * rest[: len(others)]
    return kappa, beta


class Aligned(NamedTuple):
    """Logs of tasks by the states and actions of all of them."""

    counts: FloatArray  # [task,s,a,t]
    successes: FloatArray  # [task,s,a]: sums of rewards scaled to [0, 1]
    ends: BoolArray  # [s]
    starts: FloatArray | None  # [s]: a distribution
    range: tuple[float, float]
    log: Log | None


def _aligned(logs: list[Log], n_states: int | None, n_actions: int | None, reward_range: Any) -> Aligned:
    given = [0 if n is None else check_count(n, name) for n, name in ((n_states, "n_states"), (n_actions, "n_actions"))]
    if not logs:
        if not all(given):
            raise BeliefError("without logs nothing says how large tasks are; give n_states and n_actions")
        shape, range_ = (0, *given, given[0]), check_range((0.0, 1.0) if reward_range is None else reward_range)
        return Aligned(np.zeros(shape), np.zeros(shape[:3]), np.zeros(given[0], bool), None, range_, None)
    whole, places = all_joined(logs)
    S, A = max(given[0], whole.n_states), max(given[1], whole.n_actions)
    if (whole.n_states < S and whole.states is not None) or (whole.n_actions < A and whole.actions is not None):
        raise BeliefError(
            "n_states or n_actions is more than there are names; leave them out, names say which there are"
        )
    low, high = whole.reward_range if reward_range is None else check_range(reward_range)
    counts, successes, starts = np.zeros((len(logs), S, A, S)), np.zeros((len(logs), S, A)), np.zeros(S)
    for k, (log, (s_of, a_of)) in enumerate(zip(logs, places, strict=True)):
        cells = log.cells
        if cells.least.min() < low or cells.most.max() > high:
            raise BeliefError(
                f"{log.source} has rewards from {cells.least.min():g} to {cells.most.max():g}, outside of "
                f"reward_range, {low:g} to {high:g}"
            )
        s, a = s_of[cells.state], a_of[cells.action]
        np.add.at(counts[k], (s, a, s_of[cells.next_state]), cells.times)
        np.add.at(successes[k], (s, a), cells.times * (cells.reward - low) / ((high - low) or 1.0))
        np.add.at(starts, s_of, log.starts)
    successes = np.clip(successes, 0.0, counts.sum(axis=3))
    ends = np.append(whole.terminal, np.zeros(S - whole.n_states, bool))
    high = high if high > low else low + 1.0  # one reward alone: nothing is learnt of it but that
    return Aligned(counts, successes, ends, starts / starts.sum(), (low, high), whole)
