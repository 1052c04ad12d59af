"""What rewards may be: `r = Φ w`, and what is believed of `w` before.

* `state`: one parameter a state, paid in the state that is left.
* `pair`: one for each state and action; one for each state where episodes end.
* features `Φ`, `[s,f]` or `[s,a,f]`: one for each feature.

A state where episodes end goes on paying its reward for ever: that is how good it is to have ended there.

Priors, independent for each parameter: `uniform` on [0, 1]; `sparse`, Beta(1/4, 1), most of them near 0; `normal`,
Normal(0, 1), for features; `("beta", a, b)`, `("normal", mean, deviation)`.
"""

from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, as_floats, check_finite, check_positive, shown
from beliefbound.kernels.demonstrators.state import BETA, NORMAL

PRIORS: dict[str, tuple[str, float, float]] = {
    "uniform": ("beta", 1.0, 1.0),
    "sparse": ("beta", 0.25, 1.0),
    "normal": ("normal", 0.0, 1.0),
}


class RewardForm(NamedTuple):
    """`Φ` in compressed columns, and the prior of `w`."""

    name: str  # state, pair or features
    first: IntArray  # [f + 1]
    pair: IntArray  # [i]
    times: FloatArray  # [i]
    family: int
    prior: tuple[float, float]  # of each parameter: Beta(a, b), or mean and deviation

    @property
    def n(self) -> int:
        """How many parameters there are."""
        return len(self.first) - 1

    @property
    def level(self) -> bool:
        """Whether all parameters raised by one raise all rewards by one."""
        return self.name != "features"

    @property
    def words(self) -> str:
        """What is believed before, in words."""
        each = {"state": "state", "pair": "state and action", "features": "feature"}[self.name]
        one, two = self.prior
        law = f"Beta({one:g}, {two:g})" if self.family == BETA else f"Normal({one:g}, {two:g}²)"
        return f"one parameter per {each}, {law}"

    def rewards(self, w: FloatArray, n_pairs: int) -> FloatArray:
        """`[…,pair]` of parameters `[…,f]`."""
        phi = np.zeros((n_pairs, self.n))
        phi[self.pair, np.repeat(np.arange(self.n), np.diff(self.first))] = self.times
        paid: FloatArray = w @ phi.T
        return paid


def reward_form(reward: Any, prior: Any, n_actions: int, terminal: BoolArray) -> RewardForm:
    """The form of rewards from its name, or from features.

    >>> reward_form("pair", None, 2, np.array([False, True])).pair.tolist()
    [0, 1, 2, 3]
    """
    S, pairs = len(terminal), np.arange(len(terminal) * n_actions)
    if isinstance(reward, str):
        if reward not in ("state", "pair"):
            raise ParameterError(f"reward is {shown(reward)}; give 'state', 'pair', or features [s,f] or [s,a,f]")
        family, law = _prior("uniform" if prior is None else prior)
        alone = np.repeat(~terminal, n_actions) if reward == "pair" else np.zeros(S * n_actions, dtype=np.bool_)
        begins = alone | (pairs % n_actions == 0)
        first = np.append(np.flatnonzero(begins), S * n_actions).astype(np.int64)
        return RewardForm(reward, first, pairs, np.ones(S * n_actions), family, law)
    phi = as_floats(reward, "features", ParameterError)
    if phi.ndim not in (2, 3) or phi.shape[: phi.ndim - 1] != (S, n_actions)[: phi.ndim - 1] or phi.shape[-1] < 1:
        raise ParameterError(f"features have shape {phi.shape}; expected ({S}, f) or ({S}, {n_actions}, f)")
    check_finite(phi, "features", ("state", "action", "feature")[3 - phi.ndim :], ParameterError)
    if phi.ndim == 2:
        phi = np.repeat(phi[:, None], n_actions, axis=1)
    columns = phi.reshape(S * n_actions, -1).T
    if not columns.any(axis=1).all():
        empty = int(np.argmin(columns.any(axis=1)))
        raise ParameterError(f"feature {empty} is 0 everywhere; leave it out")
    f, at = np.nonzero(columns)
    first = np.searchsorted(f, np.arange(len(columns) + 1)).astype(np.int64)
    family, law = _prior("normal" if prior is None else prior)
    return RewardForm("features", first, at.astype(np.int64), columns[f, at], family, law)


def _prior(prior: Any) -> tuple[int, tuple[float, float]]:
    given = PRIORS.get(prior, prior) if isinstance(prior, str) else prior
    if not (isinstance(given, tuple) and len(given) == 3 and given[0] in ("beta", "normal")):
        names = ", ".join(map(repr, PRIORS))
        raise ParameterError(
            f"reward_prior is {shown(prior)}; give one of {names}, ('beta', a, b) or ('normal', mean, deviation)"
        )
    if given[0] == "beta":
        return BETA, (check_positive(given[1], "reward_prior a"), check_positive(given[2], "reward_prior b"))
    mean = as_floats(given[1], "reward_prior mean", ParameterError).reshape(-1)
    if mean.shape != (1,) or not np.isfinite(mean).all():
        raise ParameterError(f"reward_prior mean is {shown(given[1])}; give a finite number")
    return NORMAL, (float(mean[0]), check_positive(given[2], "reward_prior deviation"))
