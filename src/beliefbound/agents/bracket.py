"""An agent that follows, at every step, the policy that `bracket` certifies for its present belief.

For a Dirichlet belief that policy (`bounds.dirichlet.replanning`) draws particles of the posterior, solves each, values
a few stationary policies on all of them, and looks one step ahead between the best of those and what would be earned if
the model were then known. The certified policy uses fewer particles as time goes on, and stops to learn where little is
left of the discounted value. This agent has no last step: at every step it is where the certified policy starts, with
`n` particles of the posterior it has reached.

Particles are a function of a run's seed and of the counts, so rows that were not visited keep theirs. Beta rewards
between the two ends count as a success with that chance. What the belief rules out teaches nothing. A plain Python
agent around compiled kernels, which allocate at every step: the only agent of this package that does.
"""

from typing import Any

import numpy as np

from beliefbound.bounds.dirichlet.arrays import column_of
from beliefbound.bounds.dirichlet.replanning import Replanning
from beliefbound.engine.priors import PRIOR, offered_belief
from beliefbound.engine.protocol import DISCOUNT, Setting
from beliefbound.engine.registry import agent
from beliefbound.errors import ObservationError
from beliefbound.grammar import Number


@agent(
    "bracket",
    summary="at every step the policy that `bracket` certifies for the present belief",
    parameters=(Number("n", 64, 8, 2**16, "particles", whole=True, always=True), *PRIOR, DISCOUNT),
)
class BracketAgent(Replanning):
    """See above."""

    def __init__(self, setting: Setting, *, n: int, **values: Any) -> None:
        self._given = offered_belief(setting, values), np.full(setting.n_states, 1.0 / setting.n_states)
        self._particles, self._planned = n, float(setting.discount)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Back to the prior, with particles of this seed."""
        super().__init__(*self._given, self._planned, None, seed, ((0.0, self._particles),))
        self._counts = np.zeros((self._pairs, self._columns), dtype=np.int64)
        self._luck = np.random.default_rng(seed)
        self._room = self.workspace()

    def act(self, state: int) -> int:
        """Look ahead on particles of the posterior."""
        return self._look(self._room, self._counts, state, -1, 0).action

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Count one transition."""
        posterior, pair = self._problem.posterior, state * self._problem.posterior.n_actions + action
        if posterior.fractional:
            j = max(0, int(posterior.outcome[pair, next_state]) if posterior.tied else next_state)
            paid = self._problem.unit * posterior.paid[:, pair].reshape(2, -1)
            success, failure = paid[:, j if paid.shape[1] > 1 else 0]
            if success != failure:
                share = (reward - failure) / (success - failure)
                reward = float(success if self._luck.random() < share else failure)
        try:
            pair, column = column_of(self._problem, state, action, reward, next_state)
        except ObservationError:  # outside the belief's support
            return
        self._counts[pair, column] += 1
