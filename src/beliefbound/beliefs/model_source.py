"""`ModelSource`: models of a belief for planning and valuing, in the form that suits their rows.

Where a belief has many states and its rows put nearly all their mass on few of them, models are drawn straight into
compressed rows (`kernels.compressed_draws`: exact up to a mass of 1e-12 a row), in time and memory of their entries.
Otherwise they are `belief.sample`'s. Rewards are expected ones: what a step would show of them is left out.
"""

from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray, frozen
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.kernels.compressed_draws import by_model, draw_by_row
from beliefbound.kernels.draws import dirichlet_models
from beliefbound.kernels.planning.compressed_models import LEAST_STATES, SHARE, smallest_positive
from beliefbound.kernels.planning.compressed_rows import expected_entries
from beliefbound.kernels.random import stream_from
from beliefbound.models import Csr, ModelSet


class ModelSource:
    """Draws models of a belief.

    Attributes:
      belief: whose models.
      entries: probabilities that one model holds, about.
      compressed: whether they are held in compressed rows.
    """

    def __init__(self, belief: Belief) -> None:
        self.belief = belief
        self.entries = float(belief.n_states**2 * belief.n_actions)
        self.compressed = False
        self._paid: FloatArray | None = None  # [k,(s,a),t or 1]: what value k of a pair pays
        if isinstance(belief, DirichletBelief) and belief.ties is None and belief.n_states >= LEAST_STATES:
            self._look(belief)

    def _look(self, belief: DirichletBelief) -> None:
        alpha = belief.concentration.reshape(-1, belief.n_states)
        common = smallest_positive(alpha)
        held = float(expected_entries(alpha, common).sum())
        if held > SHARE * alpha.size:
            return
        self.entries, self.compressed = held, True
        self._alpha = np.where(belief.available.reshape(-1, 1), alpha, 0.0)
        self._common = common
        columns = belief.rewards.columns()
        if columns is None:
            return
        flat = bool((columns.paid == columns.paid[..., :1]).all())
        paid = columns.paid[..., :1] if flat else columns.paid
        self._paid = np.ascontiguousarray(paid.reshape(len(paid), -1, paid.shape[-1]))
        self._counts = np.ascontiguousarray(np.moveaxis(columns.counts, 0, -1))  # [s,a,k]

    def sample(self, n: int, rng: np.random.Generator) -> FiniteBelief:
        """`n` independent models, equally weighted."""
        import scipy.sparse as sp

        if not self.compressed:
            return self.belief.sample(n, rng)
        belief, stream = self.belief, stream_from(rng)
        assert isinstance(belief, DirichletBelief)
        starts, index, p = by_model(*draw_by_row(stream, self._alpha, self._common, n))
        shape = (n, belief.n_states, belief.n_actions)
        matrix = sp.csr_array((p, index, starts), shape=(n * belief.n_states * belief.n_actions, belief.n_states))
        rewards = self._rewards(n, stream, starts, index, p).reshape(shape)
        kept = belief.available & ~belief.terminal[:, None]
        models = ModelSet(Csr((matrix,), shape), frozen(np.where(kept, rewards, 0.0)), belief.available)
        return FiniteBelief.of(models, reward_signal="unobserved", initial=belief.initial)

    def _rewards(self, n: int, stream: Any, starts: IntArray, index: IntArray, p: FloatArray) -> FloatArray:
        """Expected rewards `[m,(s,a)]` of models whose rows are given."""
        if self._paid is None:
            assert isinstance(self.belief, DirichletBelief)
            return self.belief.rewards.sample(n, stream).rewards.reshape(n, -1)
        n_pairs = self._counts.shape[0] * self._counts.shape[1]
        chances = np.ones((n, *self._counts.shape))
        if self._counts.shape[-1] > 1:
            dirichlet_models(stream, self._counts, chances)
        chances = chances.reshape(n, n_pairs, -1)
        if self._paid.shape[-1] == 1:
            flat: FloatArray = np.einsum("mik,ki->mi", chances, self._paid[..., 0])
            return flat
        row = np.repeat(np.arange(n * n_pairs), np.diff(starts))
        total = np.zeros(n * n_pairs)
        for k, paid in enumerate(self._paid):
            on_way = np.bincount(row, weights=p * paid[row % n_pairs, index], minlength=n * n_pairs)
            total += chances[..., k].ravel() * on_way
        return total.reshape(n, n_pairs)
