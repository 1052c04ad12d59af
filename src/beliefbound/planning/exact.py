"""The best memoryless policy, proven: policy branch and bound.

A node fixes some choices `(stage, state) → action`. Each model solved on its own with those choices fixed gives `Σ_m
w_m p0·V_m`, at least the value of every policy that agrees with the node, since one policy must serve all models. As
long as every state that is met is fixed, occupancies are known, and at the first stage where one is not all models
share the next action: `Σ_s max_a Σ_m b_m(s) Q_m(s,a)` bounds what follows (QMDP at the root). Children fix one more
choice: where the models' own optimal policies disagree and the first-order cost of agreeing, weighted by occupancy,
is highest. Where nothing is left to disagree about, one policy attains the bound and the node is closed.

The incumbent starts as CADP's answer; at every node the policy of least disagreement is evaluated, and improved by
CADP when it beats the incumbent. The open node with the highest bound comes next, so `upper` is the smallest bound
provable at that effort and the search can stop at any time with a valid bracket `[lower, upper]` on the best
memoryless value.

Memoryless policies are those of the current state and stage: the bracket is *not* on the Bayes-optimal value, of
which `lower` is a lower bound and `upper` is none. The work grows exponentially in the number of disagreeing choices:
for small instances, or as a bracket on larger ones. Cost of a node: one backward induction of every model, and for
each action one of those models that disagree, over the stages up to the choice.
"""

import heapq
import math
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ParameterError
from beliefbound.kernels.planning import branch_and_bound as relax
from beliefbound.planning.cadp import Ascent, cadp
from beliefbound.planning.plan import start_of
from beliefbound.policy import MemorylessPolicy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, check_positive

_ROUNDING = 1e-10  # relative to the largest value the problem allows


@dataclass(frozen=True, eq=False)
class BestMemoryless:
    """A memoryless policy and what is proven about the best one.

    Attributes:
      policy: the best policy found, `[t,s]`.
      lower: its exact value from the start distribution, also a lower bound on the Bayes-optimal value.
      upper: no memoryless policy is worth more (up to rounding).
      optimal: whether `upper − lower` is within the gap asked for.
      nodes: nodes opened.
      seconds: time taken.
    """

    policy: MemorylessPolicy
    lower: float
    upper: float
    optimal: bool
    nodes: int
    seconds: float


def best_memoryless(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int,
    initial: FloatArray | int | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
    node_limit: int | None = None,
) -> BestMemoryless:
    """The best deterministic time-indexed memoryless policy of a finite belief, by branch and bound.

    Args:
      belief: models and weights; sparse ones are made dense.
      discount, horizon: of the problem.
      initial: start distribution `[s]` or start state; default: the belief's own, else uniform.
      gap: stop when `upper − lower` is at most this; 0 proves optimality up to rounding.
      time_limit, node_limit: seconds and nodes after which the bracket reached so far is returned; CADP and the
        first node are always completed.

    (No stochastic memoryless policy is better: the value is linear in each choice.)

    >>> home, bet, end = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    >>> models = [[[home, bet], [end, end], [end, end]], [[home, end], [end, end], [end, end]]]
    >>> rewards = [[[1.0, 0.0], [0.0, 6.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -9.0], [0.0, 0.0]]]
    >>> belief = FiniteBelief(models, rewards, reward_signal="deterministic", initial=0)
    >>> best = best_memoryless(belief, discount=1.0, horizon=2)
    >>> best.lower, best.upper, best.optimal
    (3.0, 3.0, True)
    """
    begin = time.perf_counter()
    horizon = check_count(horizon, "horizon")
    discount = check_discount(discount, horizon)
    if not gap >= 0.0:
        raise ParameterError(f"gap is {gap}; it must be at least 0")
    deadline = math.inf if time_limit is None else begin + check_positive(time_limit, "time_limit")
    most_nodes = math.inf if node_limit is None else check_count(node_limit, "node_limit")
    search = _Search(belief, discount, horizon, start_of(belief, initial), gap)
    nodes = 0
    while search.open and nodes < most_nodes and (nodes == 0 or time.perf_counter() < deadline):
        if -search.open[0][0] <= search.lower + search.allowed:
            break
        search.expand()
        nodes += 1
    upper = max(search.lower, search.closed, -search.open[0][0] if search.open else -math.inf)
    return BestMemoryless(
        policy=MemorylessPolicy(search.actions),
        lower=search.lower,
        upper=upper,
        optimal=upper <= search.lower + search.allowed,
        nodes=nodes,
        seconds=time.perf_counter() - begin,
    )


class _Search:
    """The open nodes (a heap on the bound), the incumbent, and scratch arrays."""

    def __init__(self, belief: FiniteBelief, discount: float, horizon: int, p0: FloatArray, gap: float) -> None:
        models = belief.models
        n_models, n_states, n_actions = models.rewards.shape
        self.n_actions, self.available = n_actions, models.available
        self.ascent = Ascent(belief, discount, horizon, p0)
        weights, start = np.array(belief.weights), np.array(p0)
        self.problem = (models.dense(), models.rewards, weights, models.available, discount, start)
        self.shape = (horizon, n_states)
        self.v = np.zeros((horizon + 1, n_models, n_states))
        self.q = np.zeros((horizon, n_models, n_states, n_actions))
        self.child_v, self.child_q = np.zeros_like(self.v), np.zeros_like(self.q)
        self.d, self.loss = np.empty(self.shape), np.empty((*self.shape, n_actions))
        self.rule = np.empty(self.shape, dtype=np.int64)
        self.scratch = (
            np.zeros(n_models, dtype=np.bool_),
            np.empty((n_models, n_states)),
            np.empty((n_models, n_states)),
        )
        self.current, self.other = np.empty(n_states), np.empty(n_states)
        stages = horizon if discount == 1.0 else (1.0 - discount**horizon) / (1.0 - discount)
        self.allowed = max(gap, _ROUNDING * stages * max(abs(x) for x in models.reward_range))
        plan = cadp(belief, discount=discount, horizon=horizon, initial=p0)
        self.actions: IntArray = np.array(plan.policy.actions)
        self.lower = plan.value(p0)
        self.closed = -math.inf  # the highest bound among nodes closed without being opened further
        self.count = 0
        self.open: list[tuple[float, int, bytes]] = []
        self._push(math.inf, np.full(self.shape, -1, dtype=np.int16))

    def _push(self, bound: float, fixed: npt.NDArray[np.int16]) -> None:
        if bound <= self.lower + self.allowed:
            self.closed = max(self.closed, bound)
            return
        heapq.heappush(self.open, (-bound, self.count, fixed.tobytes()))
        self.count += 1

    def expand(self) -> None:
        """Open the node of highest bound: update the incumbent, push its children."""
        known, _, packed = heapq.heappop(self.open)
        fixed = np.frombuffer(packed, dtype=np.int16).reshape(self.shape).copy()
        p, r, w, available, discount, p0 = self.problem
        bound, stage, state = relax.open_node(
            p, r, w, available, discount, p0, fixed, self.v, self.q, self.d, self.loss, self.rule, *self.scratch
        )
        bound = min(bound, -known)
        value = relax.value_of(p, r, w, discount, p0, self.rule, self.current, self.other)
        if value > self.lower:
            found = self.ascent.climb(self.rule, "branch and bound")
            self.actions, self.lower = found.actions, found.rho
        if stage < 0 or bound <= self.lower + self.allowed:
            self.closed = max(self.closed, min(bound, value) if stage < 0 else bound)
            return
        for action in range(self.n_actions):
            if not self.available[state, action]:
                continue
            child = relax.bound_child(
                p,
                r,
                w,
                available,
                discount,
                p0,
                fixed,
                stage,
                state,
                action,
                self.v,
                self.q,
                self.child_v,
                self.child_q,
                *self.scratch,
            )
            fixed[stage, state] = action
            self._push(min(child, bound), fixed)
            fixed[stage, state] = -1
