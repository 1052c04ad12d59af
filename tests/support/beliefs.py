"""Beliefs to try things on."""

import numpy as np

from beliefbound.beliefs import DirichletBelief, FiniteBelief, KnownRewards
from support import oracles

SIGNALS = ("known", "deterministic", "bernoulli", "unobserved")
ROUNDING = 1e-9


def random_belief(rng, signal, n_models=3, n_states=2, n_actions=2, levels=3):
    P, r, w, p0 = oracles.random_models(rng, n_models, n_states, n_actions, equal_rewards=signal == "known")
    if signal == "deterministic":
        r = np.floor(levels * r) / levels  # ties between models, so that rewards reveal something but not all
    return FiniteBelief(P, r, w, reward_signal=signal, initial=p0), (P, r, w, p0)


def chain_rewards():
    """Expected rewards of Chain: back pays 2, forward pays 10 in the last state, a fifth of the moves are swapped."""
    r = np.zeros((5, 2))
    forward = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    r[:, 0], r[:, 1] = 0.8 * 2 + 0.2 * forward, 0.2 * 2 + 0.8 * forward
    return r


def chain_belief(steps, seed):
    """The Dirichlet(1/5) posterior after random steps in Chain, rewards known."""
    rng = np.random.default_rng(seed)
    belief, s = DirichletBelief(5, 2, rewards=KnownRewards(chain_rewards()), initial=0), 0
    for _ in range(steps):
        a = int(rng.integers(2))
        moved = a if rng.random() < 0.8 else 1 - a
        t = min(s + 1, 4) if moved == 1 else 0
        belief, s = belief.update(s, a, None, t), t
    return belief


def two_armed(rewards):
    """One state, two arms; transitions certain."""
    return DirichletBelief(1, 2, concentration=1.0, rewards=rewards, initial=0)
