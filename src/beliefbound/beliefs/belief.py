"""What is asked of a belief: that it knows its sizes and can draw models. What else it can do, it says by having it.

A belief is any object with the attributes of `Belief`. The rest is optional, one method each, and decides what the
belief is offered:

    enumerate   enumerated() -> FiniteBelief         exact planning, brackets by search, decisions, exact certificates
    count       counted(low=, width=, unavailable=)  brackets by particles of the posterior, compiled agents
    predict     predictive(s, a) -> [t], mean()      expected MDPs without drawing
    condition   update(s, a, r, t) -> belief         agents, logs, what tries of a pair are worth
    learn       in_arrays(low=, width=, unavailable=)  compiled agents, where it counts and is no product of Dirichlets
    draw        sample(n, rng) -> FiniteBelief       everything else: every belief can

And further, where it knows:

    tied_to(s, a)      pairs `[i,2]` whose rows are learnt together, where rows are otherwise independent
    allowed()          which outcomes any of its models allows, and what they pay (`Allowed`): fewer values are possible
    offering(offered)  the same belief with fewer actions `[s,a]`
    terminal           `[s]`, states known to be absorbing, with reward 0
    notes()            what a reader of its bounds should know
    to_entries(), from_entries(entries)   arrays by name, for files (`beliefs.files`)

Nobody asks for a class: `beliefs.capabilities` is the one place that looks which of these there are.
`beliefs.check.check_belief` says whether those that there are keep their word. `beliefs.kinds` has examples, one file
each, and `tests/support/mixture.py` one that a user would write.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from beliefbound.base.validation import BoolArray, FloatArray, Rng
from beliefbound.beliefs.finite import FiniteBelief


@runtime_checkable
class Belief(Protocol):
    """A probability distribution over MDPs that share states and actions: what every belief has.

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
        """Least and largest possible expected reward; `None` when unbounded, or not known."""

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent models, equally weighted; `rng`: a generator, a seed, or `None` for fresh randomness."""


class Allowed(NamedTuple):
    """What any model of a belief allows."""

    possible: BoolArray  # [s,a,t]
    low: FloatArray  # [s,a,t]: the least that the step pays; or [s,a,1]
    high: FloatArray
