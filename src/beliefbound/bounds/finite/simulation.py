"""What anybody's policy is worth on a finite belief, and what it is missing, by common scenarios.

A scenario is a sequence of uniforms that drive outcomes of the *Bayesian predictive* distribution; the model itself is
never drawn. With the frozen upper values `W` of a belief graph (`bounds.finite.relaxation`) the loss of a step is

    loss(x,a) = W(x) − r(x,a) − γ E[W(x') | x,a] ≥ 0,

and for any time `τ` that looks at the past only

    V^π(x_0) = W(x_0) − E[ Σ_{k<τ} γ^k loss_k + γ^τ (W(x_τ) − V^π(x_τ)) ].

A walk ends after `depth` steps, or before a step that could make it cost more than a limit. What is left of `V^π`
there lies between what the worst policy of each model earns and `W`, a span at most: taking either end of it, the mean
cost of walks bounds the value from below and from above. The losses of a good policy are small, so few walks suffice:
`W` is a control variate. As long as `lost + γ^k span` is within the limit, no walk costs more.

*What is missing.* In the same scenario an information relaxation costs `c⁺`, the least over all sequences of actions,
and `V* ≤ W(x_0) − E c⁺`. So `V* − V^π ≤ E[cost − c⁺]`: a mean of differences with common random numbers, which neither
the noise of the value nor that of an upper bound enters.

All samples are bounded, and their means are read off with the betting intervals of `bounds.statistics.betting`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors.elsewhere import at_once, map_numbered
from beliefbound.base.executors.team import Team
from beliefbound.base.limits import TABLE_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.finite.outcomes import rows_of
from beliefbound.bounds.finite.pairs import with_pairs
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import models_apart, problem_of, search_depth
from beliefbound.bounds.finite.relaxation import BLOCK, FEW_NODES, MANY_NODES, Address, Certifier, extended
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most
from beliefbound.bounds.steps import OPERATIONS
from beliefbound.kernels.graph.information_relaxation import scenario_uniforms
from beliefbound.kernels.graph.search import make_child, restore
from beliefbound.kernels.random import inverse_cdf
from beliefbound.planning.lemmas import stages_until
from beliefbound.planning.task import FiniteTask, made_once_for_models
from beliefbound.policy import TablePolicy
from beliefbound.policy.protocol import checked_action
from beliefbound.policy.stepping import transitions

_LEFT = 1e-4  # of the largest value: what may be left at the depth
_MOST_STEPS = 100_000  # beyond, what is left counts as the worst
_NODES, _GROWTH = 20_000, 2.0 * OPERATIONS  # of the graph: beliefs, and operations
_RELAXATION = 0.02 * OPERATIONS  # operations of one


class Simulated(NamedTuple):
    """The value lies in `[low, high]`, and at most `missing` below Bayes-optimal; all hold together with the confidence
    asked for."""

    low: float
    high: float
    estimate: float
    missing: float
    missing_estimate: float
    samples: int


class Walks:
    """Walks of one policy under a task. Those of a worker have its frozen graph to themselves, as others have this."""

    def __init__(self, policy: AnyPolicy, task: FiniteTask, graph: Certifier | None = None) -> None:
        self.policy, self.task = policy, task
        models, discount = task.models, task.discount
        self.depth = stages_until(_LEFT, discount, most=_MOST_STEPS if task.horizon is None else task.horizon)
        stages = 0 if task.horizon is None else task.horizon
        fits = TABLE_BYTES // (8 * (stages + 1) * models.rewards.size) - 1
        if fits < 0:
            raise ParameterError(f"horizon {task.horizon} needs too large tables for a simulation; give a shorter one")
        self.least, self.shown = _least(task), rows_of(task).reward
        pool = policies_of(task)[: max(1, fits * models.n_actions)]
        self.certifier = self._searched(pool, stages) if graph is None else _frozen(graph)
        best = np.where(models.available, self.certifier.problem.q, -np.inf).max(axis=-1)
        self.span = float(max(0.0, (best - self.least[: len(best)]).max()))  # no loss, and nothing left, is larger
        self.paid = task.belief.signal.on_arrival

    def _searched(self, pool: list[TablePolicy], stages: int) -> Certifier:
        """A graph that has grown, frozen. Its tables reach to the horizon: walks do."""
        task = self.task
        problem = problem_of(task, stages=stages, policies=pool)
        if task.horizon is None or search_depth(task, len(pool)) == task.horizon:
            problem = with_pairs(problem, task)
        certifier = Certifier(task, problem, pool, core_nodes=_NODES, max_nodes=FEW_NODES)
        certifier.grow(_NODES, work=_GROWTH)
        return _frozen(certifier)

    def cost(self, address: Address, scenario: int, limit: float) -> tuple[float, float, float]:
        """What one walk has lost: for certain, at most, and the largest `lost + γ^k span` on its way. With a `limit` of
        at least a span, none of them is larger."""
        policy, graph, problem, discount = self.policy, self.certifier.graph, self.certifier.problem, self.task.discount
        u = np.empty(self.depth + 1)
        scenario_uniforms(address, scenario, u)
        restore(graph)
        policy.reset(int(np.random.default_rng((*map(int, address), scenario)).integers(2**63)))
        node = int(self.certifier.roots[inverse_cdf(self.certifier.weights, u[0])])
        lost, weight, peak, stage = 0.0, 1.0, self.span, 0

        def follow(s: int, a: int) -> tuple[float | None, int] | None:
            nonlocal lost, weight, peak, stage, node
            base = int(problem.first[s, 0])
            row = int(problem.first[s, a]) - base
            row += int(inverse_cdf(graph.prob[node, row : int(problem.first[s, a + 1]) - base], u[stage + 1]))
            more = lost + weight * max(0.0, float(graph.loss[node, a]))
            child = int(make_child(problem, graph, node, row)) if more + weight * discount * self.span <= limit else -1
            if child < 0:  # too dear, or no space
                return None
            t = int(graph.state[child])
            lost, node, weight, stage = more, child, weight * discount, stage + 1
            peak = max(peak, lost + weight * self.span)
            return self._reward(base + row, s, a, t), t

        check = partial(checked_action, available=self.task.models.available)
        for _ in islice(transitions(policy, int(graph.state[node]), follow, check=check), self.depth):
            pass
        return lost, lost + weight * self._left(node, stage), peak

    def _left(self, node: int, stage: int) -> float:
        """How far the worst can be below `W` at a node."""
        graph = self.certifier.graph
        held = slice(int(graph.begin[node]), int(graph.begin[node + 1]))
        least = self.least[min(stage, len(self.least) - 1)][graph.model[held], int(graph.state[node])]
        return min(self.span, max(0.0, float(graph.upper[node] - graph.weight[held] @ least)))

    def relaxed(self, address: Address, first: int, clip: float, team: Team) -> FloatArray:
        """`c⁺` of a block of scenarios."""
        restore(self.certifier.graph)  # what walks have built
        costs = self.certifier.sample(address, first, BLOCK, clip=clip, stop=np.inf, team=team)
        return np.minimum(costs.above, clip)

    def _reward(self, row: int, s: int, a: int, t: int) -> float | None:
        """What a step shows: the reward seen; where all models pay the same, that; nothing where rewards are unseen."""
        if not np.isnan(self.shown[row]):
            return float(self.shown[row])
        if not self.task.belief.signal.common:
            return None
        return float(self.task.models.rewards[0, s, a] if self.paid is None else self.paid[0, s, a, t])


class _Numbered(NamedTuple):
    """Walks by the numbers of their scenarios (`base.executors.elsewhere`)."""

    walks: Walks
    address: Address
    limit: float

    def scratch(self) -> None:
        """Walks have their own."""

    def one(self, number: int, scratch: None) -> tuple[float, float, float]:
        return self.walks.cost(self.address, number, self.limit)

    def costs(self, numbers: range) -> list[tuple[float, float, float]]:
        """What these walks have lost: here one after the other, as they are steps of one policy."""
        return map_numbered(self, numbers, lambda: [None])


@made_once_for_models
def _least(task: FiniteTask) -> FloatArray:
    """`[stage,m,s]`: what the worst policy of each model earns."""
    models = task.models
    turned = FiniteBelief.of(replace(models, rewards=-models.rewards), task.weights, reward_signal="unobserved")
    most = models_apart(FiniteTask(turned, task.start, task.discount, task.horizon), task.horizon or 0)
    return np.asarray(-np.where(models.available, most, -np.inf).max(axis=-1))


def reaching(graph: Certifier | None) -> Certifier | None:
    """A graph that a search has grown, where its tables reach to the horizon, as walks do."""
    if graph is None or not len(graph.roots):
        return None
    horizon = graph.task.horizon
    return graph if horizon is None or len(graph.problem.q) > horizon else None


def _frozen(graph: Certifier) -> Certifier:
    """A graph that has grown, its values frozen, for relaxations of limited length."""
    rows = float(np.diff(graph.problem.first[:, [0, -1]], axis=1).mean())
    node = graph.node_work * graph.task.models.n_models * rows
    graph.max_nodes = int(np.clip(_RELAXATION / node, FEW_NODES, MANY_NODES))
    graph.freeze_values()
    return graph


def simulate(
    policy: AnyPolicy,
    task: FiniteTask,
    rng: np.random.Generator,
    *,
    samples: int,
    alpha: float,
    stop: Callable[[], bool] | None = None,
    graph: Certifier | None = None,
    threads: int | None = None,
) -> Simulated:
    """Bounds on the value of a policy, and on what it is missing, that fail with probability at most `alpha`, a third
    of it each.

    `stop` is asked between walks: the intervals hold after any number of them. `graph`: one that a search has grown,
    whose tables reach to the horizon; else one is grown here. Relaxations are on `threads`; walks, which are steps of
    anybody's policy, go where samples go (`base.executors.elsewhere`).
    """
    with Team(threads) as team:
        return _simulated(Walks(policy, task, graph), rng, samples, alpha, stop, team)


def _simulated(
    walks: Walks,
    rng: np.random.Generator,
    samples: int,
    alpha: float,
    stop: Callable[[], bool] | None,
    team: Team,
) -> Simulated:
    address, top, each = rng.integers(0, 2**64, size=4, dtype=np.uint64), walks.certifier.upper, alpha / 3.0
    own = extended(address, 0)  # of the pilot, which chooses limit and clip and is not part of any bound
    pilot = np.array(_Numbered(walks, own, np.inf).costs(range(BLOCK)))
    relaxed = walks.relaxed(own, 0, np.inf, team)
    apart = pilot[:, 1] - relaxed
    # A limit a little above the pilot: walks that would pass it are cut, and count as their worst.
    most, clip = 1.05 * float(pilot[:, 2].max()), max(2.0 * float(relaxed.max()), walks.certifier.tolerance)
    own, found, parts = extended(address, 1), list[tuple[float, float, float]](), list[FloatArray]()
    numbered = _Numbered(walks, own, most)
    while len(found) < samples and not (found and stop is not None and stop()):
        found += numbered.costs(range(len(found), min(samples, len(found) + at_once(1))))
        while BLOCK * len(parts) < len(found):
            parts.append(walks.relaxed(own, BLOCK * len(parts), clip, team))
    costs, above = np.array(found)[:, :2], np.concatenate(parts)[: len(found)]
    below = mean_at_most(costs[:, 1], low=0.0, high=most, alpha=each, pilot=pilot[:, 1])
    least = mean_at_least(costs[:, 0], low=0.0, high=most, alpha=each, pilot=pilot[:, 0])
    between = costs[:, 1] - above
    missing = mean_at_most(between, low=-clip, high=most, alpha=each, pilot=apart)
    off = walks.certifier.allowance(top, "lower") + walks.certifier.allowance(top, "upper")
    return Simulated(
        top - below - off,
        top - least + off,
        top - float(costs.mean()),
        max(0.0, missing) + off,
        max(0.0, float(between.mean())),
        len(found),
    )
