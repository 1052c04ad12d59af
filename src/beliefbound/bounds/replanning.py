"""A policy for a Dirichlet belief that looks ahead on particles and draws new ones as it learns.

`ParticlePolicy` acts by one-step look-ahead on a belief graph over particles conditioned on the history
(`kernels.graph`), with

* *new particles* from the exact posterior whenever too few still count, or none allows what was seen;
* *an end*: when a policy of the pool is as good as the graph's upper value to within a tolerance, or at a depth where
  little is left, it follows the optimal policy of the expected MDP there, for ever.

The particles at a posterior are those of a generator seeded by the policy's own seed and the counts that lead there.
So the policy is one fixed function of the history: what `act` plays is what `simulate` values.

`simulate` follows it under the belief itself, where predictive probabilities are in closed form
(`kernels.hyperstate`); the graph is also the control variate. At the end, fresh models of the posterior value the last
policy. The mean is the policy's value under the belief, hence at most `V*`, however poor the particles are.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from beliefbound.beliefs import BetaRewards, DirichletBelief
from beliefbound.bounds.dirichlet import few_policies, span, stationary_optimum
from beliefbound.bounds.problem import outcome_rows, problem_of
from beliefbound.errors import ObservationError
from beliefbound.kernels import graph as kernel
from beliefbound.kernels.graph import Graph, Problem
from beliefbound.kernels.hyperstate import ACT, LEAF, look, policy_value, step_on, walk
from beliefbound.policy import StationaryPolicy
from beliefbound.validation import FloatArray, IntArray, check_ids

_ADVICE_TAIL = 0.1  # advice may be about another problem: it only has to be good
_TAIL = 5e-3
_DROP = 1e-6
_BASE, _BASE_NODES = 16_000, 2000
_FRESH, _LEAST = 1024, 100.0
_LEAF_MODELS = 64
_TOLERANCE = 3e-4  # of the range of values


class Advice(NamedTuple):
    """A particle graph, settled, and its roots by start state."""

    problem: Problem
    graph: Graph
    roots: dict[int, int]


class Counts(NamedTuple):
    """The hyperstate: transition counts `alpha[s,a,t]`, reward counts `success[s,a]` and `failure[s,a]`."""

    alpha: FloatArray
    success: FloatArray
    failure: FloatArray


class ParticlePolicy:
    """Acts under a Dirichlet belief: `action = policy.act(history, state)`. Made by `bracket`.

    A function of the history and of its own fixed seed.
    """

    def __init__(
        self, belief: DirichletBelief, start: FloatArray, discount: float, horizon: int | None, seed: int
    ) -> None:
        self.belief, self.start, self.discount, self.horizon, self.seed = belief, start, discount, horizon, seed
        rewards = belief.rewards
        shape = belief.concentration.shape[:2]
        self._known = np.array(rewards.mean())
        success, failure, self._range = np.ones(shape), np.ones(shape), (0.0, 1.0)
        if isinstance(rewards, BetaRewards):
            success, failure = np.array(rewards.alpha), np.array(rewards.beta)
            self._range = (rewards.low, rewards.high)
        self._prior = Counts(np.array(belief.concentration), success, failure)
        depth = 1000 if discount == 1.0 else math.ceil(math.log(_TAIL) / math.log(max(discount, 1e-6)))
        self.depth = depth if horizon is None else min(depth, horizon)
        self._powers = np.power(discount, np.arange(self.depth + 1))
        self._tolerance = _TOLERANCE * span(belief, discount, horizon)
        self._base = self._advice(belief, np.random.default_rng((seed, 0)), _BASE, _BASE_NODES, 0, self.depth)
        self._sign = self._signs()

    def __repr__(self) -> str:
        return f"ParticlePolicy({self.belief!r}, {_BASE} particles)"

    def graphs(self) -> Advice:
        """A copy of the first graph, for one thread."""
        return self._base._replace(graph=Graph(*(array.copy() for array in self._base.graph)))

    def simulate(self, rng: np.random.Generator, base: Advice) -> float:
        """One trajectory under the belief: an unbiased estimate of this policy's value from the start."""
        u = rng.random(self.depth + 1)
        counts = self._counts()
        state = int(np.searchsorted(np.cumsum(self.start), rng.random(), side="right"))
        state = min(state, int(np.flatnonzero(self.start)[-1]))
        advice, node, stage, total = base, base.roots[state], 0, 0.0
        while True:
            status, stage, state, value = walk(
                advice.problem, advice.graph, node, self._sign, *counts, self._known, *self._range, u, stage,
                self._powers, self._tolerance, _LEAST,
            )  # fmt: skip
            total += float(value)
            if status == LEAF:
                break
            advice, node = self._renew(counts, stage, state)
        kernel.restore(base.graph)
        left = None if self.horizon is None else self.horizon - stage
        if left == 0:
            return total
        posterior = self._posterior(counts)
        models = posterior.sample(_LEAF_MODELS, rng)
        out = np.empty((_LEAF_MODELS, self.belief.n_states))
        actions = stationary_optimum(posterior, self.discount, left).actions
        policy_value(models.models.dense(), models.rewards, actions, self.discount, -1 if left is None else left, out)
        return total + float(self._powers[stage] * out[:, state].mean())

    def act(self, history: Sequence[tuple[int, int, float | None, int]], state: Any) -> int:
        """The action in `state` after `history`, a sequence of `(state, action, reward, next_state)` that ends there.

        Raises:
          ObservationError: the history does not fit together, does not start where the certificate does, fills the
            horizon, or cannot have happened under the belief.
        """
        now = int(check_ids(state, self.belief.n_states, "state", ObservationError))
        if self.horizon is not None and len(history) >= self.horizon:
            raise ObservationError(f"the history has {len(history)} steps; the horizon of {self.horizon} is over")
        at = int(history[0][0]) if history else now
        if at not in self._base.roots:
            raise ObservationError(f"the history starts in state {at}, which is not a start state of the certificate")
        advice, node, counts = self._base, self._base.roots[at], self._counts()
        last: StationaryPolicy | None = None
        try:
            for stage, (before, action, reward, after) in enumerate(history):
                if int(before) != at:
                    raise ObservationError(
                        f"step {stage} starts in state {before}, but step {stage - 1} ended in state {at}"
                    )
                if last is None:
                    advice, node, last = self._ready(advice, node, counts, stage, at)
                row = self._row(stage, at, int(action), reward, int(after))
                self._count(counts, at, int(action), row, int(after))
                if last is None:
                    node = step_on(advice.problem, advice.graph, node, row - int(advice.problem.first[at, 0]))
                at = int(after)
            if at != now:
                raise ObservationError(f"the history ends in state {at}, not in state {now}")
            if last is None:
                advice, node, last = self._ready(advice, node, counts, len(history), now)
            return int(advice.graph.action[node] if last is None else last.actions[now])
        finally:
            kernel.restore(self._base.graph)

    def _ready(
        self, advice: Advice, node: int, counts: Counts, stage: int, state: int
    ) -> tuple[Advice, int, StationaryPolicy | None]:
        """Before acting: new particles if they are needed, or the policy that is followed for ever from here."""
        while True:
            status = look(advice.problem, advice.graph, node, stage, self._powers, self._tolerance, _LEAST)
            if status == ACT:
                return advice, node, None
            if status == LEAF:
                left = None if self.horizon is None else self.horizon - stage
                return advice, node, stationary_optimum(self._posterior(counts), self.discount, left)
            advice, node = self._renew(counts, stage, state)

    def _renew(self, counts: Counts, stage: int, state: int) -> tuple[Advice, int]:
        """Particles of the posterior, the same whenever these counts are met."""
        seen = np.concatenate([(mine - prior).ravel() for mine, prior in zip(counts, self._prior, strict=True)])
        rng = np.random.default_rng((self.seed, 1, state, *np.rint(seen).astype(np.int64).tolist()))
        advice = self._advice(self._posterior(counts), rng, _FRESH, 1, stage, self.depth - stage, state)
        return advice, advice.roots[state]

    def _advice(
        self,
        belief: DirichletBelief,
        rng: np.random.Generator,
        n: int,
        nodes: int,
        stage: int,
        room: int,
        state: int | None = None,
    ) -> Advice:
        """A graph of `nodes` beliefs over `n` particles of `belief`, with `room` for more, from `stage` on."""
        left = None if self.horizon is None else self.horizon - stage
        horizon = left if left is None or self.discount**left > _ADVICE_TAIL else None
        sample = belief.sample(n, rng)
        problem = problem_of(
            sample,
            discount=self.discount,
            horizon=horizon,
            stages=min(self.depth, horizon or 1),
            policies=few_policies(belief, sample, self.discount, horizon, 4),
            drop=_DROP,
            possible=belief.concentration > 0.0,
        )
        graph = kernel.new_graph(problem, nodes + room + len(self.start), (nodes + room) * (n // 2) + n * 8)
        states = np.flatnonzero(self.start) if state is None else np.array([state])
        roots = np.array([kernel.add_root(problem, graph, sample.weights, s) for s in states])
        weights = self.start[states] if state is None else np.ones(1)
        if nodes > 1:
            kernel.grow(problem, graph, weights, roots, 0.0, self.depth - stage, nodes)
        kernel.settle(problem, graph)
        return Advice(problem, graph, {int(s): int(r) for s, r in zip(states, roots, strict=True)})

    def _counts(self) -> Counts:
        return Counts(*(array.copy() for array in self._prior))

    def _count(self, counts: Counts, s: int, a: int, row: int, t: int) -> None:
        counts.alpha[s, a, t] += 1.0
        if self._sign[row] == 1:
            counts.success[s, a] += 1.0
        elif self._sign[row] == 0:
            counts.failure[s, a] += 1.0

    def _posterior(self, counts: Counts) -> DirichletBelief:
        rewards: Any = self.belief.rewards
        if isinstance(rewards, BetaRewards):
            low, high = self._range
            rewards = BetaRewards(counts.success.copy(), counts.failure.copy(), low=low, high=high)
        n_states, n_actions, _ = counts.alpha.shape
        return DirichletBelief(n_states, n_actions, concentration=counts.alpha.copy(), rewards=rewards)

    def _signs(self) -> IntArray:
        """Per outcome row: 1 for a success, 0 for a failure, −1 when no reward is seen."""
        sample = self.belief.sample(1, np.random.default_rng(0))
        seen = outcome_rows(sample, self.belief.concentration > 0.0)[3]
        return np.where(np.isnan(seen), -1, np.where(seen >= self._range[1], 1, 0)).astype(np.int64)

    def _row(self, step: int, s: int, a: int, reward: float | None, t: int) -> int:
        problem, (low, high) = self._base.problem, self._range
        for k in range(int(problem.first[s, a]), int(problem.first[s, a + 1])):
            if problem.arrive[k] != t:
                continue
            if self._sign[k] < 0:
                return k
            if reward is None:
                raise ObservationError(f"step {step} has no reward, but the belief learns from rewards")
            if np.isclose(reward, high if self._sign[k] == 1 else low, rtol=1e-9, atol=1e-12):
                return k
        raise ObservationError(
            f"step {step}: state {s}, action {a}, reward {reward}, next state {t} is outside the belief's support"
        )
