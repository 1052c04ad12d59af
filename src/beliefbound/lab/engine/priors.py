"""What a model-based agent believes before it starts: a belief that a caller gives, or a prior by name.

`@prior` registers a function from an `Environment` to a belief. An agent whose parameters contain `PRIOR` offers
`prior=name`, and `posterior_for` turns either into the arrays that it learns in, rewards scaled to [0, 1]: it needs a
belief that counts, and for the mathematics of some agents one of Dirichlet rows (`dirichlet_for`). What plays on others
is `lab.engine.drawn`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.plugins import RegisteredName, Registry
from beliefbound.base.validation import IntArray
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import Capability, in_arrays, lacking, offering
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.kinds.sparse import SparseDirichletBelief
from beliefbound.beliefs.rewards import BetaRewards, KnownRewards
from beliefbound.kernels.posterior import Posterior, SparsePosterior
from beliefbound.lab.engine.protocol import Setting, check_fits
from beliefbound.lab.envs.environment import Environment

PriorFunction = Callable[[Environment], Belief]

PRIORS = Registry("prior", group="beliefbound.agents", example="support")

_FLAT = ("prior", ("flat",))
_UNSTRUCTURED = ("prior", ("flat", "known-rewards"))
PRIOR = (
    RegisteredName("prior", "flat", PRIORS, "what is known beforehand: flat, known-rewards, support, tied, …"),
    Number("concentration", None, 0.0, 1e6, "of the Dirichlet prior", above=True, auto="1/states", needs=_UNSTRUCTURED),
    Number("successes", 1.0, 0.0, 1e6, "first parameter of the Beta prior on scaled rewards", above=True, needs=_FLAT),
    Number("failures", 1.0, 0.0, 1e6, "second parameter of the Beta prior", above=True, needs=_FLAT),
)


def prior(name: str, *, summary: str) -> Callable[[PriorFunction], PriorFunction]:
    """Register a function from an environment to the belief that agents with `prior=name` start from."""
    return PRIORS.register(name, summary=summary)


def priors() -> dict[str, str]:
    """Every prior, and one line about it.

    >>> priors()["support"]
    'Dirichlet on the transitions that the environment allows, flat Beta rewards'
    """
    return {family.name: family.summary for family in PRIORS.families().values()}


def posterior_for(setting: Setting, values: Mapping[str, Any]) -> Posterior:
    """The arrays that an agent learns in; `values` of its parameters, `PRIOR` among them."""
    S, A = setting.n_states, setting.n_actions
    if 16 * S * A * S > AGENT_BYTES:
        raise ParameterError(
            f"{S} states and {A} actions: counts of every transition need {16e-9 * S * A * S:.0f} GB; "
            "take a smaller environment or an agent without a model"
        )
    belief = belief_for(setting, values)
    posterior = in_arrays(belief, low=setting.low, width=setting.width, unavailable=False)
    if posterior is None:
        raise lacking(belief, Capability.COUNT, "an agent that learns in arrays")
    if posterior.fractional and not (posterior.paid[0].min() >= 1 - 1e-9 and posterior.paid[1].max() <= 1e-9):
        low, high = setting.reward_range
        raise BeliefError(
            f"the belief's rewards do not cover those of the environment, {low:g} to {high:g}; "
            f"pass BetaRewards(..., low={low:g}, high={high:g})"
        )
    return posterior


def dirichlet_for(setting: Setting, values: Mapping[str, Any]) -> Posterior:
    """`posterior_for`, for agents whose mathematics is that of Dirichlet rows."""
    posterior = posterior_for(setting, values)
    if isinstance(posterior, SparsePosterior):
        raise lacking(belief_for(setting, values), Capability.COUNT, "an agent that computes with Dirichlet rows")
    return posterior


def belief_for(setting: Setting, values: Mapping[str, Any]) -> Belief:
    """The belief that was given, else the prior that `values` name."""
    if setting.belief is not None:
        return setting.belief
    if values["prior"] == "flat":
        low, high = setting.reward_range
        rewards = BetaRewards(values["successes"], values["failures"], low=low, high=high)
        return DirichletBelief(
            setting.n_states, setting.n_actions, concentration=values["concentration"], rewards=rewards
        )
    if setting.environment is None:
        raise ParameterError(
            f"prior={values['prior']} is made from the environment's MDP, which a black box does not show; "
            "pass belief=..., or take prior=flat"
        )
    if values["prior"] == "known-rewards":
        return _known_rewards(setting.environment, values["concentration"])
    return check_fits(PRIORS.find(values["prior"]).build(setting.environment), setting.environment)


def offered_belief(setting: Setting, values: Mapping[str, Any]) -> Belief:
    """`belief_for`, without the actions that the environment does not offer; refuses what `posterior_for` refuses."""
    posterior_for(setting, values)
    belief: Belief = offering(belief_for(setting, values), setting.available)
    return belief


@prior("flat", summary="every transition alike, Beta rewards; concentration=, successes= and failures= change it")
def flat(environment: Environment) -> DirichletBelief:
    """Concentration `1 / n_states` and Beta(1, 1) on the declared range of rewards."""
    low, high = environment.reward_range
    return DirichletBelief(environment.n_states, environment.n_actions, rewards=BetaRewards(low=low, high=high))


@prior("known-rewards", summary="every transition alike, the environment's rewards known; concentration= changes it")
def known_rewards(environment: Environment) -> DirichletBelief:
    """Concentration `1 / n_states`; rewards `[s,a]`, or `[s,a,t]` where they depend on the arrival."""
    return _known_rewards(environment, None)


def _known_rewards(environment: Environment, concentration: float | None) -> DirichletBelief:
    rewards = KnownRewards(_paid_on_arrival(environment))
    return DirichletBelief(environment.n_states, environment.n_actions, concentration=concentration, rewards=rewards)


@prior("support", summary="Dirichlet on the transitions that the environment allows, flat Beta rewards")
def support(environment: Environment) -> DirichletBelief:
    """Concentration 1 for each pair, in equal parts on its possible next states."""
    allowed = np.zeros((environment.n_states, environment.n_actions, environment.n_states))
    s, a, o = np.nonzero(environment.chances > 0.0)
    allowed[s, a, environment.outcomes.next_state[s, a, o]] = 1.0
    low, high = environment.reward_range
    return DirichletBelief(
        environment.n_states,
        environment.n_actions,
        concentration=allowed / allowed.sum(axis=2, keepdims=True),
        rewards=BetaRewards(low=low, high=high),
    )


@prior("sparse-support", summary="rows with few next states, and it is not known which; flat Beta rewards")
def sparse_support(environment: Environment) -> Belief:
    """`SparseDirichletBelief` with α = ½, sizes halving, and Beta(1, 1) on the declared range of rewards."""
    low, high = environment.reward_range
    return SparseDirichletBelief(environment.n_states, environment.n_actions, rewards=BetaRewards(low=low, high=high))


@prior("sparse-known-rewards", summary="rows with few next states, and it is not known which; the rewards known")
def sparse_known_rewards(environment: Environment) -> Belief:
    """`sparse-support` with the environment's rewards, as the prior of published grids and mazes."""
    rewards = KnownRewards(_paid_on_arrival(environment))
    return SparseDirichletBelief(environment.n_states, environment.n_actions, rewards=rewards)


@prior("environment", summary="the prior that the environment was drawn from (prior-chain, prior-double-loop, …)")
def environment_prior(environment: Environment) -> Belief:
    """As the environment says."""
    if environment.prior is None:
        raise ParameterError(f"{environment!r} was not drawn from a prior; take prior=flat or another")
    return environment.prior()


@prior("inaccurate", summary="of the prior that the environment was drawn from only the rewards; counts of 1")
def inaccurate(environment: Environment) -> DirichletBelief:
    """The benchmark's prior that is not the truth: concentration 1 on every next state, rewards `[s,a,t]` known."""
    rewards = getattr(environment_prior(environment), "rewards", None)
    if not isinstance(rewards, KnownRewards):
        raise ParameterError(f"the prior of {environment!r} does not know the rewards; take prior=flat or another")
    return DirichletBelief(
        environment.n_states, environment.n_actions, concentration=1.0, rewards=rewards, initial=environment.start
    )


@prior("tied", summary="one row of outcomes, such as move and slip, for all pairs; flat, rewards known")
def tied(environment: Environment) -> DirichletBelief:
    """On Chain: one chance of slipping, Beta(1, 1); every move reveals whether it slipped."""
    return _tied("tied", environment, np.zeros((environment.n_states, environment.n_actions), dtype=np.int64))


@prior("semi-tied", summary="one row of outcomes for each action; flat, rewards known")
def semi_tied(environment: Environment) -> DirichletBelief:
    """On Chain: a chance of slipping for each action, independent, each Beta(1, 1)."""
    actions = np.arange(environment.n_actions)
    return _tied("semi-tied", environment, np.tile(actions, (environment.n_states, 1)))


def _tied(name: str, environment: Environment, row: IntArray) -> DirichletBelief:
    """Pairs share `row[s,a]` of the environment's outcomes; a pair of one possible outcome is known."""
    possible = environment.chances > 0.0
    certain = possible.sum(axis=2) == 1
    n_rows = int(row.max()) + 1
    rows = np.where(certain, n_rows, row)
    arrive = np.where(possible, environment.outcomes.next_state, -1)
    alone = np.take_along_axis(arrive, possible.argmax(axis=2)[:, :, None], axis=2)
    arrive[certain] = -1
    arrive[certain, 0] = alone[certain, 0]
    concentration = np.zeros((n_rows + 1, arrive.shape[2]))
    concentration[n_rows, 0] = 1.0
    for k in range(n_rows):
        shared = possible[(rows == k)].any(axis=0)
        concentration[k] = shared if shared.any() else concentration[n_rows]
    rewards = KnownRewards(_paid_on_arrival(environment))
    try:
        return DirichletBelief.tied(rows, arrive, concentration, rewards=rewards)
    except BeliefError as cause:
        raise ParameterError(f"prior={name} does not fit {environment!r}: {cause}") from None


def _paid_on_arrival(environment: Environment) -> Any:
    """Rewards `[s,a]` if every outcome of a pair pays the same, else `[s,a,t]`; refuses where neither says it all."""
    tables, possible = environment.outcomes, environment.chances > 0.0
    first = np.take_along_axis(tables.reward, possible.argmax(axis=2)[:, :, None], axis=2)
    if (tables.reward == first)[possible].all():
        return np.array(first[:, :, 0])
    paid = np.zeros((environment.n_states, environment.n_actions, environment.n_states))
    s, a, o = np.nonzero(possible)
    t = tables.next_state[s, a, o]
    paid[s, a, t] = tables.reward[s, a, o]
    if (paid[s, a, t] != tables.reward[s, a, o]).any():
        i = int(np.argmax(paid[s, a, t] != tables.reward[s, a, o]))
        raise ParameterError(
            f"{environment!r} pays several rewards for state {s[i]}, action {a[i]}, next state {t[i]}: they are not "
            "known beforehand; take another prior"
        )
    return paid
