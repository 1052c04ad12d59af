"""Stationary memoryless policies by exact single swaps.

`ρ(π) = Σ_m w_m p0·(I − γ P_m^π)^{-1} r_m^π` is not linear in one state's choice, but the exact effect of changing one
is a rank-one formula (`kernels.planning.swaps`), so every one of the `S·(A−1)` swaps is priced for twice the cost of a
sweep. The best is taken until none improves `ρ` beyond rounding. `(I − γ P_m^π)^{-1}` is updated by rank one and
refactored every `_REFACTOR` swaps and again before the search may stop, so the last word is on fresh factors.

Guarantee: `ρ` never falls, the result is a local optimum under single swaps (the best stationary policy may be
better), and its value is computed by a linear solve: a lower bound on the Bayes-optimal value of the belief. Memory
`M·S²`.
"""

import numpy as np

from beliefbound.base import limits
from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.planning import swaps as kernel
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_actions
from beliefbound.planning.plan import Plan, plan_for
from beliefbound.planning.starts import chosen_models
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.policy.naming import names_of

_REFACTOR = 50  # swaps between fresh inverses: a rank-one update is S times cheaper and loses a few digits each
_MAX_SWAPS = 100_000
_ROUNDING = 1e-11  # relative to the largest value the problem allows


def best_by_swaps(
    task: FiniteTask, start: StationaryPolicy | None, restarts: bool, mmbi: TablePolicy | None = None
) -> Plan:
    """The best local optimum over the starts; see `cadp`, which calls this without a horizon."""
    models = task.models
    needed = 8 * models.n_models * models.n_states**2
    if needed > limits.INVERSE_BYTES:
        raise ParameterError(
            f"exact swaps on {models.n_models} models of {models.n_states} states need {needed / 2**30:.1f} GiB for "
            f"their inverses; pass horizon=... (for example truncation_horizon) or fewer models"
        )
    search = SwapSearch(task)
    best: tuple[float, IntArray, str, int, float] | None = None
    tried: set[bytes] = set()
    for name, actions in _starts(task, start, restarts, mmbi):
        if actions.tobytes() in tried:
            continue
        tried.add(actions.tobytes())
        found, count, left = search.ascend(actions)
        if best is None or search.rho() > best[0] + search.rounding:
            best = (search.rho(), found, name, count, left)
    assert best is not None
    _, found, name, count, left = best
    return plan_for(
        StationaryPolicy(found),
        task,
        converged=left <= search.rounding,
        residual=max(0.0, left) if left > search.rounding else 0.0,
        note=f"best of {len(tried)} starts: from {name}, {count} swaps",
    )


def _starts(
    task: FiniteTask, start: StationaryPolicy | None, restarts: bool, mmbi: TablePolicy | None
) -> list[tuple[str, IntArray]]:
    starts: list[tuple[str, IntArray]] = []
    if start is not None:
        starts.append(("the given policy", np.array(start.actions)))
    if start is None or restarts:
        starts.append(("MMBI", np.array((mmbi or mmbi_plan(task).policy).actions)))
    if restarts:
        starts.append(("the expected MDP", np.array(expected_optimum(task).actions)))
        chosen, called = chosen_models(task.belief, task.belief.n_states), names_of(task.belief).the_model
        own = optimal_actions(task, chosen)
        starts.extend((f"the optimum of {called(m)}", actions) for m, actions in zip(chosen, own, strict=True))
    return starts


class SwapSearch:
    """Best-improvement search over single swaps on one task without a horizon."""

    def __init__(self, task: FiniteTask) -> None:
        self.models, self.discount = task.models, task.discount
        self.weights, self.p0 = np.array(task.weights), np.array(task.start)
        n_models, n_states, n_actions = self.models.rewards.shape
        self.n = np.empty((n_models, n_states, n_states))
        self.v = np.empty((n_models, n_states))
        self.gain = np.empty((n_states, n_actions))
        # A gain is a product with an inverse, whose condition number is 2/(1−γ) at most.
        lost = 16.0 * float(np.finfo(np.float64).eps) / (1.0 - task.discount)
        self.rounding = max(_ROUNDING, lost) * task.largest_value

    def rho(self) -> float:
        """The objective of the policy the factors belong to."""
        return float(self.weights @ self.v @ self.p0)

    def factor(self, actions: IntArray) -> None:
        """Fresh inverses and values for `actions [s]`."""
        models, states = self.models, np.arange(self.models.n_states)
        models.invert(actions, self.discount, self.n)
        for m in range(models.n_models):
            self.v[m] = models.rewards[m, states, actions] @ self.n[m]

    def gains(self) -> FloatArray:
        """What each swap `[s,a]` adds to the objective."""
        models = self.models
        objective = kernel.Objective(
            models.rewards, self.weights, models.available, self.discount, self.p0, self.n, self.v
        )
        models.swap_gains(objective, self.gain)
        return self.gain

    def swap(self, state: int, action: int) -> None:
        """Update factors and values for one swap."""
        rewards = np.ascontiguousarray(self.models.rewards[:, state, action])
        kernel.swap(self.models.rows(state, action), rewards, self.discount, state, self.n, self.v)

    def ascend(self, actions: IntArray) -> tuple[IntArray, int, float]:
        """From `actions [s]` to a local optimum: actions, number of swaps, and the gain of the best swap left."""
        actions = actions.copy()
        self.factor(actions)
        fresh, left = True, np.inf
        count = 0
        while count < _MAX_SWAPS:
            gain = self.gains()
            state, action = divmod(int(np.argmax(gain)), gain.shape[1])
            left = float(gain[state, action])
            if left <= self.rounding:
                if fresh:
                    break
                self.factor(actions)
                fresh = True
                continue
            self.swap(state, action)
            actions[state] = action
            count += 1
            fresh = count % _REFACTOR == 0
            if fresh:
                self.factor(actions)
        return actions, count, left
