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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from beliefbound.base.errors import PolicyError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import FloatArray, IntArray, as_flag
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.models.evaluation import check_fits
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.plan import Plan, plan_of
from beliefbound.planning.starts import chosen_models
from beliefbound.planning.swaps import best_by_swaps
from beliefbound.planning.task import FiniteTask, made_once_for_models
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.policy.naming import names_of

_MAX_SWEEPS = 10_000  # of one ascent; a handful is usual
_OWN_BYTES = 1 << 26  # that every model's own policy may take to be kept


def cadp(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    start: TablePolicy | None = None,
    restarts: bool = True,
    device: Any = None,
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
      device: where to sweep, as for `FiniteBelief.on`. Default: where the models are.

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
    restarts = as_flag(restarts, "restarts")
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    if device is not None:
        task = replace(task, belief=task.belief.on(device))
    return cadp_plan(task, start=start, restarts=restarts)


def cadp_plan(
    task: FiniteTask,
    *,
    start: TablePolicy | None = None,
    restarts: bool = True,
    mmbi: TablePolicy | None = None,
) -> Plan:
    """CADP for a task; see `cadp`. MMBI's policy is taken where it is known."""
    if start is not None:
        check_fits(start, task.models)
        if not start.is_deterministic:
            raise PolicyError("the start of CADP must be deterministic; this policy is stochastic")
    if task.horizon is None:
        if start is not None and start.horizon is not None:
            raise PolicyError("without a horizon CADP starts from a StationaryPolicy; use .first_step()")
        return best_by_swaps(task, start, restarts, mmbi)
    check_horizon(task.horizon, task.models.n_entries, 8 * task.models.n_models * task.models.n_states)
    ascent = CoordinateAscent(task)
    best: Ascended | None = None
    tried: set[bytes] = set()
    for name, actions in _starts(task, task.horizon, start, restarts, mmbi):
        if actions.tobytes() in tried:
            continue
        tried.add(actions.tobytes())
        found = ascent.ascend(actions, name)
        if best is None or found.rho > best.rho + task.rounding:
            best = found
    assert best is not None
    return plan_of(
        MemorylessPolicy(best.actions),
        best.values,
        task,
        converged=best.converged,
        residual=best.residual,
        note=f"best of {len(tried)} starts: from {best.start}, {best.sweeps} sweeps",
    )


def _starts(
    task: FiniteTask, horizon: int, start: TablePolicy | None, restarts: bool, mmbi: TablePolicy | None
) -> list[tuple[str, IntArray]]:
    """Names and actions `[t,s]` of the policies to start from."""
    models, starts = task.models, list[tuple[str, IntArray]]()
    if start is not None:
        if isinstance(start, StationaryPolicy):
            start = start.repeat(horizon)
        if start.horizon != horizon:
            raise PolicyError(f"the start has {start.horizon} stages but the horizon is {horizon}")
        starts.append(("the given policy", np.array(start.actions)))
    if start is None or restarts:
        known = models.induct_greedy(task.weights, task.discount, horizon)[0] if mmbi is None else mmbi.actions
        starts.append(("MMBI", np.array(known)))
    if restarts:
        starts.append(("the expected MDP", np.array(expected_optimum(task).actions)))
        chosen = chosen_models(task.belief, horizon)
        if 2 * len(chosen) >= models.n_models and 8 * horizon * models.n_models * models.n_states <= _OWN_BYTES:
            own = _own_policies(task)[:, chosen]
        else:
            own, _ = models.select(chosen).induct_own(task.discount, horizon)
        called = names_of(task.belief).the_model
        starts.extend((f"the optimum of {called(m)}", np.ascontiguousarray(own[:, i])) for i, m in enumerate(chosen))
    return starts


@made_once_for_models
def _own_policies(task: FiniteTask) -> IntArray:
    """`[t,m,s]`: the optimal actions of every model by itself."""
    assert task.horizon is not None
    return task.models.induct_own(task.discount, task.horizon)[0]


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


class CoordinateAscent:
    """Coordinate ascent on one task with a horizon, from any number of starts."""

    def __init__(self, task: FiniteTask) -> None:
        assert task.horizon is not None
        self.task, self.horizon, self.rounding = task, task.horizon, task.rounding
        self.shape = task.models.rewards.shape[:2]
        self.stages = task.models.ascent(task.weights, task.start, task.discount, task.horizon, task.rounding)

    def ascend(self, actions: IntArray, start: str) -> Ascended:
        """Ascend from `actions [t,s]` until `rho` stops; the argument is left alone."""
        actions = actions.copy()
        values: FloatArray = np.empty(self.shape)
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
        return self.stages.sweep(actions, first)
