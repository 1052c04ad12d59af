"""`AnyPolicy`: whatever acts, and what it can say about itself. The door for policies that others bring.

A policy needs `reset(seed)`, `act(state)` and `observe(state, action, reward, next_state)`. What it is worth is found
by simulation, unless it answers one of these, all optional:

    as_table()            itself, where it looks at the state and the stage only (`policy.TablePolicy`)
    as_controller(task)   the same as a finite-state controller (`bounds.finite.controller.Controller`), or `None`
    as_mixture(task)      chances and controllers, one of which it draws at the start, or `None`
    values_on(task)       `[m]`, its value on every model from the task's start, exact up to rounding, or `None`
    walks_on(task, …)     trajectories under a belief with counts, compiled (`bounds.dirichlet.walks.Walks`), or `None`

One is enough: a table is a controller, and a controller has exact values.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import PolicyError
from beliefbound.base.validation import FloatArray, shown
from beliefbound.bounds.finite.controller import Controller, table_controller
from beliefbound.bounds.finite.controller_value import enclosed_values, start_value
from beliefbound.models.enclosing import rounding_of
from beliefbound.models.evaluation import check_fits
from beliefbound.planning.rounding import ChainErrors
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import Policy, TablePolicy

_NEEDED = ("reset", "act", "observe")


class AnyPolicy:
    """A policy of any class.

    Attributes:
      own: the object itself.
      reset, act, observe: its methods.
      n_states, n_actions, horizon: where it says so, else `None`.

    >>> from beliefbound.policy import StationaryPolicy
    >>> AnyPolicy(StationaryPolicy([1, 0])).as_table()
    StationaryPolicy([1, 0])
    """

    def __init__(self, policy: Any) -> None:
        if not all(callable(getattr(policy, name, None)) for name in _NEEDED):
            raise PolicyError(f"policy is {shown(policy)}; give an object with reset, act and observe, or a file")
        self.own = policy
        self.reset: Callable[[int], object] = policy.reset
        self.act: Callable[[int], Any] = policy.act
        self.observe: Callable[[int, int, float | None, int], object] = policy.observe
        self.n_states, self.n_actions, self.horizon = (
            getattr(policy, name, None) for name in ("n_states", "n_actions", "horizon")
        )

    def check(self, task: Task) -> None:
        """It has the task's sizes and its number of decisions, as far as it says."""
        for name, size, own in (
            ("states", self.n_states, task.belief.n_states),
            ("actions", self.n_actions, task.belief.n_actions),
        ):
            if isinstance(size, int) and size != own:
                raise PolicyError(f"the policy has {size} {name}, the belief has {own}")
        if self.horizon is not None and self.horizon != task.horizon:
            raise PolicyError(f"the policy makes {self.horizon} decisions, the problem has horizon {task.horizon}")

    @property
    def saved(self) -> Policy | None:
        """Itself, where it can be saved; else nothing."""
        return self.own if isinstance(self.own, Policy) else None

    def fresh(self) -> Self:
        """The same at its start, with a walk of its own where it knows how to; else itself."""
        make = getattr(self.own, "fresh", None)
        return type(self)(make()) if callable(make) else self

    def as_table(self) -> TablePolicy | None:
        """The policy as a table, where it is one."""
        table: TablePolicy | None = self._ask("as_table")
        return table

    def as_controller(self, task: FiniteTask) -> Controller | None:
        """The policy as a finite-state controller, where it is one."""
        controller: Controller | None = self._ask("as_controller", task)
        if controller is not None:
            return controller
        table = self.as_table()
        return table_controller(table, task) if table is not None and table.is_deterministic else None

    def as_mixture(self, task: FiniteTask) -> Sequence[tuple[float, Controller]] | None:
        """`(chance, controller)` of each part that it draws from at the start; of one where it draws nothing."""
        parts: Sequence[tuple[float, Controller]] | None = self._ask("as_mixture", task)
        if parts is None and (controller := self.as_controller(task)) is not None:
            return [(1.0, controller)]
        return parts

    def values_on(self, task: FiniteTask) -> FloatArray | None:
        """`[m]`: its value on every model from the task's start, exact up to rounding; `None` where that cannot be
        had."""
        found = self.enclosed_on(task)
        return None if found is None else found[0]

    def enclosed_on(self, task: FiniteTask) -> tuple[FloatArray, FloatArray] | None:
        """`[m]` twice: the same, and how far each can be from the true one."""
        values: FloatArray | None = self._ask("values_on", task)
        if values is not None:
            return values, summed(task) * np.abs(values)
        if (table := self.as_table()) is not None:
            return _enclosed_table(table, task)
        if (parts := self.as_mixture(task)) is None:
            return None
        mixed, error = np.zeros(task.models.n_models), np.zeros(task.models.n_models)
        for chance, part in parts:
            own, off = (start_value(x, part, task) for x in enclosed_values(part, task))
            mixed, error = mixed + chance * own, error + chance * (off + summed(task) * np.abs(own))
        return mixed, error

    def walks_on(self, task: Task, *, seed: int, threads: int) -> Any | None:
        """Its own compiled trajectories under a belief with counts, where it has any for this task."""
        return self._ask("walks_on", task, seed=seed, threads=threads)

    def _ask(self, name: str, *arguments: Any, **knobs: Any) -> Any:
        answer = getattr(self.own, name, None)
        return answer(*arguments, **knobs) if callable(answer) else None


def summed(task: FiniteTask) -> float:
    """What rounding takes of a sum over models, or over states."""
    return rounding_of(task.models.n_models + task.models.n_states)


def _enclosed_table(policy: TablePolicy, task: FiniteTask) -> tuple[FloatArray, FloatArray]:
    chances, stages = check_fits(policy, task.models), task.stages_of(policy)
    if stages is None:
        values, error = task.models.enclose(chances, task.discount)
    else:
        values = task.policy_values(policy)
        error = ChainErrors(task.lasting(stages))(values.T, np.arange(task.models.n_states)).T
    return values @ task.start, (error + summed(task) * np.abs(values)) @ task.start
