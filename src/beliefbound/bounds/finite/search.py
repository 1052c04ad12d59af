"""The bracket of a finite belief. In this order, each step kept only if it helps:

1. the paper's bounds: MMBI and CADP from below, `E max` and QMDP from above. Exact.
2. models in pairs from above (`bounds.finite.pairs`). Exact.
3. search in the belief graph (`bounds.finite.relaxation`), doubling it. Exact at any time.
4. without a horizon, once a small graph has not been enough: alpha vectors, cells of models, and search among distinct
   beliefs (`bounds.finite.merged`), for half of the time that is left. Exact.
5. information relaxation and the adaptive policy on the graph, by scenarios. After each doubling a pilot says what
   sampling would give; the bounds themselves come from fresh scenarios.

Error. Exact bounds cost none. Sampling attempt `j` gets the share `δ/(j(j+1))` of the error `δ = 1 − confidence`,
split over its three statements; within an attempt the betting intervals hold at all sample sizes at once, so it may
stop whenever it likes. All bounds of the trace hold together with the confidence asked for.
"""

import math
import time
import warnings
from dataclasses import replace

import numpy as np

from beliefbound.bounds.basic import e_max_of, qmdp_of
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.merged import bracket_merged
from beliefbound.bounds.finite.pairs import bound_of
from beliefbound.bounds.finite.problem import named_pool
from beliefbound.bounds.finite.relaxation import BLOCK, Address, Certifier, Costs, Relaxed, extended, limits, read_costs
from beliefbound.bounds.ladder import Rungs
from beliefbound.bounds.log import Log
from beliefbound.errors import ParameterError
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.task import FiniteTask

_FIRST_NODES = 500  # beliefs before the first pilot: enough to tell whether sampling could end the matter
_PILOT = 2 * BLOCK  # scenarios that predict what sampling would give; they are not part of any bound
_PILOT_SHARE = 0.2  # of what is left of the time: what a pilot may take
_LEAST_NODES, _MOST_NODES = 50, 2000  # beliefs a scenario may expand; it is valid with any number
_CHUNK = 4000  # beliefs between looks at the clock: some 20 ms
_SAMPLING = 0.45  # share of the time kept for scenarios: growth narrows both sides at once, sampling only in the end
_MERGE_FROM = 2000  # beliefs in the graph of histories before vectors, cells and merged beliefs are worth their cost
_MERGED = 0.5  # share of what is left then that they get
_LOOK = 3.0  # seconds of sampling after which somebody who asked to stop is heard
_LEAST_ROUND = 0.1  # share of the time below which another round of growing and sampling is not begun


def bracket_finite(task: FiniteTask, rng: np.random.Generator, threads: int | None, log: Log) -> None:
    """Fill `log` with bounds on the value of a finite belief."""
    belief, start = task.belief, task.start
    plan = mmbi_plan(task)
    log.add(
        Bound(plan.value(start), "lower", "MMBI", policy=plan.policy),
        e_max_of(task),
        qmdp_of(task),
    )
    if log.done:
        return
    pool = named_pool(task, plan.policy)
    for name, policy in pool:
        log.add(Bound(task.policy_value(policy), "lower", name, policy=policy))
    if log.done or belief.reward_signal == "continuous":
        return
    try:
        certifier = Certifier(
            belief,
            discount=task.discount,
            horizon=task.horizon,
            initial=start,
            policies=[policy for _, policy in pool],
            core_nodes=1_000_000,
        )
    except ParameterError as too_large:
        warnings.warn(f"no search and no sampling: {too_large}", stacklevel=3)
        return
    log.add(bound_of(certifier.problem, belief.weights, start))
    if log.done:
        return
    address = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    nodes, growing, attempt, reserve, merged = _FIRST_NODES, True, 0, _SAMPLING * log.limit, False
    while True:
        began, before = time.perf_counter(), certifier.n_nodes
        while growing and certifier.n_nodes < nodes and log.left > reserve:
            growing = certifier.grow(certifier.n_nodes + _CHUNK, log.target * abs(certifier.upper))
        note_exact(certifier, log)
        if log.done:
            return
        certifier.settle()
        note_exact(certifier, log)
        if log.done:
            return
        each = (time.perf_counter() - began) / max(1, certifier.n_nodes - before)
        certifier.max_nodes = int(np.clip(_PILOT_SHARE * log.left / (_PILOT * each), _LEAST_NODES, _MOST_NODES))
        late = not growing or log.left <= reserve
        attempt += 1
        more = sample_until(certifier, address, attempt, threads, log, late=late)
        if log.done or not growing:
            return
        if late and not more:  # the gap is the graph's own: half of what is left goes into a larger one
            if log.left < _LEAST_ROUND * log.limit:
                return
            reserve, nodes = 0.5 * log.left, certifier.core_nodes
        keep_policies(log)
        certifier.reopen()
        nodes *= 2 if nodes > 20_000 else 4
        if task.horizon is None and nodes >= _MERGE_FROM and not merged:
            merged = True
            policies = [policy for _, policy in pool]
            bracket_merged(task, certifier.problem, policies, extended(address, 3), log, _MERGED * log.left)
            if log.done:
                return
            reserve = _SAMPLING * log.left


def note_exact(certifier: Certifier, log: Log) -> None:
    """The bounds that the search has proven so far."""
    method = f"search in a graph of {certifier.n_nodes} beliefs"
    log.add(
        Bound(certifier.lower, "lower", method, policy=AdaptivePolicy(certifier)),
        Bound(certifier.upper, "upper", method),
    )


def keep_policies(log: Log) -> None:
    """Before the graph changes, give the policies of sampled bounds their own copy: that is what they were proven for.
    Exact bounds only rise with the graph."""
    for bound in log.bounds:
        if not bound.exact and isinstance(bound.policy, AdaptivePolicy):
            bound.policy.detach()


def sample_until(
    certifier: Certifier, address: Address, attempt: int, threads: int | None, log: Log, *, late: bool
) -> bool:
    """A pilot; then, if that predicts reaching the target or time is running out, scenarios until that or the end of
    time. False when sampling had no more to give.

    The policy's costs vary more than the relaxation's, and take far less time: after the first scenarios, which are
    run for both, those that follow are for both or for the policy alone, whichever narrows the bracket faster.
    """
    assert log.lower is not None
    assert log.upper is not None
    if not late and log.target == 0.0:
        return True  # nothing ends the matter but time
    own, each = extended(address, attempt, 0), {}
    for relax in (False, True):  # the policy alone, for its time
        began = time.perf_counter()
        pilot = certifier.sample(own, 0, _PILOT, clip=np.inf, stop=np.inf, threads=threads, relax=relax)
        each[relax] = (time.perf_counter() - began) / _PILOT
    clip, stop = limits(certifier, pilot)
    hope = float(pilot.between.mean())
    goal = log.target * abs(certifier.upper)
    if not late:
        # Growth narrows the exact bounds and whatever is sampled later; until late, sample only to end the matter.
        noise = 3.0 * float(pilot.below.std()) / math.sqrt(max(1.0, 0.5 * log.left / each[False]))
        if hope + noise > 0.9 * goal:
            return True
    if hope >= log.upper.value - log.lower.value:
        return False
    alpha, policy = log.next_alpha(), AdaptivePolicy(certifier, stop=stop)
    parts: list[Costs] = []
    done, relax, batch = {True: 0, False: 0}, True, 4 * BLOCK
    while True:
        own = extended(address, attempt, 1 if relax else 2)
        parts.append(certifier.sample(own, done[relax], batch, clip=clip, stop=stop, threads=threads, relax=relax))
        done[relax] += batch
        costs = Costs(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        found = read_costs(certifier, costs, pilot, alpha=alpha, clip=clip, stop=stop)
        note_sampled(policy, found, log)
        if log.done:
            return True
        assert found.lower.estimate is not None
        assert found.upper.estimate is not None
        above, below = found.upper.value - found.upper.estimate, found.lower.estimate - found.lower.value
        own_gap, noise = found.upper.estimate - found.lower.estimate, above + below
        if noise < (0.02 if late and log.left < 3.0 * _LEAST_ROUND * log.limit else 0.1) * max(goal, hope):
            return False  # what is left is the gap of the graph itself
        slope = below / len(costs.below)
        relax = (slope + above / len(costs.above)) / each[True] > slope / each[False]
        affordable = 0.8 * max(0.0, log.left) / each[relax]
        # Betting intervals fall like 1/n while they are wide and like 1/√n in the end.
        if not late and own_gap + noise * (1.0 + 0.5 * affordable / len(costs.below)) ** -0.75 > goal:
            return True  # the pilot was too hopeful
        affordable = min(affordable, _LOOK / each[relax])
        batch = max(BLOCK, min(len(costs.above if relax else costs.below), int(affordable) // BLOCK * BLOCK))


def note_sampled(policy: AdaptivePolicy, found: Relaxed, log: Log) -> None:
    """Add sampled bounds; the regret belongs to the adaptive policy."""
    lower = replace(found.lower, policy=policy)
    log.add(lower, found.upper)
    if log.lower is lower:
        log.regret = found.regret


def finite_rungs(task: FiniteTask, rng: np.random.Generator, threads: int | None, log: Log) -> Rungs:
    """The ladder of a finite belief."""
    bracket_finite(task, rng, threads, log)
    yield ()
