"""`check_policy`: what every policy must do, ours or yours, as one function to call in a test.

1. Actions are whole numbers that the state offers; asked twice, a policy that draws nothing says the same.
2. Equal seeds give equal behaviour: after a reset, from a `fresh` one, and while another walks.
3. The walk ends with the horizon, and what cannot be is refused.
4. What it says of itself is true: as a table, as a controller, or by its values on models, it is worth what it earns
   in simulation.
5. From its file it comes back the same.

`base.kits` has how means are compared.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefboundError
from beliefbound.base.kits import assert_mean, global_state
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.drawn.walks import walks as simulated
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.policy_files import load_policy
from beliefbound.kernels.random import inverse_cdf
from beliefbound.planning.task import FiniteTask

_NEEDED = ("reset", "act", "observe")
_WALKS = 500


def check_policy(
    make: Callable[[], Any],
    belief: FiniteBelief,
    *,
    discount: float = 0.9,
    initial: Any = None,
    steps: int = 40,
    walks: int = _WALKS,
) -> None:
    """Raise `AssertionError`, saying what is wrong, unless the policy keeps the protocol and its word.

    Args:
      make: makes the policy, at its start.
      belief: models that it is tried on; what a step shows of rewards must be one of finitely many values.
      discount, initial: of the problem that it is valued for; its horizon is its own.
      steps: length of the walks tried; a policy with a horizon has as many as that.
      walks: simulated, where it says what it is worth.

    >>> from beliefbound import FiniteBelief, StationaryPolicy
    >>> belief = FiniteBelief([[[[0.5, 0.5]] * 2] * 2], [[0.0, 1.0], [1.0, 0.0]])
    >>> check_policy(lambda: StationaryPolicy([1, 0]), belief, discount=0.5, walks=100)
    """
    before = global_state()
    policy = make()
    for name in _NEEDED:
        assert callable(getattr(policy, name, None)), f"it has no method {name}; see beliefbound.Policy"
    horizon = getattr(policy, "horizon", None)
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    sizes = (("n_states", belief.n_states), ("n_actions", belief.n_actions))
    for name, size in sizes:
        own = getattr(policy, name, None)
        assert own is None or own == size, f"{name} is {own}; the belief has {size}"
    length = steps if horizon is None else min(steps, horizon)
    first = _walk(policy, task, 5, length)
    assert _walk(policy, task, 5, length) == first, (
        "after a reset with the same seed it acts differently: reset must begin the walk again"
    )
    assert _walk(make(), task, 5, length) == first, (
        "two policies with the same seed act differently: behaviour may depend on the seed only"
    )
    _check_fresh(policy, task, first, length)
    _check_ends(make(), task, horizon)
    _check_worth(make(), task, walks)
    _check_file(make(), task, first, length)
    assert global_state() == before, (
        "it used or reseeded a global random generator; draw from one seeded in reset(seed) instead"
    )


def _walk(policy: Any, task: FiniteTask, seed: int, steps: int) -> list[int]:
    """Actions on a walk in the first model."""
    policy.reset(seed)
    rng, found = np.random.default_rng(1), []
    s = int(inverse_cdf(task.start, rng.random()))
    for k in range(steps):
        a = _act(policy, task, s, k)
        found.append(a)
        s = _step(policy, task, s, a, rng)
    return found


def _step(policy: Any, task: FiniteTask, s: int, a: int, rng: np.random.Generator) -> int:
    """What the first model does, told to the policy."""
    reward, t = task.belief.step(0, s, a, rng)
    policy.observe(s, a, reward, t)
    return t


def _act(policy: Any, task: FiniteTask, s: int, k: int) -> int:
    a = policy.act(s)
    whole = isinstance(a, int | np.integer) and not isinstance(a, bool | np.bool_)
    assert whole, f"step {k}: act({s}) is {a!r}; give a whole number"
    offered = 0 <= a < task.models.n_actions and task.models.available[s, a]
    assert offered, f"step {k}: act({s}) is {a}, which state {s} does not offer; it has the actions " + ", ".join(
        map(str, np.flatnonzero(task.models.available[s]))
    )
    return int(a)


def _check_fresh(policy: Any, task: FiniteTask, first: list[int], length: int) -> None:
    if not callable(getattr(policy, "fresh", None)):
        return
    other = policy.fresh()
    assert other is not policy, "fresh() gave the policy itself; give another one, with a walk of its own"
    assert _walk(other, task, 5, length) == first, "fresh() acts differently with the same seed; it is the same policy"
    policy.reset(5)
    rng = np.random.default_rng(1)
    s = int(inverse_cdf(task.start, rng.random()))
    for k in range(length):
        if k == length // 2:
            _walk(other, task, 6, length)
        a = _act(policy, task, s, k)
        assert a == first[k], f"step {k}: it acts differently after another, made by fresh(), has walked; share no walk"
        s = _step(policy, task, s, a, rng)


def _check_ends(policy: Any, task: FiniteTask, horizon: int | None) -> None:
    policy.reset(5)
    _refused(lambda: policy.act(task.models.n_states), f"act({task.models.n_states}), a state that there is not,")
    if horizon is not None:
        _walk(policy, task, 5, horizon)
        _refused(lambda: policy.act(int(task.start.argmax())), f"act after all {horizon} decisions")


def _refused(call: Callable[[], Any], what: str) -> None:
    try:
        found = call()
    except BeliefboundError:
        return
    except Exception as fault:
        raise AssertionError(
            f"{what} raised {type(fault).__name__}: {fault}; raise ObservationError or PolicyError"
        ) from fault
    raise AssertionError(f"{what} is {found!r}; raise ObservationError or PolicyError")


def _check_worth(policy: Any, task: FiniteTask, count: int) -> None:
    known = AnyPolicy(policy)
    values = known.values_on(task)
    if values is None:
        return
    n_models = task.models.n_models
    assert np.shape(values) == (n_models,), f"values_on has shape {np.shape(values)}; expected ({n_models},)"
    rng, own = np.random.default_rng(2), float(task.weights @ values)
    earned = np.array(simulated(known.fresh(), task.belief.sample(count, rng), task, rng, 0))
    middle, open_ = earned.mean(axis=1), float(np.ptp(earned, axis=1).max()) / 2.0  # open: what a walk's end leaves
    own -= float(np.clip(own - middle.mean(), -open_, open_))
    assert_mean(own, middle, "what it says it is worth (as_table, as_controller, values_on)")


def _check_file(policy: Any, task: FiniteTask, first: list[int], length: int) -> None:
    if not callable(getattr(policy, "save", None)):
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy"
        policy.save(file)
        try:
            back = load_policy(file)
        except BeliefboundError as fault:
            raise AssertionError(f"load_policy cannot read what save wrote: {fault}") from fault
        assert _walk(back, task, 5, length) == first, "loaded from its file it acts differently"
