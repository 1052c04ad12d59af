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
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ParameterError, PolicyError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import FloatArray, IntArray, check_count, check_gap, check_positive
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bound import Bound, BoundEntries, Kind
from beliefbound.kernels.planning import branch_and_bound as kernel
from beliefbound.planning.cadp import CoordinateAscent, cadp_plan
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, Policy
from beliefbound.policy.results import Entries, Result

_ROUNDING = 1e-10  # of the value: ends that are closer have met


class BestMemorylessEntries(Entries):
    """A `BestMemoryless` in a file."""

    lower: BoundEntries
    upper: BoundEntries
    optimal: bool
    nodes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class BestMemoryless(Result):
    """A memoryless policy and what is proven about the best one: its value is in `[lower.value, upper.value]`.

    Attributes:
      policy: the best policy found, `[t,s]`.
      lower: its exact value from the start distribution, a lower bound on the Bayes-optimal value too.
      upper: no memoryless policy is worth more. One that learns may be: this is no bound on the
        Bayes-optimal value, and `upper.of` says so.
      optimal: whether `upper − lower` is within the gap asked for.
      nodes: nodes opened.
      seconds: time taken.

    `summary`, `to_dict`, `save` and `load` as for every result; there is no picture.
    """

    policy: MemorylessPolicy
    lower: Bound
    upper: Bound
    optimal: bool
    nodes: int
    seconds: float

    _kind, _entries, _version = "best memoryless", BestMemorylessEntries, 2

    def __repr__(self) -> str:
        kind = "optimal" if self.optimal else "not proven optimal"
        return f"BestMemoryless([{self.lower.value:.6g}, {self.upper.value:.6g}], {kind}, {self.nodes} nodes)"

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON; the policy is left out."""
        return {
            "lower": self.lower.to_dict(),
            "upper": self.upper.to_dict(),
            "optimal": bool(self.optimal),
            "nodes": int(self.nodes),
            "seconds": float(self.seconds),
        }

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("value of the policy", f"{self.lower.value:.6g}"),
            ("no memoryless policy is worth more than", f"{self.upper.value:.6g}, {self.upper.method}"),
            ("optimal", "yes" if self.optimal else "not proven"),
            ("nodes", f"{self.nodes} in {self.seconds:.3g} s"),
        ]

    @classmethod
    def _from_entries(cls, entries: BestMemorylessEntries, policy: Policy | None) -> Self:
        if policy is None or policy.horizon is None:
            raise PolicyError("its policy is not a memoryless one")
        lower, upper = Bound._from_entries(entries.lower, policy), Bound._from_entries(entries.upper, None)
        if (lower.side, upper.side) != ("lower", "upper"):
            raise ParameterError("its lower and upper bounds are on the wrong sides")
        return cls(cast("MemorylessPolicy", policy), lower, upper, entries.optimal, entries.nodes, entries.seconds)


def best_memoryless(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int,
    initial: FloatArray | int | None = None,
    target_gap: float = 0.0,
    time_limit: float | None = None,
    node_limit: int | None = None,
) -> BestMemoryless:
    """The best deterministic time-indexed memoryless policy of a finite belief, by branch and bound.

    Args:
      belief: models and weights; sparse ones are made dense.
      discount, horizon: of the problem.
      initial: start distribution `[s]` or start state; default: the belief's own, else uniform.
      target_gap: stop when `upper − lower` is at most this share of the larger of `|upper|` and `|lower|`, as in
        `bracket`; 0 proves optimality up to rounding.
      time_limit, node_limit: seconds and nodes after which the bracket reached so far is returned; CADP and the
        first node are always completed.

    (No stochastic memoryless policy is better: the value is linear in each choice.)

    >>> home, bet, end = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    >>> models = [[[home, bet], [end, end], [end, end]], [[home, end], [end, end], [end, end]]]
    >>> rewards = [[[1.0, 0.0], [0.0, 6.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -9.0], [0.0, 0.0]]]
    >>> belief = FiniteBelief(models, rewards, reward_signal="deterministic", initial=0)
    >>> best = best_memoryless(belief, discount=1.0, horizon=2)
    >>> round(best.lower.value, 9), round(best.upper.value, 9), best.optimal
    (3.0, 3.0, True)
    """
    gap = check_gap(target_gap, "target_gap")
    seconds = math.inf if time_limit is None else check_positive(time_limit, "time_limit")
    nodes = math.inf if node_limit is None else check_count(node_limit, "node_limit")
    task = finite_horizon_task(belief, discount, horizon, initial)
    return best_memoryless_of(task, gap=gap, seconds=seconds, most_nodes=nodes)


def best_memoryless_of(
    task: FiniteTask, *, gap: float = 0.0, seconds: float = math.inf, most_nodes: float = math.inf
) -> BestMemoryless:
    """`best_memoryless` of a task with a horizon."""
    begin = time.perf_counter()
    search, nodes = _Search(task, gap), 0
    while search.open and nodes < most_nodes and (nodes == 0 or time.perf_counter() < begin + seconds):
        if -search.open[0][0] <= search.lower + search.allowed:
            break
        search.open_best()
        nodes += 1
    upper = max(search.lower, search.closed, -search.open[0][0] if search.open else -math.inf)
    policy, rounded = MemorylessPolicy(search.actions), search.rounded
    kind = Kind.BRANCH_AND_BOUND
    return BestMemoryless(
        policy=policy,
        lower=Bound(search.lower - rounded(search.lower), "lower", "value of the policy", policy=policy, kind=kind),
        upper=Bound(upper + rounded(upper), "upper", "branch and bound", of="best memoryless value", kind=kind),
        optimal=upper <= search.lower + search.allowed,
        nodes=nodes,
        seconds=time.perf_counter() - begin,
    )


def finite_horizon_task(belief: FiniteBelief, discount: float, horizon: int, initial: Any) -> FiniteTask:
    """The task of a best time-indexed policy: the horizon is not optional."""
    if horizon is None:
        raise ParameterError("the best memoryless policy needs a horizon; pass horizon=...")
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    check_horizon(horizon, 8 * belief.models.rewards.size * belief.n_states, 16 * belief.models.rewards.size)
    return task


class _Search:
    """The open nodes (a heap on the bound), the incumbent, and scratch arrays."""

    def __init__(self, task: FiniteTask, gap: float) -> None:
        assert task.horizon is not None
        models = task.models
        self.n_actions, self.available = models.n_actions, models.available
        self.ascent = CoordinateAscent(task)
        self.problem = kernel.WeightedModels(
            models.dense(),
            models.rewards,
            np.array(task.weights),
            models.available,
            task.discount,
            np.array(task.start),
        )
        self.shape = (task.horizon, models.n_states)
        self.solved = kernel.new_solved(self.problem, task.horizon)
        self.child = kernel.new_solved(self.problem, task.horizon)
        self.scratch = kernel.new_scratch(self.problem, task.horizon)
        self.rule = np.empty(self.shape, dtype=np.int64)
        self.gap, self._allowance = gap, Allowance(task)
        plan = cadp_plan(task)
        self.actions: IntArray = np.array(plan.policy.actions)
        self.lower = plan.value(task.start)
        self.closed = -math.inf  # the highest bound among nodes closed without being opened further
        self.count = 0
        self.open: list[tuple[float, int, bytes]] = []
        self._push(math.inf, np.full(self.shape, -1, dtype=np.int16))

    @property
    def allowed(self) -> float:
        """The distance between the ends that is small enough; the larger end is at least the incumbent."""
        return max(_ROUNDING * abs(self.lower) + 2.0 * self.rounded(self.lower), self.gap * abs(self.lower))

    def rounded(self, value: float) -> float:
        """What rounding can take from a value. Choices that are fixed may be bad ones: so as for any policy."""
        return self._allowance(value, "lower")

    def _push(self, bound: float, fixed: npt.NDArray[np.int16]) -> None:
        if bound <= self.lower + self.allowed:
            self.closed = max(self.closed, bound)
            return
        heapq.heappush(self.open, (-bound, self.count, fixed.tobytes()))
        self.count += 1

    def open_best(self) -> None:
        """Open the node of highest bound: update the incumbent, push its children."""
        known, _, packed = heapq.heappop(self.open)
        fixed = np.frombuffer(packed, dtype=np.int16).reshape(self.shape).copy()
        bound, stage, state = kernel.open_node(self.problem, fixed, self.solved, self.rule, self.scratch)
        bound = min(bound, -known)
        value = kernel.objective(self.problem, self.rule, self.scratch)
        if value > self.lower:
            found = self.ascent.ascend(self.rule, "branch and bound")
            self.actions, self.lower = found.actions, found.rho
        if stage < 0 or bound <= self.lower + self.allowed:
            self.closed = max(self.closed, min(bound, value) if stage < 0 else bound)
            return
        for action in range(self.n_actions):
            if not self.available[state, action]:
                continue
            child = kernel.bound_child(self.problem, fixed, stage, state, action, self.solved, self.child, self.scratch)
            fixed[stage, state] = action
            self._push(min(child, bound), fixed)
            fixed[stage, state] = -1
