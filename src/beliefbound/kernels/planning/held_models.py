"""Models that an agent holds, and values that it carries from step to step: `settle` sweeps MMBI over them.

Equally weighted models `p[s,a,t,m]`, `r[s,a,m]`, with values `V[s,m]` that start at 0 (`clear`) and are warm from the
sweep before. One model makes it value iteration.

`hold` makes room for models of a posterior, dense or in compressed rows by its size and its prior (`compresses`);
`renew` draws them and `settle` sweeps over them, whatever they are. As in `kernels.posterior`, compiled code has one
form only: `p` has four axes, or one. The expected MDP of a posterior, `hold_expected`, is dense or has two.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.compressed_models import (
    OFTEN,
    CompressedModels,
    compressed_models,
    compresses,
    draw_models,
    look_at_small,
    sweep_compressed,
)
from beliefbound.kernels.planning.expected_rows import (
    ExpectedRows,
    expected_rows,
    is_alike,
    see,
    see_nothing,
    sweep_expected,
)
from beliefbound.kernels.planning.simd import zeros
from beliefbound.kernels.planning.sweep import sweep_lanes
from beliefbound.kernels.posterior import Posterior, draw_rewards, draw_transitions, expected, mean_reward


class HeldModels(NamedTuple):
    """Models, their values, and scratch."""

    p: np.ndarray  # [s,a,t,m]
    r: np.ndarray  # [s,a,m]
    w: np.ndarray  # [m], equal
    even: np.ndarray  # [s,m] values, current where `side` is 0
    odd: np.ndarray  # [s,m] values, current where `side` is 1
    side: np.ndarray  # int64 [1]
    q: np.ndarray  # [s,a,m] scratch
    mixed: np.ndarray  # [s,a] scratch
    vbar: np.ndarray  # [s] mean value over the models
    actions: np.ndarray  # int64 [s], chosen by the last sweep
    available: np.ndarray  # bool [s,a]
    discount: float


def held_models(n: int, available: np.ndarray, discount: float) -> HeldModels:
    """Room for `n` models of the size of `available[s,a]`."""
    S, A = available.shape
    return HeldModels(
        p=zeros(S, A, S, n),
        r=zeros(S, A, n),
        w=np.full(n, 1.0 / n),
        even=zeros(S, n),
        odd=zeros(S, n),
        side=np.zeros(1, np.int64),
        q=zeros(S, A, n),
        mixed=zeros(S, A),
        vbar=np.zeros(S),
        actions=np.zeros(S, np.int64),
        available=available,
        discount=discount,
    )


def hold(posterior: Posterior, n: int, available: np.ndarray, discount: float) -> HeldModels | CompressedModels:
    """Room for `n` models of a posterior, in the form in which they are swept faster."""
    if compresses(posterior):
        return compressed_models(posterior, n, available, discount)
    return held_models(n, available, discount)


def hold_expected(posterior: Posterior, available: np.ndarray, discount: float) -> HeldModels | ExpectedRows:
    """Room for the expected MDP of a posterior, in the form in which it is swept faster."""
    return expected_rows(posterior, available, discount) if is_alike(posterior) else held_models(1, available, discount)


@njit(**EXACT_INLINE)
def clear(models):
    """All values 0."""
    models.even.fill(0.0)
    models.odd.fill(0.0)
    models.vbar.fill(0.0)
    models.side[0] = 0


@njit(inline="always", **EXACT)
def renew(posterior, stream, models):
    """Independent draws from the posterior in place of the models held."""
    renew_form(models.p, posterior, stream, models)


@njit(**EXACT)
def renew_form(p, posterior, stream, models):
    """`renew`, of the form that `p` has."""
    if p.ndim == 4:
        draw_transitions(stream, posterior.alpha, posterior.row, posterior.arrive, p, models.r, posterior.room)
    else:
        draw_models(stream, posterior.alpha, models)
    draw_rewards(stream, posterior.reward, posterior.paid, posterior.arrive, p, models.r, posterior.room)


@njit(inline="always", **EXACT)
def settle(models, sweeps, tolerance):
    """At most `sweeps` MMBI sweeps, stopping after one that changes `vbar` by less than `tolerance` in sum.

    Returns how many were made; `actions` are those of the last one.
    """
    return settle_form(models.p, models, sweeps, tolerance)


@njit(**EXACT_INLINE)
def settle_form(p, models, sweeps, tolerance):
    """`settle`, of the form that `p` has."""
    v, out = (models.even, models.odd) if models.side[0] == 0 else (models.odd, models.even)
    made, change = 0, np.inf
    while made < sweeps:
        made += 1
        if p.ndim == 4:
            r, w, q, mixed, actions = models.r, models.w, models.q, models.mixed, models.actions
            change = sweep_lanes(p, r, w, models.available, models.discount, v, q, mixed, models.vbar, actions, out)
        elif p.ndim == 2:
            change = sweep_expected(models, v, out)
        else:
            if made % OFTEN == 1:
                look_at_small(models, v)
            change = sweep_compressed(models, v, out)
        if change < tolerance:
            break
        v, out = out, v
    models.side[0] = (models.side[0] + made) % 2
    return made


@njit(**EXACT)
def expect_first(p, models, prior_p, prior_r):
    """The expected MDP of the prior, `prior_p[s,a,t]` and `prior_r[s,a]`, in the form that `p` has."""
    n_states, n_actions = prior_r.shape
    if p.ndim == 2:
        see_nothing(models)
    for s in range(n_states):
        for a in range(n_actions):
            models.r[s, a, 0] = prior_r[s, a]
            if p.ndim == 4:
                for t in range(n_states):
                    p[s, a, t, 0] = prior_p[s, a, t]


@njit(inline="always", **EXACT)
def expect_again(posterior, models, s, a, t):
    """The expected MDP after an arrival in `t` from `(s, a)`: that row, and those that share parameters."""
    expect_form(models.p, posterior, models, s, a, t)


@njit(**EXACT_INLINE)
def expect_form(p, posterior, models, s, a, t):
    """`expect_again`, of the form that `p` has."""
    n_actions = models.available.shape[1]
    pair = s * n_actions + a
    if p.ndim == 2:
        see(models, posterior.alpha, pair, t)
        models.r[s, a, 0] = mean_reward(posterior, pair, models.vbar)  # which does not depend on the arrival
    else:
        models.r[s, a, 0] = expected(posterior, pair, p[s, a, :, 0])
        if posterior.tied:
            for other in range(models.available.size):
                if posterior.row[other] == posterior.row[pair]:
                    i, j = other // n_actions, other % n_actions
                    models.r[i, j, 0] = expected(posterior, other, p[i, j, :, 0])
