"""Agents on a belief that counts nothing: it is drawn from, and conditioned on every step. In Python, step by step.

What the compiled agents do with counts, on any belief that can be conditioned (`beliefs.belief`): the same schedules,
sweeps and ties, on rewards scaled to [0, 1]. A transition that the belief rules out teaches nothing. An agent says how
it plays on such a belief by `@agent(..., drawn=...)`; one that does not say so needs a belief that counts.
"""

from contextlib import suppress
from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError, ParameterError
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.beliefs.capabilities import Capability, conditioned, expected, lacking
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.lab.engine.protocol import Setting
from beliefbound.models import ModelSet
from beliefbound.planning.optimal import optimal_values

_NEVER = 1 << 62


class Drawing:
    """What such agents share: the belief, a source of randomness, and models on the agent's scale.

    A subclass plans in `choose(state)`; `begin` is told of a reset, `saw(state, action)` of a step.
    """

    def __init__(self, setting: Setting, name: str) -> None:
        assert setting.belief is not None
        self.setting, self.name, self.prior = setting, name, setting.belief
        self.available: BoolArray = setting.available & self.prior.available
        if not callable(getattr(self.prior, "update", None)):
            raise lacking(self.prior, Capability.CONDITION, f"the agent {name}")
        if not self.available.any(axis=1).all():
            s = int(np.argmin(self.available.any(axis=1)))
            raise ParameterError(f"{self.prior!r} has none of the actions that state {s} of the environment offers")
        self._ready = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.setting.n_states} states, {self.setting.n_actions} actions)"

    def reset(self, seed: int) -> None:
        """Back to the prior."""
        self.rng, self.belief, self._ready = np.random.default_rng(seed), self.prior, True
        self.begin()

    def act(self, state: int) -> int:
        """Choose an action."""
        if not self._ready:
            raise ObservationError("act before reset; call reset(seed) first")
        return int(self.choose(int(state)))

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Condition the belief on one transition, if it allows it."""
        what = f"the agent {self.name}"
        with suppress(ObservationError):
            self.belief = conditioned(self.belief, state, action, reward, next_state, what=what)
        self.saw(int(state), int(action))

    def begin(self) -> None:
        """A run begins."""
        raise NotImplementedError

    def choose(self, state: int) -> int:
        """The action in a state."""
        raise NotImplementedError

    def saw(self, state: int, action: int) -> None:
        """A step was made."""

    def scaled(self, models: ModelSet) -> ModelSet:
        """Models with rewards on the agent's scale, and the actions that it has."""
        rewards = (models.rewards - self.setting.low) / (self.setting.width or 1.0)
        return ModelSet(models.transitions, np.where(self.available, rewards, 0.0), self.available)

    def draw(self, n: int) -> ModelSet:
        """Models of the present belief."""
        drawn: FiniteBelief = self.belief.sample(n, self.rng)
        return self.scaled(drawn.models)


class Swept(Drawing):
    """Sweeps of MMBI over models held, from the values of the step before, until the weighted values settle."""

    def __init__(self, setting: Setting, name: str, n: int, sweeps: int, tolerance: float) -> None:
        super().__init__(setting, name)
        S, A = setting.n_states, setting.n_actions
        if 24 * S * A * S * n > AGENT_BYTES:
            raise ParameterError(f"n is {n}: {n} models of {S} states and {A} actions do not fit in memory; take fewer")
        self.n, self.sweeps, self.tolerance = n, sweeps, tolerance
        self.weights = np.full(n, 1.0 / n)

    def clear(self) -> None:
        """No values."""
        self.values = np.zeros((self.n, self.setting.n_states))

    def settle(self, models: ModelSet) -> IntArray:
        """Sweep; the actions of the last sweep, `[s]`."""
        actions, q = np.zeros(self.setting.n_states, dtype=np.int64), np.empty(models.rewards.shape)
        for _ in range(self.sweeps):
            out = np.empty_like(self.values)
            models.greedy(self.values, self.weights, self.setting.discount, actions=actions, q=q, out=out)
            moved = float(np.abs(self.weights @ out - self.weights @ self.values).sum())
            self.values = out
            if moved < self.tolerance:
                break
        return actions


class DrawnMcbrl(Swept):
    """MCBRL (Algorithm 3 of the paper), and with one model Thompson sampling."""

    def __init__(self, setting: Setting, *, n: int, name: str = "mcbrl", **values: Any) -> None:
        super().__init__(setting, name, n, values["sweeps"], values["tolerance"])
        self.schedule, self.interval, self.increment = (values[x] for x in ("schedule", "interval", "increment"))
        self.threshold, self.warm = values["threshold"], values["warm"] == "yes"

    def begin(self) -> None:
        """Nothing planned."""
        self.step, self.due, self.lasts, self.plans = 0, 1, 0, 0
        self.clear()

    def choose(self, state: int) -> int:
        """Plan if it is due, sweep, and choose."""
        self.step += 1
        if self.step >= self.due:
            self._plan()
        return int(self.settle(self.models)[state])

    def _plan(self) -> None:
        self.models = self.draw(self.n)
        if not self.warm:
            self.clear()
        if self.schedule == "posterior":
            self.before, self.due = expected(self.belief), _NEVER
        else:
            first = self.plans == 0 or self.schedule == "constant"
            later = self.lasts + self.increment if self.schedule == "linear" else min(2 * self.lasts, _NEVER)
            self.lasts = self.interval if first else later
            self.due = self.step + self.lasts
        self.plans += 1

    def saw(self, state: int, action: int) -> None:
        """Under `posterior`, see whether the belief has moved enough."""
        if self.schedule == "posterior" and self.plans:
            now, before = (self._row(mdp, state, action) for mdp in (expected(self.belief), self.before))
            if float(np.abs(now - before).sum()) >= self.threshold:
                self.due = self.step + 1

    def _row(self, mdp: Any, s: int, a: int) -> FloatArray:
        """What is expected of a pair: chances, and the reward on the agent's scale."""
        reward = (mdp.rewards[s, a] - self.setting.low) / (self.setting.width or 1.0)
        return np.append(mdp.models.dense()[0, s, a], reward)


class DrawnExploit(Swept):
    """Greedy on the expected MDP (Algorithm 4 of the paper)."""

    def __init__(self, setting: Setting, *, sweeps: int, **values: Any) -> None:
        super().__init__(setting, "exploit", 1, sweeps, 0.0)

    def begin(self) -> None:
        """The expected MDP of the prior, no values."""
        self.clear()
        self.models: ModelSet | None = None

    def choose(self, state: int) -> int:
        """Sweep and choose."""
        if self.models is None:
            self.models = self.scaled(expected(self.belief).models)
        return int(self.settle(self.models)[state])

    def saw(self, state: int, action: int) -> None:
        """The expected MDP is another."""
        self.models = None


class DrawnPsrl(Drawing):
    """Thompson sampling by episodes (Osband, Russo & Van Roy 2013; dynamic ones: Ouyang et al. 2017)."""

    def __init__(self, setting: Setting, *, episodes: str, tau: int, **values: Any) -> None:
        super().__init__(setting, "psrl")
        self.stages, self.dynamic = tau if episodes == "fixed" else 0, episodes == "dynamic"

    def begin(self) -> None:
        """Nothing seen."""
        self.actions: IntArray | None = None  # [s], or [stage,s]
        self.visits = np.zeros(self.available.shape, dtype=np.int64)
        self.before, self.stage, self.last = self.visits.copy(), 0, 1

    def choose(self, state: int) -> int:
        """Begin an episode if it is due, and follow its policy."""
        if self._over(state):
            models = self.draw(1)
            self.last = 1 if self.actions is None else self.stage
            self.before, self.stage = self.visits.copy(), 0
            if self.stages:
                self.actions = models.induct_greedy(np.ones(1), 1.0, self.stages)[0]
            else:
                self.actions = optimal_values(models, discount=self.setting.discount).actions[0]
        assert self.actions is not None
        self.stage += 1
        return int(self.actions[self.stage - 1, state] if self.stages else self.actions[state])

    def _over(self, s: int) -> bool:
        if self.actions is None or self.stages:
            return self.actions is None or self.stage == self.stages
        if self.dynamic:
            return self.stage > self.last or bool((self.visits > 2 * self.before).any())
        a = int(self.actions[s])
        return bool(self.visits[s, a] - self.before[s, a] >= max(1, self.before[s, a]))

    def saw(self, state: int, action: int) -> None:
        """Count it."""
        self.visits[state, action] += 1
