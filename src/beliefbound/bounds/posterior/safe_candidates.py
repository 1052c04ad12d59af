"""Policies that may improve on behaviour: of the frequencies of a log, of its posterior, and mixtures with behaviour.

From frequencies (`planning.safe`): pessimistic improvements at several degrees of doubt, SPIBB, Soft-SPIBB, reward-
adjusted and robust MDPs. From the posterior: the expected MDP's policy, and those of MSBI (MMBI on models sampled from
it) and CADP. What would do more of something hardly tried than it may gives way to behaviour there.
"""

from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.bounds.posterior.candidates import Candidate
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.safe.adjusted import reward_adjusted, robust_l1
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.safe.pessimistic import bootstrapped, pessimistic
from beliefbound.planning.safe.soft_spibb import soft_spibb
from beliefbound.planning.safe.spibb import spibb
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy

_DOUBTS = (0.1, 0.25, 0.5, 1.0, 2.0)
_WORK = 1e8  # multiply-adds of MMBI's sweeps


def of_frequencies(data: Frequencies, *, discount: float, horizon: int | None) -> dict[str, FloatArray]:
    """Chances `[s,a]` or `[t,s,a]` by name, from the log alone."""
    when: dict[str, Any] = {"discount": discount, "horizon": horizon}
    made = {f"pessimistic, doubt {m:g}": pessimistic(data, doubt=m, **when) for m in _DOUBTS}
    made["half behaviour, half pessimistic"] = halved(data, made[f"pessimistic, doubt {_DOUBTS[-1]:g}"])
    for least in (5, 10):
        made[f"SPIBB, at most behaviour below {least} visits"] = spibb(data, least=least, **when)
    made["SPIBB, as behaviour below 5 visits"] = spibb(data, least=5, bound="equal", **when)
    made["reward-adjusted MDP"] = bootstrapped(data, reward_adjusted(data, penalty=_scale(data), **when))
    if horizon is None:
        made["Soft-SPIBB"] = soft_spibb(data, budget=0.5, discount=discount)
        made["robust MDP, L1"] = bootstrapped(data, robust_l1(data, distance=1.0, discount=discount))
    return made


def of_posterior(
    task: Task, data: Frequencies, expected: TablePolicy, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """The same from models of the posterior; `expected`: the expected MDP's policy."""
    plans = {"expected MDP": expected}
    size = data.n_states**2 * data.n_actions
    # Models, and transitions of one up to which drawing and planning take hundredths of a second
    for name, n, most, planned in (("MSBI", 32, 2_000_000, _swept), ("CADP", 8, 50_000, _ascended)):
        if size <= most:
            sample = ModelSource(task.belief).sample(n, rng)
            plans[name] = planned(FiniteTask(sample, task.start, task.discount, task.horizon))
    made = {name: bootstrapped(data, policy.chances(data.n_actions)) for name, policy in plans.items()}
    return made | {f"half behaviour, half {name}": halved(data, made[name]) for name in made if name == "MSBI"}


def _swept(task: FiniteTask) -> TablePolicy:
    return mmbi_plan(task, most_work=_WORK).policy


def _ascended(task: FiniteTask) -> TablePolicy:
    return cadp_plan(task).policy


def distinct(made: dict[str, FloatArray]) -> list[Candidate]:
    """As candidates, the first of those that are the same."""
    named = [Candidate(name, policy_of(chances)) for name, chances in made.items()]
    return list({c.policy: c for c in reversed(named)}.values())[::-1]


def halved(data: Frequencies, chances: FloatArray) -> FloatArray:
    """Half of the time as behaviour does."""
    return 0.5 * (chances + data.behaviour)


def policy_of(chances: FloatArray) -> TablePolicy:
    """A policy of chances `[s,a]` or `[t,s,a]`, deterministic where they are."""
    if (np.abs(chances - np.rint(chances)) < 1e-12).all():
        actions = chances.argmax(axis=-1)
        return MemorylessPolicy(actions) if chances.ndim == 3 else StationaryPolicy(actions)
    if chances.ndim == 3:
        return MemorylessPolicy(probabilities=chances)
    return StationaryPolicy(probabilities=chances)


def _scale(data: Frequencies) -> float:
    """A twentieth of the range of rewards."""
    return 0.05 * float(np.ptp(data.reward))
