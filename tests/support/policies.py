"""One policy of every kind, and walks of them."""

import numpy as np

from beliefbound.base.io.formats.policyx import AlphaVectors
from beliefbound.beliefs import BetaRewards, DirichletBelief
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.bounds.finite.adaptive import SETTLE, AdaptivePolicy
from beliefbound.bounds.finite.alpha_policy import AlphaPolicy
from beliefbound.bounds.finite.controller_value import completed
from beliefbound.bounds.finite.mixed import MixedPolicy, join_controllers
from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.bounds.finite.relaxation import certifier_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, StationaryPolicy
from support.beliefs import chain_belief, random_belief

KINDS = (
    "stationary",
    "stationary stochastic",
    "memoryless",
    "memoryless stochastic",
    "settled",
    "settled, horizon",
    "looks ahead",
    "looks ahead, horizon",
    "particles",
    "particles, rewards to learn",
    "mixed",
    "alpha vectors",
)


ONE_OF_EACH = ("memoryless stochastic", "settled, horizon", "looks ahead", "particles", "mixed", "alpha vectors")


def adaptive(signal, *, stop=SETTLE, horizon=None, seed=1, nodes=30, n_states=3, tolerance=None):
    """`(policy, certifier)` of a random belief of four models."""
    belief, _ = random_belief(np.random.default_rng(seed), signal, n_models=4, n_states=n_states)
    certifier = certifier_of(FiniteTask.of(belief, discount=0.9, horizon=horizon), core_nodes=nodes)
    certifier.grow(nodes)
    certifier.freeze_values()
    if tolerance is not None:
        certifier.tolerance = tolerance
    return AdaptivePolicy(certifier, stop=stop), certifier


def policy_of(kind):
    """A policy for three states and two actions, of at least 30 decisions."""
    rng = np.random.default_rng(5)
    if kind.startswith("stationary"):
        if kind == "stationary":
            return StationaryPolicy([1, 0, 1])
        return StationaryPolicy(probabilities=rng.dirichlet([1.0, 1.0], size=3))
    if kind.startswith("memoryless"):
        if kind == "memoryless":
            return MemorylessPolicy(rng.integers(0, 2, size=(30, 3)))
        return MemorylessPolicy(probabilities=rng.dirichlet([1.0, 1.0], size=(30, 3)))
    horizon = 30 if "horizon" in kind else None
    if kind.startswith("settled"):
        return adaptive("bernoulli", horizon=horizon)[0]
    if kind == "mixed":
        parts = [adaptive("bernoulli", nodes=nodes)[0].data[0] for nodes in (1, 30)]
        return MixedPolicy(join_controllers([completed(part) for part in parts]), np.array([0.25, 0.75]))
    if kind == "alpha vectors":
        belief = random_belief(np.random.default_rng(1), "bernoulli", n_models=4, n_states=3)[0]
        vectors = AlphaVectors(np.repeat(np.arange(3), 4), rng.integers(0, 2, size=12), rng.random((12, 4)))
        return AlphaPolicy(vectors, outcome_rows(belief), belief.weights, belief.available)
    if kind.startswith("looks ahead"):
        return adaptive("bernoulli", stop=0.5, horizon=horizon, tolerance=1e-3)[0]
    rewards = BetaRewards(1.0, 1.0) if "learn" in kind else chain_belief(0, 0).rewards
    if "learn" in kind:
        belief = DirichletBelief(3, 2, concentration=0.5, rewards=rewards, initial=0)
        return ParticlePolicy(belief, np.full(3, 1 / 3), 0.9, 30, 3, ((0.5, 64), (0.0, 32)))
    known = type(rewards)(np.linspace(0.0, 1.0, 6).reshape(3, 2))
    belief = DirichletBelief(3, 2, rewards=known, initial=0)
    return ParticlePolicy(belief, np.full(3, 1 / 3), 0.9, None, 7, ((0.5, 64), (0.0, 32)))


def walk(policy, steps, *, seed, noise, stray=0.0):
    """Actions of a policy from a reset on, in a world of uniform outcomes with rewards 0 and 1; a share `stray` of the
    steps takes another action than advised."""
    rng = np.random.default_rng(noise)
    policy.reset(seed)
    s, advised = int(rng.integers(policy.n_states)), []
    for _ in range(steps):
        a = policy.act(s)
        advised.append(a)
        if rng.random() < stray:
            a = int(rng.integers(2))
        t, reward = int(rng.integers(policy.n_states)), float(rng.random() < 0.4)
        policy.observe(s, a, reward, t)
        s = t
    return advised
