"""What information is worth before acting: EVPI, EVPPI, EVSI, and what to measure next.

With `V*(b)` the Bayes-optimal value of a belief – of an agent that goes on learning while it acts – and `b'` what is
believed after learning something first, with `E b' = b`,

    EVPI   everything:                            E_m[V*_m] − V*(b)
    EVPPI  some rows, of (state, action) pairs:   E[V*(b')] − V*(b), the rows known
    EVSI   k tries of a pair:                     E[V*(b')] − V*(b), the outcomes counted

None of them is negative, and none is above EVPI. What an agent would learn anyway while acting is in both terms.
Neither can be computed, but both are bounded: so the worth lies in an interval, which is what these functions return
(`bounds.information.finite`, proven; `bounds.information.dirichlet`, with confidence). As long as two intervals overlap
it is open which of two measurements is worth more.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import FloatArray, Rng, as_rng, check_count, check_kind, check_probability, shown
from beliefbound.beliefs import Belief
from beliefbound.bounds.bracket import Bracket, bracket_of
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import stage_values
from beliefbound.bounds.information.dirichlet import Known, SampledValues, known_value
from beliefbound.bounds.information.finite import FiniteValues, draw_tries, split_by_laws, split_by_tries
from beliefbound.bounds.information.measuring import dirichlet_gains, measurements, open_pairs
from beliefbound.bounds.information.result import Information, observations
from beliefbound.bounds.information.worth import Worth, between
from beliefbound.bounds.steps import Limits
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask, Task, finite_task
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.policy.naming import Names, names_of
from beliefbound.policy.protocol import check_id

MOST_TRIES = 10_000
_FEW_OWN = 8  # sampled models whose own optimal policies join the pool
_EFFORT = 24  # steps of the bracket of a belief that is not finite, where none is given
_CHAINS, _WALKS = 40, 10  # simulated measurements behind an upper end; times as many behind a lower one
_PLANNED = 200  # models that a pool is planned on


def evpi(
    belief: Belief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    bounds: Bracket | None = None,
    nodes: int = 2000,
    n_models: int = 20_000,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Worth:
    """The expected value of perfect information: of knowing the model before acting.

    Args:
      bounds: a bracket of the same belief and task; the narrower, the narrower is the interval. Default: one is made.
      nodes: beliefs that a search may look at, for a finite belief.
      n_models: models that `E max` is taken over, for a belief that is not finite.
      confidence, rng: for a belief that is not finite; a finite one has proven ends, as far as `bounds` has.

    >>> from beliefbound import FiniteBelief
    >>> stay, rewards = [[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]]
    >>> belief = FiniteBelief(stay, rewards, reward_signal="unobserved")
    >>> evpi(belief, discount=0.5)
    Worth(EVPI in [1, 1], exact)
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    return _values(task, bounds, nodes, n_models, check_probability(confidence, "confidence"), rng)[0].evpi()


def evppi(
    belief: Belief,
    pairs: Any,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    bounds: Bracket | None = None,
    nodes: int = 2000,
    n_models: int = 20_000,
    draws: int = _CHAINS,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Worth:
    """The expected value of partial perfect information: of knowing the rows of some (state, action) pairs.

    Args:
      pairs: one pair `(s, a)`, or several, known together: what they do, and what is seen of their rewards.
      draws: simulated measurements, for a belief that is not finite.
      bounds, nodes, n_models, confidence, rng: as for `evpi`.

    Two models that differ in what action 1 of state 0 does, which only matters there:

    >>> from beliefbound import FiniteBelief
    >>> safe, risky = [1.0, 0.0], [0.0, 1.0]
    >>> good, bad = [[safe, risky], [risky, risky]], [[safe, safe], [risky, risky]]
    >>> belief = FiniteBelief([good, bad], [[0.0, -1.0], [1.0, 1.0]], initial=0)
    >>> evppi(belief, (0, 1), discount=1.0, horizon=3)
    Worth(EVPPI of (0, 1) in [0.5, 0.5], exact)
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    group = _pairs(pairs, task)
    return _one(task, group, None, bounds, nodes, n_models, draws, confidence, rng)


def evsi(
    belief: Belief,
    pair: Any,
    tries: int,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    bounds: Bracket | None = None,
    nodes: int = 2000,
    n_models: int = 20_000,
    draws: int | None = None,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Worth:
    """The expected value of sample information: of trying one (state, action) pair so many times before acting.

    Args:
      draws: simulated measurements, where outcomes cannot be listed; default 2000 for a finite belief, 40 for others.
      bounds, nodes, n_models, confidence, rng: as for `evpi`.

    >>> from beliefbound import FiniteBelief
    >>> p = [[[[0.9, 0.1]], [[0.0, 1.0]]], [[[0.1, 0.9]], [[0.0, 1.0]]]]
    >>> belief = FiniteBelief(p, [[1.0], [0.0]], initial=0)
    >>> worth = evsi(belief, (0, 0), 2, discount=0.9)  # there is no choice, so nothing is worth knowing
    >>> bool(worth.low == 0.0 and worth.high < 1e-11)
    True
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    group = _pairs(pair, task)
    if len(group) != 1:
        raise ParameterError(f"pair is {shown(pair)}; give one (state, action)")
    return _one(task, group, _tries(tries), bounds, nodes, n_models, draws, confidence, rng)


def value_of_information(
    belief: Belief,
    *,
    tries: int | None = None,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    bounds: Bracket | None = None,
    nodes: int = 500,
    n_models: int = 20_000,
    draws: int | None = None,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Information:
    """What to measure next: EVPI, and for each (state, action) its EVPPI, or its EVSI for a number of tries.

    Args:
      tries: how many more times a pair is tried; `None`: until it is known.
      confidence: of all intervals together, where they are not proven.
      bounds, nodes, n_models, draws, rng: as for `evpi`, `evppi` and `evsi`; a belief that is not finite has by default
        as many simulated measurements behind lower ends as fit in memory, up to 800.

    >>> from beliefbound import FiniteBelief
    >>> safe, risky = [1.0, 0.0], [0.0, 1.0]
    >>> good, bad = [[safe, risky], [risky, risky]], [[safe, safe], [risky, risky]]
    >>> belief = FiniteBelief([good, bad], [[0.0, -1.0], [1.0, 1.0]], initial=0)
    >>> found = value_of_information(belief, discount=1.0, horizon=3)
    >>> found.best(), found.low[0, 1].round(3), found.high[0, 1].round(3)
    ((0, 1), np.float64(0.5), np.float64(0.5))
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    knobs: dict[str, Any] = {"bounds": bounds, "nodes": nodes, "n_models": n_models, "draws": draws}
    return information_of(task, tries=tries, confidence=confidence, rng=rng, **knobs)


def information_of(
    task: Task,
    *,
    tries: int | None = None,
    bounds: Bracket | None = None,
    nodes: int = 500,
    n_models: int = 20_000,
    draws: int | None = None,
    confidence: float = 0.95,
    rng: Rng = None,
    known: Known | None = None,
) -> Information:
    """`value_of_information` of a task. `known`: `E max`, where somebody has sampled it before; what it may fail by is
    taken off the confidence besides."""
    check_probability(confidence, "confidence")
    tries, belief = None if tries is None else _tries(tries), task.belief
    pairs = [(int(s), int(a)) for s, a in np.argwhere(open_pairs(belief))]
    values, source = _values(task, bounds, nodes, n_models, confidence, rng, known)
    shape, everything = belief.available.shape, values.evpi()
    low, high = np.zeros(shape), np.zeros(shape)
    if isinstance(values, FiniteValues):
        sure = values.confidence
        alpha = (1.0 - confidence) / (2 * len(pairs))
        for pair in pairs:
            found = _finite(values, [pair], tries, draws, alpha, source)
            low[pair], high[pair] = found.low, min(found.high, everything.high)
            sure = sure if found.confidence == values.confidence else values.confidence - 2 * alpha * len(pairs)
        high = np.maximum(low, high)
        return Information(everything, low, high, max(0.0, sure), tries, names_of(belief), values.rounding)
    error = 1.0 - confidence
    missing = _missing(task, tries, draws, 0.125 * error, source)
    for pair in pairs:
        low[pair] = max(0.0, values.low - missing[pair] - values.upper)
        most = values.most([pair], tries, _CHAINS if draws is None else draws, 0.125 * error / len(pairs))
        high[pair] = max(low[pair], min(most, everything.high))
    return Information(everything, low, high, max(0.0, values.confidence - 0.25 * error), tries, names_of(belief))


def _values(
    task: Task,
    bounds: Bracket | None,
    nodes: int,
    n_models: int,
    confidence: float,
    rng: Rng,
    known: Known | None = None,
) -> tuple[FiniteValues | SampledValues, np.random.Generator]:
    """Bounds on `V*` and `E max`, and the source of what is drawn."""
    source = as_rng(rng)
    if bounds is not None:
        check_kind(bounds, Bracket, "bounds", ParameterError, fix="give what bracket(...) found")
    nodes, n_models = check_count(nodes, "nodes"), check_count(n_models, "n_models", least=2)
    finite = finite_task(task)
    if finite is not None:
        return FiniteValues(finite, nodes, bounds), source
    error, seed = 1.0 - confidence, int(source.integers(0, 2**62))
    if bounds is None:
        bounds = bracket_of(task, Limits(effort=_EFFORT), seed=seed, confidence=1.0 - 0.5 * error).bracket
    check_size((n_models, task.belief.n_states), "values of models", ParameterError, fix="give fewer models")
    known = known_value(task, n_models, 0.125 * error, seed) if known is None else known
    return SampledValues(task, bounds, known, seed), source


def _one(
    task: Task,
    group: list[tuple[int, int]],
    tries: int | None,
    bounds: Bracket | None,
    nodes: int,
    n_models: int,
    draws: int | None,
    confidence: float,
    rng: Rng,
) -> Worth:
    """The worth of one measurement."""
    error = 1.0 - check_probability(confidence, "confidence")
    values, source = _values(task, bounds, nodes, n_models, confidence, rng)
    if isinstance(values, FiniteValues):
        return _finite(values, group, tries, draws, 0.5 * error, source)
    draws = check_count(_CHAINS if draws is None else draws, "draws")
    high = min(values.most(group, tries, draws, 0.125 * error), values.high - values.lower)
    low = values.least(group, tries, _WALKS * draws, 0.125 * error)
    method = f"{values.method}, lowered by what {draws} simulated measurements leave to be known, minus bracket"
    if low > 0.0:
        method += f"; from below, a policy that looks ahead after {_WALKS * draws} of them"
    of = _name(group, tries, names_of(task.belief))
    sure = max(0.0, values.confidence - 0.25 * error)
    return between(low, high, of, method, confidence=sure, asymptotic=values.asymptotic)


def _finite(
    values: FiniteValues,
    group: list[tuple[int, int]],
    tries: int | None,
    draws: int | None,
    alpha: float,
    rng: np.random.Generator,
) -> Worth:
    belief = values.task.belief
    of = _name(group, tries, names_of(belief))
    if tries is None:
        return values.worth(split_by_laws(belief, group), of)
    (s, a), draws = group[0], check_count(2000 if draws is None else draws, "draws")
    check_size((draws, tries), "a table of simulated measurements", ParameterError, fix="give fewer draws")
    parts = split_by_tries(belief, s, a, tries)
    if parts is not None:
        return values.worth(parts, of)
    true = rng.choice(belief.n_models, size=draws, p=belief.weights)
    return values.drawn(draw_tries(belief, s, a, rng.random((draws, tries)), true), alpha, of)


def _missing(task: Task, tries: int | None, draws: int | None, error: float, rng: np.random.Generator) -> FloatArray:
    """`[s,a]`: at most so much is missing to `E max` after measuring a pair, by a plan of a pool; all hold with
    `1 − error`."""
    sample = task.belief.sample(_PLANNED, rng)
    pool = _pool(FiniteTask(sample, task.start, task.discount, task.horizon))
    values = [stage_values(p, sample.models, task.discount, task.horizon, 0)[0] @ task.start for p in pool]
    now = int((np.stack(values) @ sample.weights).argmax())
    most = measurements(task.belief)
    draws = most if draws is None else min(draws, most)
    return dirichlet_gains(task, pool, now, tries=tries, draws=draws, confidence=1.0 - error, rng=rng).missing


def _pool(task: FiniteTask) -> list[TablePolicy]:
    pool = policies_of(task)
    few = task.models.select(np.arange(min(_FEW_OWN, task.models.n_models)))
    own = optimal_values(few, discount=task.discount, horizon=task.horizon).actions
    return list(dict.fromkeys([*pool, *map(StationaryPolicy, own)]))


def _name(group: Sequence[tuple[int, int]], tries: int | None, names: Names) -> str:
    named = names.states is not None or names.actions is not None
    what = ", ".join(f"({names.pair(s, a) if named else f'{s}, {a}'})" for s, a in group)
    return f"EVPPI of {what}" if tries is None else f"EVSI of {observations(tries)} of {what}"


def _tries(tries: Any) -> int:
    count = check_count(tries, "tries")
    if count > MOST_TRIES:
        raise ParameterError(f"tries is {count}; give at most {MOST_TRIES}, or ask for a pair that becomes known")
    return count


def _pairs(pairs: Any, task: Task) -> list[tuple[int, int]]:
    """Checked pairs of states and actions."""
    try:
        given = np.atleast_2d(np.asarray(pairs))
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu" or not len(given):
            raise ValueError
    except ValueError:
        raise ParameterError(f"pairs is {shown(pairs)}; give (state, action), or a list of such") from None
    group = []
    for s, a in given.tolist():
        s, a = check_id(s, task.belief.n_states, "state"), check_id(a, task.belief.n_actions, "action")
        if not task.belief.available[s, a]:
            raise ParameterError(f"action {a} is not available in state {s}; there is nothing to measure")
        group.append((s, a))
    return list(dict.fromkeys(group))
