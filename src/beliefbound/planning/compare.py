"""Memoryless planners side by side: planned on one belief, evaluated on another.

The comparison of the multi-model literature: policies come from `training`, values are means over `test`, exact in
both. "MVP" there is the expected MDP's policy, "weight-select-update" is MMBI, and the oracle knows the model (`E
max`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ParameterError
from beliefbound.evaluation import evaluate
from beliefbound.mdp import MDP
from beliefbound.planning.cadp import cadp
from beliefbound.planning.mmbi import induct, mmbi
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.plan import start_of
from beliefbound.policy import MemorylessPolicy
from beliefbound.validation import FloatArray, check_count, check_discount


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
    """Rows for MVP, MMBI, CADP from MMBI, and the oracle, at each horizon.

    Args:
      training: the belief the policies are planned on.
      test: the belief they are evaluated on; optional.
      discount, horizons: of the problem.
      initial: start distribution or state; default: the training belief's, else uniform.
      expected: the MDP that MVP solves; default: `training.mean()`. Published tables use `ModelFolder.average`.
      restarts: add a row for CADP with all its restarts.

    >>> belief = FiniteBelief([[[[1.0]]]], [[[1.0]]])
    >>> [(row.method, row.training) for row in compare_memoryless(belief, discount=0.5, horizons=[2])]
    [('MVP', 1.5), ('MMBI', 1.5), ('CADP', 1.5), ('oracle', 1.5)]
    """
    if test is not None and test.rewards.shape[1:] != training.rewards.shape[1:]:
        raise ParameterError(
            f"training has (states, actions) = {training.rewards.shape[1:]}, test has {test.rewards.shape[1:]}"
        )
    start = start_of(training, initial)
    mean = (training.mean() if expected is None else expected).models
    rows = []
    for asked in horizons:
        horizon = check_count(asked, "horizon")
        gamma = check_discount(discount, horizon)
        wsu = mmbi(training, discount=gamma, horizon=horizon).policy
        policies = {
            "MVP": MemorylessPolicy(induct(mean, np.ones(1), gamma, horizon)[0]),
            "MMBI": wsu,
            "CADP": cadp(training, discount=gamma, horizon=horizon, initial=start, start=wsu, restarts=False).policy,
        }
        if restarts:
            policies["CADP, restarts"] = cadp(training, discount=gamma, horizon=horizon, initial=start).policy
        for method, policy in policies.items():
            values = [
                None if belief is None else float(belief.weights @ evaluate(policy, belief, discount=gamma) @ start)
                for belief in (training, test)
            ]
            rows.append(_row(method, horizon, values))
        oracle = [None if belief is None else _e_max(belief, gamma, horizon, start) for belief in (training, test)]
        rows.append(_row("oracle", horizon, oracle))
    return rows


def _e_max(belief: FiniteBelief, discount: float, horizon: int, start: FloatArray) -> float:
    return float(belief.weights @ optimal_values(belief, discount=discount, horizon=horizon).values @ start)


def _row(method: str, horizon: int, values: list[float | None]) -> Comparison:
    assert values[0] is not None
    return Comparison(method, horizon, values[0], values[1])
