"""Stationary memoryless policies by exact single swaps.

`ρ(π) = Σ_m w_m p0·(I − γ P_m^π)^{-1} r_m^π` is not linear in one state's choice, but the exact effect of changing one
is a rank-one formula (`kernels.planning.swaps`), so every one of the `S·(A−1)` swaps is priced for twice the cost of a
sweep. The best is taken until none improves `ρ` beyond rounding. `(I − γ P_m^π)^{-1}` is updated by rank one and
refactored every `_REFACTOR` swaps and again before the search may stop, so the last word is on fresh factors.

Guarantee: `ρ` never falls, the result is a local optimum under single swaps (the best stationary policy may be
better), and its value is computed by a linear solve: a lower bound on the Bayes-optimal value of the belief. Memory
`M·S²`.
"""

from typing import Any

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ParameterError
from beliefbound.kernels.planning import swaps as kernel
from beliefbound.models import Dense
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.plan import Plan, plan_for
from beliefbound.planning.starts import chosen_models
from beliefbound.policy import StationaryPolicy
from beliefbound.validation import FloatArray, IntArray

_REFACTOR = 50
_MAX_SWAPS = 100_000
_MAX_BYTES = 4 << 30
_ROUNDING = 1e-11  # relative to the largest value the problem allows


def best_by_swaps(
    belief: FiniteBelief, discount: float, p0: FloatArray, start: StationaryPolicy | None, restarts: bool
) -> Plan:
    """The best local optimum over the starts; see `cadp`, which calls this without a horizon."""
    needed = 8 * belief.n_models * belief.n_states**2
    if needed > _MAX_BYTES:
        raise ParameterError(
            f"exact swaps on {belief.n_models} models of {belief.n_states} states need {needed / 2**30:.1f} GiB for "
            f"their inverses; pass horizon=... (for example truncation_horizon) or fewer models"
        )
    search = SwapSearch(belief, discount, p0)
    best: tuple[float, IntArray, str, int, float] | None = None
    tried: set[bytes] = set()
    for name, actions in _starts(belief, discount, start, restarts):
        if actions.tobytes() in tried:
            continue
        tried.add(actions.tobytes())
        found, count, left = search.climb(actions)
        if best is None or search.rho() > best[0] + search.rounding:
            best = (search.rho(), found, name, count, left)
    assert best is not None
    _, found, name, count, left = best
    return plan_for(
        StationaryPolicy(found),
        belief,
        discount=discount,
        horizon=None,
        converged=left <= search.rounding,
        residual=max(0.0, left) if left > search.rounding else 0.0,
        note=f"best of {len(tried)} starts: from {name}, {count} swaps",
    )


def _starts(
    belief: FiniteBelief, discount: float, start: StationaryPolicy | None, restarts: bool
) -> list[tuple[str, IntArray]]:
    starts: list[tuple[str, IntArray]] = []
    if start is not None:
        starts.append(("the given policy", np.array(start.actions)))
    if start is None or restarts:
        starts.append(("MMBI", np.array(mmbi(belief, discount=discount).policy.actions)))
    if restarts:
        starts.append(("the expected MDP", optimal_values(belief.mean(), discount=discount).actions[0]))
        chosen = chosen_models(belief, belief.n_states)
        own = optimal_values(belief.models.select(chosen), discount=discount).actions
        starts.extend((f"the optimum of model {m}", actions) for m, actions in zip(chosen, own, strict=True))
    return starts


class SwapSearch:
    """Best-improvement search over single swaps on one belief and start distribution."""

    def __init__(self, belief: FiniteBelief, discount: float, p0: FloatArray) -> None:
        self.models, self.discount = belief.models, discount
        self.weights, self.p0 = np.array(belief.weights), np.array(p0)
        n_models, n_states, n_actions = self.models.rewards.shape
        self.n = np.empty((n_models, n_states, n_states))
        self.v = np.empty((n_models, n_states))
        self.gain = np.empty((n_states, n_actions))
        self.rounding = _ROUNDING * max(abs(x) for x in self.models.reward_range) / (1.0 - discount)

    def rho(self) -> float:
        """The objective of the policy the factors belong to."""
        return float(self.weights @ self.v @ self.p0)

    def factor(self, actions: IntArray) -> None:
        """Fresh inverses and values for `actions [s]`."""
        models, states = self.models, np.arange(self.models.n_states)
        identity = np.eye(models.n_states)
        chances = np.zeros(models.rewards.shape[1:])
        chances[states, actions] = 1.0
        for m in range(models.n_models):
            chain: Any = models.transitions.under(m, chances)
            system = identity - self.discount * (chain if isinstance(models.transitions, Dense) else chain.toarray())
            self.n[m] = np.linalg.inv(system).T
            self.v[m] = models.rewards[m, states, actions] @ self.n[m]

    def gains(self) -> FloatArray:
        """What each swap `[s,a]` adds to the objective."""
        kept = self.models.transitions
        common = (
            self.models.rewards,
            self.weights,
            self.models.available,
            self.discount,
            self.p0,
            self.n,
            self.v,
            self.gain,
        )
        if isinstance(kept, Dense):
            kernel.gains_rows(kept.array, *common)
        else:
            kernel.gains_csr(kept.matrix.indptr, kept.matrix.indices, kept.matrix.data, *common)
        return self.gain

    def swap(self, state: int, action: int) -> None:
        """Update factors and values for one swap."""
        models = self.models
        rows = np.stack([models.transitions.row(m, state, action) for m in range(models.n_models)])
        kernel.swap(rows, np.ascontiguousarray(models.rewards[:, state, action]), self.discount, state, self.n, self.v)

    def climb(self, actions: IntArray) -> tuple[IntArray, int, float]:
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
