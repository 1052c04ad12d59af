"""An upper bound by approximate linear programming (de Farias & Van Roy 2003, 2004) on the beliefs that can be reached.

Any function with `U(s, b) ≥ r(s, b, a) + γ Σ_o P(o | s, b, a) U(s_o, b_o)` at every belief that can be reached is above
the Bayes-optimal value. Among the combinations `U = Σ_k w_k φ_k` of features the program finds the least at the start.
Features that are linear in the belief gain nothing: such a `U` must hold at every single model, and the best is
`Σ_m b_m V*_m`, which is E max. So there are others by default: what the best of the models' own policies earns, which
is convex in the belief, and how concentrated the belief is, `Σ_m b_m²`.

With a horizon the set of beliefs is finite; without one, where observations rule models out for certain. If all of it
fits into `most` beliefs, every constraint is checked after the program is solved. What is violated (a solver's
tolerance, and beliefs that agree to 1e-12 being one) is charged: `U + δ (1 + γ + …)` has no violation left. Then the
bound is *proven*. Otherwise constraints are those of beliefs met by random actions; the result is an *estimate*, and
says how many of the constraints of fresh ones it violates.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, IntArray, Rng, as_floats, as_rng, check_count, frozen, shown
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.finite.outcomes import pair_outcomes
from beliefbound.planning.task import FiniteTask

Features = Callable[[int | None, IntArray, FloatArray], FloatArray]

_SAME = 12  # digits to which weights agree that are one belief
_POLICIES = 16  # models whose own policies are in the pool
_SMALL = 1e-6  # of the largest value: a violation that counts


@dataclass(frozen=True, eq=False)
class ApproximateLP:
    """The least combination of features that no constraint forbids.

    Attributes:
      value: of the combination at the start, with what is charged.
      proven: whether every constraint was checked, so that no policy is worth more.
      weights: `[k]`, of the features; `n_beliefs`, `n_constraints`: that were enumerated, or met.
      charged: what was added for violations at the start.
      violated: the share of fresh constraints that are violated by more than a millionth of the value; 0 where proven.

    >>> from beliefbound import FiniteBelief
    >>> belief = FiniteBelief([[[[1.0]] * 2]] * 2, [[[1.0, 0.0]], [[0.0, 1.0]]], reward_signal="deterministic")
    >>> found = alp(belief, discount=0.5, horizon=2)
    >>> found.n_beliefs, found.n_constraints, found.bound.exact
    (3, 6, True)
    """

    value: float
    proven: bool
    weights: FloatArray = field(repr=False)
    n_beliefs: int
    n_constraints: int
    charged: float
    violated: float

    @property
    def bound(self) -> Bound:
        """The bound, where it is one."""
        if not self.proven:
            raise ParameterError("not all constraints were checked, so it is an estimate and no bound; see value")
        method = f"approximate linear program, all {self.n_constraints} constraints of {self.n_beliefs} beliefs checked"
        return Bound(self.value, "upper", method, kind=Kind.LINEAR_PROGRAM)


def alp(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    features: Features | None = None,
    most: int = 20_000,
    rng: Rng = None,
) -> ApproximateLP:
    """An upper bound on the Bayes-optimal value, by a linear program over features of beliefs.

    Args:
      features: from the decisions left (`None` without a horizon), states `[i]` and weights `[i,m]` to numbers `[i,k]`,
        each 0 where nothing is left. Default: told the model, the best of the models' policies, concentration, 1.
      most: beliefs that are enumerated; where there are more, so many are met by random actions, and it is an estimate.
      rng: of those.

    >>> from beliefbound import FiniteBelief, e_max
    >>> belief = FiniteBelief([[[[1.0]] * 2]] * 2, [[[1.0, 0.0]], [[0.0, 1.0]]], reward_signal="deterministic")
    >>> found = alp(belief, discount=0.5, horizon=2)          # one try tells: 1/2 now, 1 from then on
    >>> found.proven, round(found.value, 6), round(e_max(belief, discount=0.5, horizon=2).value, 6)
    (True, 1.0, 1.5)
    """
    from scipy.optimize import linprog

    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    if features is not None and not callable(features):
        raise ParameterError(f"features is {shown(features)}; give a function of decisions left, states and weights")
    program = _Program(task, default_features(task) if features is None else features)
    nodes = program.reachable(check_count(most, "most"))
    proven, source = nodes is not None, as_rng(rng)
    met = program.walked(most, source) if nodes is None else nodes
    left, right = program.constraints(met)
    start = program.features_of(program.starts())
    cost = task.start[task.start > 0.0] @ start
    solved = linprog(cost, A_ub=-left, b_ub=-right, bounds=(None, None), method="highs")
    if solved.status != 0:
        raise ParameterError(
            f"the linear program has no solution ({solved.message[:80]}); add a constant to the features"
        )
    gap = right - left @ solved.x
    charged, violated = 0.0, 0.0
    if proven:
        merged = 10.0**-_SAME * task.models.n_models * task.largest_value
        charged = (max(float(gap.max()), 0.0) + merged) * task.effective_horizon
    else:
        fresh_left, fresh_right = program.constraints(program.walked(1000, source))
        violated = float((fresh_right - fresh_left @ solved.x > _SMALL * task.largest_value).mean())
    value = float(cost @ solved.x) + charged
    return ApproximateLP(value, proven, frozen(solved.x), len(met), len(right), charged, violated)


Node = tuple[int | None, int, FloatArray]  # decisions left, state, weights [m]


class _Program:
    """Beliefs, and the constraints at them."""

    def __init__(self, task: FiniteTask, features: Features) -> None:
        self.task, self.features = task, features
        self.rows: dict[tuple[int, int], tuple[FloatArray, IntArray]] = {}

    def after(self, node: Node, a: int) -> list[tuple[float, Node]]:
        """What may follow an action, with its chance; nothing after the last decision."""
        left, s, b = node
        if (s, a) not in self.rows:
            self.rows[s, a] = pair_outcomes(self.task.belief, s, a)[:2]
        like, arrive = self.rows[s, a]
        chances = b @ like
        if left == 1:
            return []
        rest = None if left is None else left - 1
        return [
            (float(chances[k]), (rest, int(arrive[k]), b * like[:, k] / chances[k])) for k in np.flatnonzero(chances)
        ]

    def actions(self, node: Node) -> IntArray:
        """Those on offer."""
        return np.flatnonzero(self.task.models.available[node[1]])

    def starts(self) -> list[Node]:
        """Beliefs of the first decision."""
        return [(self.task.horizon, int(s), self.task.weights) for s in np.flatnonzero(self.task.start)]

    def reachable(self, most: int) -> list[Node] | None:
        """All beliefs that can be reached; `None` where they are more than `most`."""
        found = {_key(node): node for node in self.starts()}
        waiting = list(found.values())
        while waiting:
            node = waiting.pop()
            for a in self.actions(node):
                for _, child in self.after(node, int(a)):
                    if _key(child) not in found:
                        found[_key(child)] = child
                        waiting.append(child)
            if len(found) > most:
                return None
        return list(found.values())

    def walked(self, n: int, rng: np.random.Generator) -> list[Node]:
        """Beliefs met by random actions."""
        found: list[Node] = []
        lasts = int(min(np.ceil(3.0 * self.task.effective_horizon), 1000))
        while len(found) < n:
            node = self.starts()[int(rng.integers(len(self.starts())))]
            for _ in range(self.task.horizon or lasts):
                found.append(node)
                follow = self.after(node, int(rng.choice(self.actions(node))))
                if not follow:
                    break
                chances = np.array([chance for chance, _ in follow])
                node = follow[int(rng.choice(len(follow), p=chances / chances.sum()))][1]
        return found[:n]

    def features_of(self, nodes: list[Node]) -> FloatArray:
        """Features `[i,k]` of beliefs with as many decisions left."""
        states, weights = np.array([node[1] for node in nodes]), np.stack([node[2] for node in nodes])
        found = as_floats(self.features(nodes[0][0], states, weights), "features", ParameterError)
        if found.ndim != 2 or len(found) != len(nodes):
            raise ParameterError(f"features of {len(nodes)} beliefs have shape {found.shape}; return [belief, feature]")
        return found

    def constraints(self, nodes: list[Node]) -> tuple[FloatArray, FloatArray]:
        """`left @ w ≥ right`, one for each belief and action."""
        rewards, left, right = self.task.models.rewards, [], []
        for node in nodes:
            own = self.features_of([node])[0]
            for a in self.actions(node):
                follow = self.after(node, int(a))
                later = np.zeros(len(own))
                if follow:
                    chances = np.array([chance for chance, _ in follow])
                    later = self.task.discount * chances @ self.features_of([child for _, child in follow])
                left.append(own - later)
                right.append(float(node[2] @ rewards[:, node[1], a]))
        return np.array(left), np.array(right)


def _key(node: Node) -> tuple[int | None, int, bytes]:
    return node[0], node[1], (np.round(node[2], _SAME) + 0.0).tobytes()


def default_features(task: FiniteTask) -> Features:
    """Told the model; the best of the models' own policies; how concentrated the belief is, and 1, both in units of
    what is left to be earned. Values of models are swept, and need not be exact: constraints say what holds."""
    models, discount = task.models, task.discount
    p, r, offered = models.dense(), models.rewards, models.available
    pool = min(_POLICIES, models.n_models)
    stages = task.horizon or int(np.ceil(np.log(1e-9) / np.log(max(discount, 0.5))))
    told, own = np.zeros(r.shape[:2]), np.zeros((pool, *r.shape[:2]))
    by_left: list[tuple[FloatArray, FloatArray, float]] = [(told, own, 0.0)]
    s = np.arange(models.n_states)
    for _ in range(stages):
        q = np.where(offered, r + discount * (p @ told[:, None, :, None])[..., 0], -np.inf)
        told, actions = q.max(axis=2), q[:pool].argmax(axis=2)
        own = np.stack(
            [r[:, s, a] + discount * (p[:, s, a] @ v[..., None])[..., 0] for a, v in zip(actions, own, strict=True)]
        )
        by_left.append((told, own, 1.0 + discount * by_left[-1][2]))

    def features(left: int | None, states: IntArray, weights: FloatArray) -> FloatArray:
        told, own, unit = by_left[-1 if left is None else left]
        known = (weights * told[:, states].T).sum(axis=1)
        best = np.einsum("im,jmi->ij", weights, own[:, :, states]).max(axis=1)
        return np.stack([known, best, unit * (weights**2).sum(axis=1), np.full(len(states), unit)], axis=1)

    return features
