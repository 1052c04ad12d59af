"""CADP: coordinate ascent on memoryless policies (Su & Petrik, UAI 2023).

MMBI weighs the models equally at every stage and state, however the state was reached. CADP conditions them on the
policy so far. With `b_1(m,s) = w_m p0(s)` and `b_{k+1}(m,t) = Σ_s b_k(m,s) P_m(t|s,π_k(s))` under the current policy,
backwards

    π_k(s) ← argmax_a Σ_m b_k(m,s) Q_m(s,a),   Q_m(s,a) = r_m(s,a) + γ Σ_t P_m(t|s,a) V_m(t),   V_m(s) = Q_m(s,π_k(s)).

Given the other stages, `ρ(π) = Σ_m w_m p0·V_m` is linear in stage `k`'s choices with exactly these coefficients, so
every stage's step is an exact line of ascent: `ρ` never falls. States that are never met (`Σ_m b_k = 0`) use `w`. A
choice leaves the incumbent only for a gain beyond rounding, ties go to the lowest action, and the search stops when
`ρ` stops.

Guarantee: `ρ` is the exact value of the returned policy, hence a lower bound on the Bayes-optimal value of the
belief; it is never below the start's. The policy is optimal in each stage given the others, not globally;
`best_memoryless` proves that. Cost: `M·S²·A` multiply-adds a stage and sweep like MMBI, plus `1/A` of it for the
occupancies.

Without a horizon the policy is stationary, `ρ` is no longer linear in a choice, and `planning.swaps` ascends instead.
"""

from dataclasses import dataclass

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ParameterError, PolicyError
from beliefbound.evaluation import check_fits
from beliefbound.kernels.planning import occupancy
from beliefbound.kernels.planning.simd import copied, zeros
from beliefbound.models import Dense
from beliefbound.planning.mmbi import induct, use_lanes
from beliefbound.planning.plan import LOWER_BOUND, Plan, uniform_if_none
from beliefbound.planning.starts import chosen_models, expected_policy, own_policies
from beliefbound.planning.swaps import best_by_swaps
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, check_initial, frozen

_ROUNDING = 1e-12  # relative to the largest value the problem allows
_MAX_SWEEPS = 10_000


def cadp(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    start: TablePolicy | None = None,
    restarts: bool = True,
) -> Plan:
    """A locally optimal memoryless policy for a finite belief and start distribution, never worse than MMBI.

    Args:
      belief: models and weights.
      discount: in [0, 1]; below 1 when there is no horizon.
      horizon: number of decisions; the policy is then time-indexed, `[t,s]`. `None`: for ever, with a stationary policy
        that no change of one state's action improves.
      initial: start distribution `[s]` or start state; default: the belief's own, else uniform over states.
      start: deterministic policy to start from; a stationary one is repeated. Default: MMBI.
      restarts: also start from MMBI, from the expected MDP's policy and from the models' own optimal policies (see
        `planning.starts` for how many), and keep the best. `False`: only from `start`.

    Returns:
      A `Plan` whose `value(initial)` is never below that of any policy it started from; `plan.note` names the start
      that won. With `restarts=True` those include MMBI.

    Only model 0 leads from state 0 to state 1, where betting pays 6 in model 0 and costs 9 in model 1. MMBI does not
    see that whoever is in state 1 knows the model:

    >>> home, bet, end = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    >>> models = [[[home, bet], [end, end], [end, end]], [[home, end], [end, end], [end, end]]]
    >>> rewards = [[[1.0, 0.0], [0.0, 6.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -9.0], [0.0, 0.0]]]
    >>> belief = FiniteBelief(models, rewards, reward_signal="deterministic", initial=0)
    >>> plan = cadp(belief, discount=1.0, horizon=2)
    >>> plan.value(), plan.note
    (3.0, 'best of 2 starts: from the optimum of model 0, 2 sweeps')
    >>> from beliefbound.planning.mmbi import mmbi
    >>> mmbi(belief, discount=1.0, horizon=2).value()
    2.0
    """
    discount = check_discount(discount, horizon)
    given = belief.initial if initial is None else check_initial(initial, belief.n_states, ParameterError)
    p0 = uniform_if_none(given, belief.n_states)
    if start is not None:
        check_fits(start, belief.models)
        if not start.is_deterministic:
            raise PolicyError("the start of CADP must be deterministic; this policy is stochastic")
    if horizon is None:
        if isinstance(start, MemorylessPolicy):
            raise PolicyError("without a horizon CADP starts from a StationaryPolicy; use .first_step()")
        return best_by_swaps(belief, discount, p0, start, restarts)
    horizon = check_count(horizon, "horizon")
    ascent = Ascent(belief, discount, horizon, p0)
    best: Ascended | None = None
    tried: set[bytes] = set()
    for name, actions in _starts(belief, discount, horizon, start, restarts):
        if actions.tobytes() in tried:
            continue
        tried.add(actions.tobytes())
        found = ascent.climb(actions, name)
        if best is None or found.rho > best.rho + ascent.rounding:
            best = found
    assert best is not None
    return Plan(
        policy=MemorylessPolicy(best.actions),
        values=frozen(belief.weights @ best.values),
        model_values=frozen(np.ascontiguousarray(best.values)),
        belief=belief,
        discount=discount,
        horizon=horizon,
        converged=best.converged,
        residual=best.residual,
        guarantee=LOWER_BOUND,
        note=f"best of {len(tried)} starts: from {best.start}, {best.sweeps} sweeps",
    )


def _starts(
    belief: FiniteBelief, discount: float, horizon: int, start: TablePolicy | None, restarts: bool
) -> list[tuple[str, IntArray]]:
    """Names and actions `[t,s]` of the policies to start from."""
    starts: list[tuple[str, IntArray]] = []
    if start is not None:
        if isinstance(start, StationaryPolicy):
            start = start.repeat(horizon)
        if start.horizon != horizon:
            raise PolicyError(f"the start has {start.horizon} stages but the horizon is {horizon}")
        starts.append(("the given policy", np.array(start.actions)))
    if start is None or restarts:
        starts.append(("MMBI", induct(belief.models, belief.weights, discount, horizon)[0]))
    if restarts:
        starts.append(("the expected MDP", expected_policy(belief, discount, horizon)))
        chosen = chosen_models(belief, horizon)
        own, _ = own_policies(belief.models.select(chosen), discount, horizon)
        starts.extend((f"the optimum of model {m}", np.ascontiguousarray(own[:, i])) for i, m in enumerate(chosen))
    return starts


@dataclass(frozen=True, eq=False)
class Ascended:
    """Where one ascent ended: `actions [t,s]`, `values [m,s]`, their `rho`, and how it got there."""

    actions: IntArray
    values: FloatArray
    rho: float
    start: str
    sweeps: int
    converged: bool
    residual: float
    history: tuple[float, ...]


class Ascent:
    """Coordinate ascent on one belief, horizon and start distribution, from any number of starts.

    Holds the models in the layout the sweeps want (`use_lanes` decides as for MMBI) and the occupancy arrays.
    """

    def __init__(self, belief: FiniteBelief, discount: float, horizon: int, p0: FloatArray) -> None:
        self.models, self.discount, self.horizon = belief.models, discount, horizon
        self.weights, self.p0 = np.array(belief.weights), np.array(p0)
        stages = horizon if discount == 1.0 else (1.0 - discount**horizon) / (1.0 - discount)
        self.rounding = _ROUNDING * stages * max(abs(x) for x in self.models.reward_range)
        n_models, n_states, n_actions = self.models.rewards.shape
        self.lanes = use_lanes(self.models)
        self.mass: FloatArray
        if self.lanes:
            self.b, self.mass = zeros(horizon, n_states, n_models), np.empty((horizon, n_states))
            met = self.p0 * self.weights.sum() > occupancy.NEGLIGIBLE
            self.mass[0] = np.where(met, self.p0 * self.weights.sum(), 0.0)
            self.b[0] = np.where(met, self.p0, 1.0)[:, None] * self.weights
            self.p = self.models.transitions.lanes()
            self.r = copied(np.moveaxis(self.models.rewards, 0, -1))
        else:
            self.b, self.mass = np.empty((horizon, n_models, n_states)), np.empty(n_states)
            self.b[0] = self.weights[:, None] * self.p0
            self.q = np.empty_like(self.models.rewards)
            self.mixed = np.empty((n_states, n_actions))

    def climb(self, actions: IntArray, start: str) -> Ascended:
        """Ascend from `actions [t,s]` until `rho` stops; the argument is left alone."""
        actions = actions.copy()
        values = np.empty((self.models.n_models, self.models.n_states))
        history: list[float] = []
        first, gain = 0, np.inf
        while gain > self.rounding and len(history) < _MAX_SWEEPS:
            old_actions, old_values = actions.copy(), values
            first, rho, values = self.sweep(actions, first)
            gain = 0.0 if first == self.horizon else rho - history[-1] if history else np.inf
            if gain < 0.0:  # by rounding: what came before is at least as good
                actions, values, rho = old_actions, old_values, history[-1]
            history.append(rho)
        return Ascended(
            actions=actions,
            values=values,
            rho=history[-1],
            start=start,
            sweeps=len(history),
            converged=gain <= self.rounding,
            residual=max(0.0, gain),
            history=tuple(history),
        )

    def sweep(self, actions: IntArray, first: int) -> tuple[int, float, FloatArray]:
        """Occupancies of `actions` after stage `first`, then one improvement of every stage, in place.

        Returns the first stage that changed (the horizon when none did), the new `rho`, and the values `[m,s]`.
        """
        models = self.models
        if self.lanes:
            v = np.empty((models.n_states, models.n_models))
            first, rho = occupancy.sweep_lanes(
                self.p,
                self.r,
                self.weights,
                models.available,
                self.discount,
                self.rounding,
                self.p0,
                first,
                self.b,
                self.mass,
                actions,
                v,
            )
            return first, rho, v.T
        self._forward(actions, first)
        values = np.zeros((models.n_models, models.n_states))
        first = self.horizon
        for k in range(self.horizon - 1, -1, -1):
            models.backup(values, self.discount, self.q)
            if occupancy.improve_stage(
                self.q,
                self.weights,
                models.available,
                self.b[k],
                self.rounding,
                self.mixed,
                self.mass,
                actions[k],
                values,
            ):
                first = k
        return first, float(self.weights @ values @ self.p0), values

    def _forward(self, actions: IntArray, first: int) -> None:
        """Occupancies in the rows and csr layouts."""
        kept = self.models.transitions
        if isinstance(kept, Dense):
            occupancy.forward_rows(kept.array, actions, first, self.b)
        else:
            matrix = kept.matrix
            occupancy.forward_csr(
                matrix.indptr, matrix.indices, matrix.data, self.models.n_actions, actions, first, self.b
            )
