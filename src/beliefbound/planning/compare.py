"""Memoryless planners side by side: planned on one belief, evaluated on another.

The comparison of the multi-model literature: policies come from `training`, values are means over `test`, exact in
both. What is called "MVP" there is the expected MDP's policy, "weight-select-update" is MMBI, and the oracle knows the
model (`E max`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import FloatArray, as_flag, check_kind, check_sequence
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.models.mdp import MDP
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, TablePolicy


@dataclass(frozen=True)
class Comparison:
    """One method at one horizon: its expected value from the start distribution, on each belief."""

    method: str
    horizon: int
    training: float
    test: float | None


def compare_memoryless(
    training: FiniteBelief,
    test: FiniteBelief | None = None,
    *,
    discount: float,
    horizons: Sequence[int],
    initial: FloatArray | int | None = None,
    expected: MDP | None = None,
    restarts: bool = False,
) -> list[Comparison]:
    """Rows for the expected MDP's policy, MMBI, CADP from MMBI, and the oracle, at each horizon.

    Args:
      training: the belief the policies are planned on.
      test: the belief they are evaluated on; optional.
      discount, horizons: of the problem.
      initial: start distribution or state; default: the training belief's, else uniform.
      expected: the expected MDP; default: `training.mean()`. Published tables use `ModelFolder.average`.
      restarts: add a row for CADP with all its restarts.

    >>> belief = FiniteBelief([[[[1.0]]]], [[[1.0]]])
    >>> [(row.method, row.training) for row in compare_memoryless(belief, discount=0.5, horizons=[2])]
    [('expected MDP', 1.5), ('MMBI', 1.5), ('CADP', 1.5), ('oracle', 1.5)]
    """
    for name, belief in (("training", training), ("test", test)):
        if belief is not None or name == "training":
            check_kind(belief, FiniteBelief, name, ParameterError, fix="give a FiniteBelief")
    if expected is not None:
        check_kind(expected, MDP, "expected", ParameterError, fix="give an MDP, such as training.mean()")
    horizons = check_sequence(horizons, "horizons", ParameterError, fix="give a list of numbers of decisions")
    restarts = as_flag(restarts, "restarts")
    if test is not None and test.rewards.shape[1:] != training.rewards.shape[1:]:
        raise ParameterError(
            f"training has (states, actions) = {training.rewards.shape[1:]}, test has {test.rewards.shape[1:]}"
        )
    task = FiniteTask.of(training, discount=discount, horizon=1, initial=initial)
    tests = None if test is None else FiniteTask.of(test, discount=discount, horizon=1, initial=task.start)
    mean = (training.mean() if expected is None else expected).models
    rows = []
    for asked in horizons:
        horizon = check_horizon(asked, task.models.n_entries, 8 * task.models.n_states)
        here = task.lasting(horizon)
        both = [here, None if tests is None else tests.lasting(horizon)]
        wsu = mmbi_plan(here).policy
        policies: dict[str, TablePolicy] = {
            "expected MDP": MemorylessPolicy(mean.induct_greedy(np.ones(1), here.discount, horizon)[0]),
            "MMBI": wsu,
            "CADP": cadp_plan(here, start=wsu, restarts=False).policy,
        }
        if restarts:
            policies["CADP, restarts"] = cadp_plan(here).policy
        for method, policy in policies.items():
            rows.append(_row(method, horizon, [None if each is None else each.policy_value(policy) for each in both]))
        rows.append(_row("oracle", horizon, [None if each is None else _e_max(each) for each in both]))
    return rows


def _e_max(task: FiniteTask) -> float:
    return task.value(optimal_values(task.belief, discount=task.discount, horizon=task.horizon).values)


def _row(method: str, horizon: int, values: list[float | None]) -> Comparison:
    assert values[0] is not None
    return Comparison(method, horizon, values[0], values[1])
