"""Every proven number on problems whose rewards are of sizes from 1 to 1e9, against exact rational arithmetic.

`python -m soak.scales --instances 10000 --seed 0` prints every false number, and a summary; it fails if there is one.
Discounts go up to .99999. Bounds are compared as they are, without a tolerance: an upper bound is no less than the true
value of the doubles that are stored, a lower bound no more.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import beliefbound as bb
from beliefbound.bounds import best_memoryless, evpi, lookahead_lower, lookahead_upper, pair_bound
from beliefbound.bounds.basic import e_max, qmdp
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.optimal import optimal_values, policy_iteration
from soak import exact

_KINDS = ("copies", "told", "ruled out", "any")
_OTHERS = 5  # every so many instances, what takes longer is tried as well
_MOST_EFFORT = 8
_LOOSE = 1e-6  # a bracket is closed that is narrower


def compared(name: str, low: Any, truth: Fraction, high: Any) -> Iterator[str]:
    """What is false of `low ≤ truth ≤ high`; an end may be missing."""
    if low is not None and Fraction(float(low)) > truth:
        yield f"{name}: at least {float(low)!r}, which is {float(Fraction(float(low)) - truth):.3g} too much"
    if high is not None and Fraction(float(high)) < truth:
        yield f"{name}: at most {float(high)!r}, which is {float(truth - Fraction(float(high))):.3g} too little"


def false_values(seed: int) -> list[str]:
    """What is false about one model: its optimal values, and those of a policy."""
    rng = np.random.default_rng([seed, 1])
    P, r = exact.mixed_scales(rng)
    discount = float(rng.choice(exact.DISCOUNTS))
    horizon = None if rng.random() < 0.8 else int(rng.integers(1, 6))
    mdp = bb.MDP(P, r)
    stored, rewards = exact.rational(np.asarray(mdp.transitions)), exact.rational(r)
    values, q = exact.optimal(stored, rewards, Fraction(discount), horizon)
    given = mdp.to_sparse() if rng.random() < 0.3 else mdp
    solved = optimal_values(given, discount=discount, horizon=horizon)
    wrong = []
    for s, value in enumerate(values):
        wrong += compared(f"value of state {s}", None, value, solved.above[0, s])
        for a in range(P.shape[1]):
            wrong += compared(f"value of ({s}, {a})", None, q[s][a], solved.q_above[0, s, a])
    if horizon is None:
        plan = policy_iteration(given, discount=discount)
        for s, value in enumerate(values):
            if not abs(Fraction(float(plan.values[s])) - value) <= Fraction(plan.residual):
                wrong.append(f"policy iteration is off by more than its residual in state {s}")
        actions = [int(a) for a in rng.integers(P.shape[1], size=P.shape[0])]
        own = exact.policy_value(stored, rewards, actions, Fraction(discount))
        below = given.models.below(np.array([actions]), discount)[0]
        centre, error = given.models.enclose(np.array([actions]), discount)
        assert np.allclose(evaluate(bb.StationaryPolicy(actions), given, discount=discount), centre[0], rtol=1e-12)
        for s, value in enumerate(own):
            wrong += compared(f"policy in state {s}", below[s], value, None)
            if abs(Fraction(float(centre[0, s])) - value) > Fraction(float(error[0, s])) * (1 + Fraction(1, 10**9)):
                wrong.append(f"the value of a policy is off by more than it says in state {s}")
    return wrong


def false_bounds(seed: int) -> tuple[list[str], float]:
    """What is false about one belief, and how wide its bracket is; −1 where its exact value cannot be had."""
    rng = np.random.default_rng([seed, 7])
    kind = str(rng.choice(_KINDS))
    P, r, w, signal = exact.mixed_belief(rng, kind)
    discount, state = float(rng.choice(exact.DISCOUNTS)), int(rng.integers(P.shape[1]))
    horizon = int(rng.integers(1, 4)) if kind == "any" else None
    belief = bb.FiniteBelief(P, r, w, reward_signal=signal, initial=state)
    stored = [exact.rational(np.asarray(x)) for x in (belief.transitions, belief.rewards, belief.weights)]
    task: dict[str, Any] = {"discount": discount, "horizon": horizon}
    if horizon is not None:
        value, of_actions = exact.bayes_adaptive(*stored, state, Fraction(discount), horizon, signal), None
    else:
        found = exact.belief_mdp(*stored, state, Fraction(discount), signal)
        if found is None:
            return [], -1.0
        value, of_actions = found
    own = [exact.optimal(p, x, Fraction(discount), horizon)[0][state] for p, x, _ in zip(*stored, strict=True)]
    known = sum(x * v for x, v in zip(stored[2], own, strict=True)) / sum(stored[2])
    wrong = [*compared("E max", None, known, e_max(belief, **task).value)]
    wrong += compared("QMDP", None, value, qmdp(belief, **task).value)
    bracket = bb.bracket(belief, effort=int(rng.integers(1, _MOST_EFFORT + 1)), rng=seed, **task)
    for bound in bracket.bounds:
        if bound.exact:
            ends = (bound.value, None) if bound.side == "lower" else (None, bound.value)
            wrong += compared(bound.method, ends[0], value, ends[1])
    if of_actions is not None and bracket.decision is not None:
        decision = bracket.decision
        for a, low, high in zip(decision.actions, decision.lower, decision.upper, strict=True):
            wrong += compared(f"first action {a}", low, of_actions[a], high)
        if decision.best is not None and of_actions[decision.best] < max(of_actions):
            wrong.append(f"first action {decision.best} is not the best one")
    if seed % _OTHERS == 0:
        wrong += _others(belief, task, bracket, value, known, kind)
    return wrong, bracket.relative_gap


def _others(
    belief: bb.FiniteBelief, task: dict[str, Any], bracket: bb.Bracket, value: Fraction, known: Fraction, kind: str
) -> Iterator[str]:
    yield from compared(
        "look-ahead",
        lookahead_lower(belief, depth=2, **task).value,
        value,
        lookahead_upper(belief, depth=2, **task).value,
    )
    if belief.reward_signal != "continuous":
        yield from compared("pairs", None, value, pair_bound(belief, **task).value)
    certified = bb.certify(bracket.policy, belief, upper=bracket.upper, rng=1, **task)
    if certified.confidence == 1.0:
        yield from compared("value of the policy", certified.lower.value, value, None)
        yield from compared("distance", None, value - Fraction(certified.upper.value), certified.regret.value)
    worth = evpi(belief, nodes=50, **task)
    yield from compared("EVPI", worth.low, known - value, worth.high)
    for priors in ("all", "cvar:0.5", "l1:0.2"):
        robust = bb.robust_bracket(belief, priors=priors, effort=1, rng=1, **task)
        exactly = kind == "copies" and robust.upper.exact
        yield from compared(f"robust, {priors}", robust.lower.value, value, robust.upper.value if exactly else None)
    if task["horizon"] is not None:
        memoryless = best_memoryless(belief, node_limit=20, **task)
        yield from compared("best memoryless policy", memoryless.lower.value, value, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000, help="problems of each of the two kinds")
    parser.add_argument("--seed", type=int, default=0, help="number of the first one")
    arguments = parser.parse_args()
    began, false, gaps = time.process_time(), 0, []
    for seed in range(arguments.seed, arguments.seed + arguments.instances):
        bounds, gap = false_bounds(seed)
        gaps.append(gap)
        for sentence in false_values(seed) + bounds:
            false += 1
            print(f"{seed}: {sentence}", flush=True)
    exactly = [gap for gap in gaps if gap >= 0.0]
    closed = sum(gap <= _LOOSE for gap in exactly)
    print(
        f"{false} false numbers about {len(gaps)} models and {len(exactly)} beliefs, {closed} brackets closed, "
        f"in {time.process_time() - began:.0f} s of processor time"
    )
    sys.exit(1 if false else 0)


if __name__ == "__main__":
    main()
