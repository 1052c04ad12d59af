"""What an agent is: `reset(seed)`, `act(state)`, `observe(state, action, reward, next_state)`.

Anything with these three methods can be played and checked. The agents of this package are *machines*: a NamedTuple
of arrays and three compiled functions on it (`kernels.play`). `CompiledAgent` puts the protocol around a machine;
stepping it by hand enters the compiled loop of `play`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from numba.core.errors import NumbaError

from beliefbound.base.errors import ObservationError, ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.validation import BoolArray, check_discount, check_ids, check_seed
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import NEEDED
from beliefbound.kernels.beside import compile_beside, compiles_beside
from beliefbound.kernels.cache import is_kept
from beliefbound.kernels.draws import draw_lanes
from beliefbound.kernels.play import ACT, NOWHERE, OBSERVE, RESET, Request, agent_stream, play_loop
from beliefbound.kernels.reference import pass_by_reference
from beliefbound.lab.envs.adapter import DiscreteEnv
from beliefbound.lab.envs.environment import Environment

Stream = npt.NDArray[np.uint64]

DISCOUNT = Number("discount", None, 0.0, 1 - 1e-9, "of planning", auto="environment")
EPISODE = Number("tau", None, 1, 10**6, "steps of an episode, H", whole=True, auto="1/(1 − discount)")


@runtime_checkable
class Agent(Protocol):
    """States and actions are whole numbers from 0; rewards are as the environment pays them."""

    def reset(self, seed: int) -> None:
        """Forget everything; equal seeds give equal behaviour from here on."""

    def act(self, state: int) -> int:
        """Choose an action that `state` offers."""

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Learn from one transition."""


class Machine(NamedTuple):
    """An agent as compiled code sees it: a NamedTuple and three compiled functions; see `kernels.play`.

    Where a run begins with a plan that is made in Python, `plan(seed)` makes the state for it, and `state` is that of
    the run last begun.
    """

    state: Any
    reset: Any
    act: Any
    observe: Any
    plan: Callable[[int], Any] | None = None


@dataclass(frozen=True)
class Setting:
    """What an agent is told before it starts.

    Attributes:
      n_states, n_actions: sizes.
      available: `[s,a]`, the actions each state offers.
      reward_range: `(low, high)`; learners see `(reward − low) / (high − low)`.
      discount: of their planning.
      environment: the truth, which only the oracle and some priors look at; `None` if it is not known.
      belief: a prior to learn from, or `None`: then the agent's parameters say which.
    """

    n_states: int
    n_actions: int
    available: BoolArray
    reward_range: tuple[float, float]
    discount: float
    environment: Environment | None
    belief: Belief | None = None

    @property
    def low(self) -> float:
        return self.reward_range[0]

    @property
    def width(self) -> float:
        return self.reward_range[1] - self.reward_range[0]

    @property
    def steps_ahead(self) -> int:
        """As many as the discount counts, `1/(1 − γ)`."""
        return round(1.0 / (1.0 - self.discount))


def setting_of(environment: Environment | DiscreteEnv, discount: float | None, belief: Belief | None = None) -> Setting:
    """The setting that an environment implies; `discount` defaults to the environment's own."""
    if isinstance(environment, Environment):
        known, available = environment, np.array(environment.mdp.available)
        chosen = environment.discount if discount is None else discount
    elif isinstance(environment, DiscreteEnv):
        known, available = None, np.ones((environment.n_states, environment.n_actions), dtype=np.bool_)
        if discount is None:
            raise ParameterError("a gymnasium environment has no discount of its own; pass discount=...")
        chosen = discount
    else:
        raise ParameterError(
            f"the environment is {environment!r}; give make_env('chain'), or DiscreteEnv(env, reward_range=...)"
        )
    if environment.reward_range is None:
        raise ParameterError("agents scale rewards to [0, 1]; pass DiscreteEnv(env, reward_range=(low, high))")
    chosen = check_discount(chosen, 1)
    if chosen == 1.0:
        raise ParameterError(f"discount is {chosen}; agents plan without a horizon and need 0 <= discount < 1")
    low, high = environment.reward_range
    if belief is not None:
        check_fits(belief, environment)
    return Setting(
        environment.n_states, environment.n_actions, available, (float(low), float(high)), float(chosen), known, belief
    )


def check_fits(belief: Any, environment: Environment | DiscreteEnv) -> Belief:
    """A belief about MDPs of the environment's size."""
    missing = [name for name in NEEDED if not hasattr(belief, name)]
    if missing:
        raise ParameterError(f"the belief is {belief!r}, which has no {missing[0]}; give a belief")
    if (belief.n_states, belief.n_actions) != (environment.n_states, environment.n_actions):
        raise ParameterError(
            f"{belief!r} does not fit {environment!r}: it has {belief.n_states} states and {belief.n_actions} actions"
        )
    fitting: Belief = belief
    return fitting


class CompiledAgent:
    """A machine behind the protocol `Agent`.

    Attributes:
      name: the canonical string that makes it.
      setting: what it was told.
      machine: its state and functions; `play` works on a copy of the state.
      loop: the machine, compiled into the loop of `kernels.play`.

    >>> from beliefbound.lab.agents import make_agent
    >>> from beliefbound.lab.envs import make_env
    >>> agent = make_agent("thompson", make_env("chain"))
    >>> agent.reset(1)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 2.0, 0)
    """

    def __init__(self, name: str, setting: Setting, machine: Machine) -> None:
        self.name = name
        self.setting = setting
        self.machine = machine
        self._ready = False
        self.loop = play_loop(machine.reset, machine.act, machine.observe)

    def __repr__(self) -> str:
        return f"CompiledAgent({self.name!r}, {self.setting.n_states} states, {self.setting.n_actions} actions)"

    def reset(self, seed: int | Stream) -> None:
        """Forget everything. `reset(seed)` starts run 0 of `play(…, seed=seed)`; another run's stream may be given."""
        stream = stream_of(seed)
        if self.machine.plan is not None:
            self.machine = self.machine._replace(state=self.machine.plan(seed_of(stream)))
        self.enter(Request(RESET, stream), self.machine.state, *NOWHERE)
        self._ready = True

    def act(self, state: int) -> int:
        """Choose an action."""
        if not self._ready:
            raise ObservationError("act before reset; call reset(seed) first")
        s = int(check_ids(state, self.setting.n_states, "state", ObservationError))
        return self.enter(Request(ACT, s=s), self.machine.state, *NOWHERE)

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Learn from one transition."""
        if not self._ready:
            raise ObservationError("observe before reset; call reset(seed) first")
        s = int(check_ids(state, self.setting.n_states, "state", ObservationError))
        a = int(check_ids(action, self.setting.n_actions, "action", ObservationError))
        t = int(check_ids(next_state, self.setting.n_states, "next_state", ObservationError))
        r = float(reward)
        low, high = self.setting.reward_range
        if not low <= r <= high:
            raise ObservationError(
                f"the reward {r}, seen in state {s} after action {a}, is outside the declared range {low:g} to {high:g}"
                "; declare a wider reward_range"
            )
        self.enter(Request(OBSERVE, s=s, a=a, r=r, t=t), self.machine.state, *NOWHERE)

    def enter(self, request: Request, state: Any, *rest: Any) -> int:
        """The compiled loop of the machine (`kernels.play`), on a state of its kind."""
        pass_by_reference(state)
        if not self.loop.overloads and not is_kept(self.loop) and not compiles_beside():
            compile_beside("beliefbound.kernels.planning.jobs", needed=draw_lanes)
        try:
            return int(self.loop(state, request, *rest))
        except NumbaError as cause:
            raise ParameterError(f"the agent {self.name} does not compile: {cause}") from cause


def stream_of(seed: int | Stream) -> Stream:
    """The agent's stream in run 0 of a root seed, or a copy of the stream given."""
    if isinstance(seed, np.ndarray):
        if seed.shape != (4,) or seed.dtype != np.uint64 or not seed.any():
            raise ParameterError("a stream is the uint64[4] state of a generator, not all zero; or give a whole number")
        return seed.copy()
    stream: Stream = agent_stream(check_seed(seed), 0, 0)
    return stream


def seed_of(stream: Stream) -> int:
    """The whole number that agents of plain Python, and plans made in Python, are given in place of a stream."""
    return int(stream[0] >> np.uint64(1))


Factory = Callable[[Environment], Agent]
