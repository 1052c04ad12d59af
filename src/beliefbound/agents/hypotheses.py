"""Hypotheses: models drawn from the prior once, then a POMDP policy over them – the "MC-BRL" of Wang, Won, Hsu & Lee
(ICML 2012), under a name that nobody confuses with MCBRL.

At the start of a run n models are drawn from the prior. With weights `w_m`, at first equal, they are a finite belief,
whose Bayes-optimal policy is that of a POMDP with hidden state m; it is planned for once, by point-based backups, and
followed to the end while `w_m` becomes proportional to `w_m Pr_m(t, r | s,a)`. The paper solves the POMDP with SARSOP;
here alpha vectors (`kernels.graph.alpha`) are backed up at beliefs met on trajectories: `rounds` rounds of `beliefs`
beliefs, each backed up `SWEEPS` times. The action played maximises one step ahead of the vectors, at the exact weights:

    max_a Σ_m w_m r_m(s,a) + γ Σ_o max_α Σ_m w_m Pr_m(o | s,a) α(m),

which earns, under the n hypotheses, at least what the best vector promises.

Hypotheses are never drawn again: a continuous prior is misfit, and the weights gather on those that are closest to the
truth. What no hypothesis explains leaves the weights as they were. A plain Python agent around compiled kernels:
planning takes some ten milliseconds a run on small problems.
"""

import math
from typing import Any

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.engine.priors import PRIOR, offered_belief
from beliefbound.engine.protocol import DISCOUNT, Setting
from beliefbound.engine.registry import agent
from beliefbound.errors import ObservationError
from beliefbound.grammar import Number
from beliefbound.kernels.graph.alpha import Points, back_up_points, keep_used, look_below, new_vectors, walk
from beliefbound.kernels.random import stream_from, uniform
from beliefbound.planning.expected import expected_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.task import FiniteTask
from beliefbound.validation import FloatArray

SWEEPS = 3  # over the beliefs of a round: values travel back along trajectories
_DEPTH = 60  # steps of a trajectory, where the discount allows as many
_RANDOM = 0.15  # share of its steps that are random: beliefs beside the way
_GAIN = 1e-6  # of the largest value: what a new vector must add


@agent(
    "hypotheses",
    summary="models drawn from the prior once, a point-based POMDP policy over them (MC-BRL of Wang et al. 2012)",
    parameters=(
        Number("n", 32, 1, 10**5, "models drawn at the start of a run", whole=True, always=True),
        Number("beliefs", 128, 1, 10**6, "backed up in a round", whole=True),
        Number("rounds", 3, 1, 10**4, "of backups", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
)
class Hypotheses:
    """See above. `weights [m]` and `values(state)` may be looked at."""

    def __init__(self, setting: Setting, *, n: int, beliefs: int, rounds: int, **values: Any) -> None:
        self._prior, self._discount = offered_belief(setting, values), setting.discount
        self._n, self._beliefs, self._rounds = n, beliefs, rounds
        start = None if setting.environment is None else setting.environment.start
        self._start = np.full(setting.n_states, 1.0 / setting.n_states) if start is None else np.array(start)

    def reset(self, seed: int) -> None:
        """Draw hypotheses and plan."""
        rng = np.random.default_rng(seed)
        self.plan(self._prior.sample(self._n, rng), rng)

    def plan(self, hypotheses: FiniteBelief, rng: np.random.Generator) -> None:
        """Vectors for a finite belief."""
        task = FiniteTask.of(hypotheses, discount=self._discount, initial=self._start)
        policies = [mmbi_plan(task).policy, expected_plan(task).policy]
        self.belief, self.weights = hypotheses, np.array(hypotheses.weights)
        self._problem = problem = problem_of(task, stages=0, policies=policies)
        self._vectors = vectors = new_vectors(problem, problem.v[0], SWEEPS * self._rounds * self._beliefs)
        self._out, self._rows = np.empty(len(self.weights)), np.zeros(vectors.then.shape[1], dtype=np.int64)
        depth = _DEPTH if self._discount == 0.0 else math.ceil(math.log(1e-4) / math.log(self._discount))
        stream, states = stream_from(rng), np.flatnonzero(self._start)
        chances = np.cumsum(self._start[states])
        for _ in range(self._rounds):
            points = Points(
                np.empty(self._beliefs, dtype=np.int32),
                np.empty((self._beliefs, len(self.weights))),
                np.empty(self._beliefs, dtype=np.int32),
            )
            used = 0
            while used < self._beliefs:
                i = int(np.searchsorted(chances, uniform(stream), side="right"))
                s, mix = int(states[min(i, len(states) - 1)]), 0.8 * uniform(stream)
                used = walk(problem, vectors, s, self.weights, stream, points, used, min(_DEPTH, depth), _RANDOM, mix)
            order = np.argsort(-points.depth, kind="stable")
            for _ in range(SWEEPS):
                if back_up_points(problem, vectors, points, order, _GAIN * task.largest_value) == 0.0:
                    break
            keep_used(vectors, points, len(policies))

    def values(self, state: int) -> FloatArray:
        """What each action is worth at the present weights, `[a]`; −∞ where not on offer."""
        available = self._problem.available[state]
        return np.array(
            [
                look_below(self._problem, self._vectors, state, a, self.weights, self._out, self._rows)
                if available[a]
                else -np.inf
                for a in range(len(available))
            ]
        )

    def act(self, state: int) -> int:
        """The best action one step ahead of the vectors."""
        return int(self.values(state).argmax())

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Weigh the hypotheses by what they gave the transition."""
        try:
            self.belief = self.belief.update(state, action, reward, next_state)
        except ObservationError:  # nobody explains it
            return
        self.weights = np.array(self.belief.weights)
