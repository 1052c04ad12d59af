"""What every planner and bound asks of a belief."""

from typing import Any, Protocol

from beliefbound.base.validation import BoolArray, FloatArray, IntArray, Rng
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.kernels.posterior import Posterior
from beliefbound.models.mdp import MDP


class Belief(Protocol):
    """A probability distribution over MDPs that share states and actions.

    What a step shows of the reward is known to `sample`: the models that it draws carry a signal (`beliefs.signals`).
    """

    @property
    def n_states(self) -> int: ...
    @property
    def n_actions(self) -> int: ...
    @property
    def available(self) -> BoolArray:
        """Which actions each state offers, `[s,a]`."""

    @property
    def initial(self) -> FloatArray | None:
        """The start distribution `[s]`, if the belief has one."""

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Least and largest possible expected reward; `None` when unbounded."""

    @property
    def finite(self) -> FiniteBelief | None:
        """The belief itself where it is a finite set of models, whose expectations are sums; else `None`."""

    def compiled(self) -> Posterior | None:
        """The belief as Dirichlet counts for kernels; `None` where it is not of that kind."""

    def tied_to(self, state: int, action: int) -> IntArray:
        """Pairs `[i,2]` whose transitions are learnt together with those of a pair, itself among them."""

    def mean(self) -> MDP:
        """The expected MDP."""

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent models, equally weighted; `rng`: a generator, a seed, or `None` for fresh randomness."""

    def predictive(self, state: int, action: int) -> FloatArray:
        """Chances `[t]` of the next state."""

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "Belief":
        """The posterior after one transition, or after several given as arrays."""
