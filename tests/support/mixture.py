"""A belief of somebody's own, in one file: a mixture `Σ w_i ξ_i` of beliefs, as somebody would write it who did not
know `MixtureBelief`. It proves that one file is enough; `MixtureBelief` checks its input and does more.

Draw: a part, then a model of it. Condition: each part is, and `w_i` becomes proportional to `w_i p_i(what was seen)`.
Predict: parts mixed. It counts nothing and enumerates nothing.
"""

import numpy as np

from beliefbound import MDP, FiniteBelief
from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.beliefs.files import belief_kind, belief_of, entries_of
from beliefbound.models import Dense, ModelSet


@belief_kind("two-minds", summary="one of several beliefs, and it is not known which")
class Mixture:
    """Weights `[i]` and beliefs about the same states and actions, whose rewards show the same."""

    def __init__(self, parts, weights):
        self.parts, self.weights = tuple(parts), np.asarray(weights, dtype=float)
        if self.weights.shape != (len(self.parts),) or abs(self.weights.sum() - 1.0) > 1e-9:
            raise BeliefError(f"weights are {self.weights}; give one per part, which sum to 1")
        first = self.parts[0]
        self.n_states, self.n_actions, self.available = first.n_states, first.n_actions, first.available
        self.initial, ranges = first.initial, [part.reward_range for part in self.parts]
        known = all(range_ is not None for range_ in ranges)
        self.reward_range = (min(x[0] for x in ranges), max(x[1] for x in ranges)) if known else None

    def __repr__(self):
        return f"Mixture({len(self.parts)} parts, {self.n_states} states, {self.n_actions} actions)"

    def sample(self, n, rng=None):
        rng = np.random.default_rng(rng)
        chosen = rng.choice(len(self.parts), size=n, p=self.weights)
        drawn = [part.sample(n, rng) for part in self.parts]  # of each as many, so that signals line up
        models = ModelSet(
            Dense(np.stack([drawn[i].transitions[k] for k, i in enumerate(chosen)])),
            np.stack([drawn[i].rewards[k] for k, i in enumerate(chosen)]),
            self.available,
        )
        signal = "bernoulli" if drawn[0].signal.teaches else "known"
        return FiniteBelief.of(models, reward_signal=signal, reward_range=self.reward_range, initial=self.initial)

    def update(self, state, action, reward, next_state):
        logs = np.full(len(self.parts), -np.inf)
        after = list(self.parts)
        for i, part in enumerate(self.parts):
            try:
                logs[i] = np.log(self.weights[i]) + part.log_marginal_likelihood(state, action, reward, next_state)
                after[i] = part.update(state, action, reward, next_state)
            except ObservationError as cause:  # ruled out by this part
                fault = cause
        if not np.isfinite(logs).any():
            raise fault
        weights = np.exp(logs - logs.max())
        return Mixture(after, weights / weights.sum())

    def predictive(self, state, action):
        return sum(w * part.predictive(state, action) for w, part in zip(self.weights, self.parts, strict=True))

    def mean(self):
        means = [part.mean() for part in self.parts]
        p, r = (np.tensordot(self.weights, [getattr(mean, x) for mean in means], 1) for x in ("transitions", "rewards"))
        return MDP(p, r, initial=self.initial, available=self.available, normalize=True)

    def to_entries(self):
        own = {"weights": self.weights}
        for i, part in enumerate(self.parts):
            own |= entries_of(part, prefix=f"part{i}_")
        return own

    @classmethod
    def from_entries(cls, entries):
        weights = entries["weights"]
        return cls([belief_of(entries, prefix=f"part{i}_") for i in range(len(weights))], weights)
