"""`Environment`: an MDP that can be played, with what a learner is told about it.

It is defined by its outcomes (`kernels.outcomes`): probability, next state and *realised* reward of each thing nature
may do. The MDP follows from them: `P(t|s,a) = Σ_o p[s,a,o] 1{next[s,a,o] = t}`, `r(s,a) = Σ_o p[s,a,o]
reward[s,a,o]`.

A run draws one uniform for its start and one for each step, whatever the actions. The outcomes of a built-in
environment are arranged so that the same uniform is the same event (slip or no slip, the same demand) for every
action.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from beliefbound.base.errors import ModelError, ParameterError
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_floats,
    check_discount,
    check_finite,
    check_ids,
    frozen,
)
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.kernels.outcomes import Outcomes
from beliefbound.models.convert.assemble import absorbing, assemble, sparse_rows
from beliefbound.models.mdp import MDP

MAX_OUTCOMES = 4_000_000  # states × actions × outcomes: about 100 MB of tables


@dataclass(frozen=True, eq=False)
class Environment:
    """A finite environment: what is true (`mdp`, `outcomes`) and what a learner may know (`reward_range`).

    Attributes:
      name: the string that `make_env` turns into this environment, or a name of your own.
      mdp: the true MDP; `mdp.initial` is the start distribution.
      outcomes: tables for simulation, `[s,a,o]`. Rows of unavailable actions stay in place for the least reward, and
        are not meant to be played.
      reward_range: `(low, high)`, bounds on realised rewards; a Beta belief sees `(reward − low) / (high − low)`.
      discount: the one usually used with it.
      prior: makes the belief that it was drawn from, if it was drawn from one.
      of_run: where every run of an experiment has an environment of its own, of the same sizes: which one. The others
        of these fields are those of run 0.

    >>> from beliefbound.lab.envs import make_env
    >>> chain = make_env("chain")
    >>> chain.mdp.rewards[4].round(1).tolist(), chain.outcomes.reward[4, 1].tolist()  # expected; intended move, slip
    ([3.6, 8.4], [10.0, 2.0])
    """

    name: str
    mdp: MDP
    outcomes: Outcomes
    reward_range: tuple[float, float]
    discount: float
    prior: Callable[[], DirichletBelief] | None = None
    of_run: "Callable[[int], Environment] | None" = None

    def __post_init__(self) -> None:
        mdp, tables = self.mdp, self.outcomes
        if not isinstance(mdp, MDP) or mdp.initial is None:
            raise ModelError(f"the mdp of an environment is {mdp!r}; give an MDP with a start distribution (initial=)")
        if not isinstance(tables, Outcomes):
            raise ModelError(f"outcomes are {type(tables).__name__}; see environment_from_mdp, which makes them")
        object.__setattr__(self, "outcomes", check_outcomes(tables, mdp.n_states, mdp.n_actions))
        object.__setattr__(self, "discount", check_discount(self.discount, 1))
        seen = self.outcomes.reward[self.chances > 0.0]
        limits = check_reward_range(self.reward_range, float(seen.min()), float(seen.max()))
        object.__setattr__(self, "reward_range", limits)

    def __repr__(self) -> str:
        return f"Environment({self.name!r}, {self.n_states} states, {self.n_actions} actions)"

    @property
    def n_states(self) -> int:
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        return self.mdp.n_actions

    @property
    def start(self) -> FloatArray:
        """Start distribution `[s]`."""
        assert self.mdp.initial is not None
        return self.mdp.initial

    @property
    def chances(self) -> FloatArray:
        """Probability of each outcome, `[s,a,o]`."""
        return np.diff(self.outcomes.cumulative, axis=2, prepend=0.0)

    @cached_property
    def terminal(self) -> BoolArray:
        """`[s]`: states that every action keeps for no reward. An episode that enters one is over."""
        return absorbing(self.mdp)


def from_outcomes(
    name: str,
    probability: FloatArray,
    next_state: IntArray,
    reward: FloatArray,
    *,
    start: Any = 0,
    reward_range: tuple[float, float] | None = None,
    discount: float = 0.95,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
    prior: Callable[[], DirichletBelief] | None = None,
) -> Environment:
    """An environment from tables `[s,a,o]`, padded with outcomes of probability zero. All actions are available.

    >>> probability, reward = np.array([[[0.5, 0.5]]] * 2), np.array([[[1.0, 0.0]]] * 2)
    >>> from_outcomes("toss", probability, np.array([[[0, 1]]] * 2), reward).mdp.rewards.tolist()
    [[0.5], [0.5]]
    """
    n_states, n_actions, n_outcomes = probability.shape
    mdp = assemble(
        np.repeat(np.arange(n_states * n_actions), n_outcomes),
        next_state.ravel(),
        probability.ravel(),
        reward.ravel(),
        n_states=n_states,
        n_actions=n_actions,
        initial=start,
        states=states,
        actions=actions,
    )
    return _environment(name, mdp, probability, next_state, reward, reward_range, discount, prior)


def environment_from_mdp(
    mdp: MDP,
    *,
    name: str = "custom",
    start: Any = None,
    reward_range: tuple[float, float] | None = None,
    discount: float = 0.95,
) -> Environment:
    """Any MDP as an environment; every outcome of `(state, action)` pays the expected reward of that pair.

    Args:
      mdp: dense or sparse. Memory is that of its busiest row times states times actions.
      name: shown in tables and messages.
      start: a state or a distribution; default the MDP's own `initial`, else state 0.
      reward_range: what a learner is told; default the least and largest reward. It must contain both.
      discount: default discount of the environment.

    >>> from beliefbound.models.convert import from_gymnasium
    >>> table = {0: {0: [(0.5, 0, 0.0, False), (0.5, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    >>> environment = environment_from_mdp(from_gymnasium(table), name="toss")
    >>> environment, environment.terminal.tolist(), environment.reward_range
    (Environment('toss', 2 states, 1 actions), [False, True], (0.0, 0.5))
    """
    if not isinstance(mdp, MDP):
        raise ModelError(f"environment_from_mdp is given {mdp!r}; give an MDP")
    if start is not None or mdp.initial is None:
        mdp = MDP(
            mdp.transitions,
            mdp.rewards,
            initial=0 if start is None else start,
            states=mdp.states,
            actions=mdp.actions,
            available=mdp.available,
        )
    rows = sparse_rows(mdp)
    counts = np.diff(rows.indptr)
    shape = (mdp.n_states, mdp.n_actions, max(1, int(counts.max())))
    row = np.repeat(np.arange(rows.shape[0]), counts)
    column = np.arange(rows.nnz) - rows.indptr[row]
    probability = np.zeros((rows.shape[0], shape[2]))
    next_state = np.repeat(np.repeat(np.arange(mdp.n_states), mdp.n_actions)[:, None], shape[2], axis=1)
    probability[row, column] = rows.data
    next_state[row, column] = rows.indices
    least = float(mdp.rewards[mdp.available].min())
    rewards = np.where(mdp.available, mdp.rewards, least)
    return _environment(
        name,
        mdp,
        probability.reshape(shape),
        next_state.reshape(shape),
        np.repeat(rewards[:, :, None], shape[2], axis=2),
        reward_range,
        discount,
    )


def _environment(
    name: str,
    mdp: MDP,
    probability: FloatArray,
    next_state: IntArray,
    reward: FloatArray,
    reward_range: tuple[float, float] | None,
    discount: float,
    prior: Callable[[], DirichletBelief] | None = None,
) -> Environment:
    assert mdp.initial is not None
    outcomes = Outcomes(
        frozen(_distribution_function(probability)),
        frozen(np.ascontiguousarray(next_state, dtype=np.int64)),
        frozen(np.ascontiguousarray(reward, dtype=np.float64)),
        frozen(_distribution_function(mdp.initial)),
    )
    seen = reward[probability > 0.0]
    limits = check_reward_range(reward_range, float(seen.min()), float(seen.max()))
    return Environment(name, mdp, outcomes, limits, discount, prior)


def check_size(name: str, outcomes: int) -> None:
    """Refuse absurd tables before they are built."""
    if outcomes > MAX_OUTCOMES:
        raise ParameterError(f"{name!r}: {outcomes:,} outcomes is more than {MAX_OUTCOMES:,}; make it smaller")


def check_outcomes(tables: Outcomes, n_states: int, n_actions: int) -> Outcomes:
    """Tables that compiled code can follow blindly: shapes, next states, distribution functions, finite rewards."""
    cumulative, reward, start = (
        as_floats(x, f"outcomes.{what}", ModelError)
        for x, what in ((tables.cumulative, "cumulative"), (tables.reward, "reward"), (tables.start, "start"))
    )
    shape = (n_states, n_actions, *cumulative.shape[2:])
    for table, what in ((cumulative, "cumulative"), (reward, "reward"), (np.asarray(tables.next_state), "next_state")):
        if table.ndim != 3 or table.shape != shape or not table.size:
            raise ModelError(
                f"outcomes.{what} has shape {table.shape}; expected ({n_states}, {n_actions}, outcomes), as the MDP has"
            )
    if start.shape != (n_states,):
        raise ModelError(f"outcomes.start has shape {start.shape}; expected ({n_states},)")
    next_state = check_ids(tables.next_state, n_states, "outcomes.next_state", ModelError)
    for table, what in ((cumulative, "cumulative"), (start, "start")):
        rises = np.diff(table, axis=-1, prepend=0.0)
        if not (rises >= 0.0).all() or not (table[..., -1] == 1.0).all():
            raise ModelError(
                f"outcomes.{what} is not a distribution function: along its last axis it must rise from 0 or more to "
                "exactly 1; environment_from_mdp makes one"
            )
    check_finite(reward, "outcomes.reward", ("state", "action", "outcome"), ModelError)
    return Outcomes(frozen(cumulative), frozen(np.ascontiguousarray(next_state)), frozen(reward), frozen(start))


def check_reward_range(declared: tuple[float, float] | None, least: float, largest: float) -> tuple[float, float]:
    """`(low, high)` with `low < high` around every reward; without a declaration the tightest, or `(r, r + 1)`."""
    if declared is None:
        return (least, largest) if least < largest else (least, least + 1.0)
    try:
        low, high = (float(x) for x in declared)
    except (TypeError, ValueError):
        raise ParameterError(f"reward_range is {declared!r}; give two numbers (low, high)") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ParameterError(f"reward_range is ({low}, {high}); it needs two finite numbers, low < high")
    if low > least or high < largest:
        raise ModelError(f"reward_range is ({low}, {high}) but rewards run from {least} to {largest}; widen the range")
    return low, high


def _distribution_function(probability: FloatArray) -> FloatArray:
    """Cumulative sums along the last axis, exactly 1 from the last positive entry on (or everywhere, if none is)."""
    cumulative = np.cumsum(probability, axis=-1)
    positive = probability > 0.0
    later: IntArray = np.cumsum(positive[..., ::-1], axis=-1)[..., ::-1] - positive  # positive entries still to come
    cumulative[later == 0] = 1.0
    return np.ascontiguousarray(np.minimum(cumulative, 1.0))
