"""What both sides of a bracket need of a belief with counts: its arrays, the range of values, the horizon to plan for.

A horizon so long that what follows is worth under 0.1% of the range of values is planned for as if it were infinite;
rewards are still counted to the horizon only. From above this is valid because with rewards at least `r_min`, `V_T ≤
V_∞ − r_min γ^T/(1−γ)`.

Rewards are divided by a power of two, `BAMDP.unit`, that makes them at most 1: tolerances of kernels are absolute.
"""

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ObservationError
from beliefbound.beliefs.capabilities import Capability, counted, lacking
from beliefbound.kernels.particles.rows import BAMDP
from beliefbound.kernels.posterior import Posterior
from beliefbound.planning.task import Task, made_once

_TAIL = 1e-3  # of the range of values: what a horizon may cut off and still count as none


def problem_of(task: Task, address: npt.NDArray[np.uint64], *, horizon: int | None) -> BAMDP:
    """The belief as arrays over pairs (state, action), with particles at `address`, to be planned for `horizon`."""
    posterior = posterior_of(task)
    if posterior is None:
        raise lacking(task.belief, Capability.COUNT, "particles of the posterior")
    available = np.array(task.belief.available).ravel()
    largest = float(np.abs(posterior.paid[:, available]).max())
    unit = 2.0 ** np.ceil(np.log2(largest)) if largest > 0.0 else 1.0  # a power of two: nothing is rounded
    return BAMDP(
        posterior=posterior._replace(paid=posterior.paid / unit),
        available=available,
        n_states=task.belief.n_states,
        discount=float(task.discount),
        horizon=-1 if horizon is None else int(horizon),
        address=address,
        keep=np.ones(len(available)),
        credit=np.zeros(len(available)),
        unit=float(unit),
    )


@made_once
def posterior_of(task: Task) -> Posterior | None:
    """The belief as counts for kernels; `None` where it has none."""
    return counted(task.belief)


def reward_range(problem: BAMDP) -> tuple[float, float]:
    """Least and largest reward that an available action can pay, in the problem's unit."""
    paid = problem.posterior.paid[:, problem.available]
    return float(paid.min()), float(paid.max())


def planned(discount: float, horizon: int | None) -> int | None:
    """The horizon to plan for: none where what comes after is worth less than 0.1% of the range of values."""
    if horizon is None or (discount < 1.0 and discount**horizon <= _TAIL):
        return None
    return horizon


def tail_correction(task: Task, problem: BAMDP) -> float:
    """What an infinite-horizon upper bound may be lowered by for a horizon: `r_min γ^T/(1−γ)`."""
    if task.horizon is None or problem.horizon >= 0:
        return 0.0
    return float(reward_range(problem)[0] * task.discount**task.horizon / (1.0 - task.discount))


def arrival(problem: BAMDP, pair: int, column: int) -> int:
    """The next state that a column of a pair shows."""
    j = column % problem.posterior.alpha.shape[1]
    return int(problem.posterior.arrive[pair, j]) if problem.posterior.tied else j


def column_of(problem: BAMDP, state: int, action: int, reward: float | None, next_: int) -> tuple[int, int]:
    """`(pair, column)` of what a step showed; raises where the belief rules it out."""
    posterior, pair = problem.posterior, state * problem.posterior.n_actions + action
    inside = 0 <= state < problem.n_states and 0 <= action < posterior.n_actions and 0 <= next_ < problem.n_states
    if inside and problem.available[pair]:
        row, j = (posterior.row[pair], posterior.outcome[pair, next_]) if posterior.tied else (pair, next_)
        if j >= 0 and posterior.alpha[row, j] > 0.0:
            if len(posterior.reward) == 1:
                return pair, int(j)
            if reward is None:
                raise ObservationError("no reward was given, but the belief learns from rewards; pass the reward seen")
            paid = posterior.paid[:, pair].reshape(len(posterior.reward), -1)  # [k,j], or [k,1]
            paid = paid[:, j if paid.shape[1] > 1 else 0]
            k = int(np.abs(paid - reward / problem.unit).argmin())
            if np.isclose(paid[k], reward / problem.unit, rtol=1e-9, atol=1e-12):
                return pair, int(k * posterior.alpha.shape[1] + j)
    raise ObservationError(
        f"state {state}, action {action}, reward {reward}, next state {next_} is outside the belief's support"
    )
