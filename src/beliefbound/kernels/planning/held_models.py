"""Models that an agent holds, and values that it carries from step to step: `mmbi_sweeps` sweeps MMBI over them.

Equally weighted models `p[s,a,t,m]`, `r[s,a,m]`, with values `V[s,m]` that start at 0 (`clear`) and are warm from the
sweep before. One model makes it value iteration.

`hold` makes empty arrays for models of a posterior, dense or in compressed rows by its size and its prior
(`compresses`); `renew` draws them and `mmbi_sweeps` sweeps over them, whatever they are: compiled code is chosen by
their class. The expected MDP of a posterior, `hold_expected`, is dense or in compressed rows of its own.

Dense models are of one of three classes, so that what is compiled is what is used: most posteriors are drawn from by
less code (`PlainModels`), and one model needs no loop over models (`ExpectedModel`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import draw_lanes
from beliefbound.kernels.lines import zeros
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.out_of_line import out_of_line
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
    values_expected,
)
from beliefbound.kernels.planning.simd import backup_1
from beliefbound.kernels.planning.sweep import backup_lanes, best_action, choose_lanes
from beliefbound.kernels.posterior import (
    Posterior,
    draw_rewards,
    draw_success,
    draw_transitions,
    expected,
    mean_reward,
)
from beliefbound.kernels.reference import by_class, by_reference


@by_reference
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
    row: np.ndarray  # [s] scratch
    vbar: np.ndarray  # [s] mean value over the models
    actions: np.ndarray  # int64 [s], chosen by the last sweep
    available: np.ndarray  # bool [s,a]
    discount: float


@by_reference
class PlainModels(HeldModels):
    """Models of a posterior whose pairs have rows of their own and whose rewards are known, or success or failure."""


@by_reference
class ExpectedModel(HeldModels):
    """One model, the expected MDP of a posterior."""


def held_models(n: int, available: np.ndarray, discount: float) -> HeldModels:
    """Empty arrays for `n` models of the size of `available[s,a]`."""
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
        row=np.zeros(S),
        vbar=np.zeros(S),
        actions=np.zeros(S, np.int64),
        available=available,
        discount=discount,
    )


def hold(posterior: Posterior, n: int, available: np.ndarray, discount: float) -> HeldModels | CompressedModels:
    """Empty arrays for `n` models of a posterior, in the form in which they are swept faster."""
    if compresses(posterior):
        return compressed_models(posterior, n, available, discount)
    models, paid = held_models(n, available, discount), posterior.paid
    is_plain = isinstance(posterior, Posterior) and not posterior.tied and paid.shape[0] <= 2 and paid.shape[2] == 1
    return PlainModels(*models) if is_plain else models


def hold_expected(posterior: Posterior, available: np.ndarray, discount: float) -> ExpectedModel | ExpectedRows:
    """Empty arrays for the expected MDP of a posterior, in the form in which it is swept faster."""
    return expected_rows(posterior, available, discount) if is_alike(posterior) else expected_model(available, discount)


def expected_model(available: np.ndarray, discount: float) -> ExpectedModel:
    """Empty arrays for one model, dense."""
    return ExpectedModel(*held_models(1, available, discount))


@njit(inline="always", **EXACT)
def clear(models):
    """All values 0."""
    models.even.fill(0.0)
    models.odd.fill(0.0)
    models.vbar.fill(0.0)
    models.side[0] = 0


@out_of_line
@njit(**EXACT)
def renew_held(posterior, stream, models):
    """`renew`, dense."""
    draw_transitions(posterior, stream, models.p, models.r)
    draw_rewards(posterior, stream, models.p, models.r)


@out_of_line
@njit(**EXACT)
def renew_plain(posterior, stream, models):
    """`renew`, dense, of plain models; `r` is scratch until it is drawn."""
    draw_lanes(stream, posterior.alpha, models.p.reshape(models.p.size), models.r.reshape(models.r.size))
    draw_success(posterior, stream, models.r)


@out_of_line
@njit(**EXACT)
def renew_compressed(posterior, stream, models):
    """`renew`, in compressed rows, which have known or Bernoulli rewards."""
    draw_models(stream, posterior.alpha, models)
    draw_success(posterior, stream, models.r)


@by_class({HeldModels: renew_held, PlainModels: renew_plain, CompressedModels: renew_compressed}, 2)
def renew(posterior, stream, models):
    """Independent draws from the posterior in place of the models held."""


@njit(**EXACT_INLINE)
def mmbi_sweeps_held(models, sweeps, tolerance):
    """`mmbi_sweeps`, dense. Fields are read before the loop, as in `repeat_dense`."""
    p, r, w, discount, q, mixed = models.p, models.r, models.w, models.discount, models.q, models.mixed
    available, vbar, actions = models.available, models.vbar, models.actions
    v, out = (models.even, models.odd) if models.side[0] == 0 else (models.odd, models.even)
    made = 0
    while made < sweeps:
        made += 1
        backup_lanes(p, r, w, 0, discount, v, q, mixed)
        if choose_lanes(q, mixed, available, vbar, actions, out) < tolerance:
            break
        v, out = out, v
    models.side[0] = (models.side[0] + made) % 2
    return made


@njit(**EXACT_INLINE)
def mmbi_sweeps_rows(models, sweeps, tolerance):
    """`mmbi_sweeps`, of an expected MDP in compressed rows."""
    v, out = (models.even, models.odd) if models.side[0] == 0 else (models.odd, models.even)
    made = 0
    while made < sweeps:
        made += 1
        if sweep_expected(models, v, models.actions, out) < tolerance:
            break
        v, out = out, v
    models.side[0] = (models.side[0] + made) % 2
    return made


@out_of_line
@njit(**EXACT)
def mmbi_sweeps_compressed(models, sweeps, tolerance):
    """`mmbi_sweeps`, in compressed rows, with a look at their small entries now and then."""
    v, out = (models.even, models.odd) if models.side[0] == 0 else (models.odd, models.even)
    made = 0
    while made < sweeps:
        if made % OFTEN == 0:
            look_at_small(models, v)
        made += 1
        if sweep_compressed(models, v, out) < tolerance:
            break
        v, out = out, v
    models.side[0] = (models.side[0] + made) % 2
    return made


@by_class(
    {
        HeldModels: mmbi_sweeps_held,
        PlainModels: mmbi_sweeps_held,
        ExpectedRows: mmbi_sweeps_rows,
        CompressedModels: mmbi_sweeps_compressed,
    },
    0,
)
def mmbi_sweeps(models, sweeps, tolerance):
    """At most `sweeps` MMBI sweeps, stopping after one that changes `vbar` by less than `tolerance` in sum.

    Returns how many were made; `actions` are those of the last one.
    """


@njit(**EXACT_INLINE)
def repeat_dense(models, sweeps):
    """`repeat`, dense. Fields are read before the loop: in it, they made a step of Exploit a quarter longer."""
    p, r, w, discount, q, mixed = models.p, models.r, models.w, models.discount, models.q, models.mixed
    available, vbar, actions = models.available, models.vbar, models.actions
    v, out = (models.even, models.odd) if models.side[0] == 0 else (models.odd, models.even)
    n_states, n_actions = available.shape
    for _ in range(sweeps):
        for s in range(n_states):
            for a in range(n_actions):
                mixed[s, a] = 0.0
        backup_1(p, r, w, discount, v, q, mixed, n_states, n_actions, 1, 0, 0)
        for s in range(n_states):
            actions[s], vbar[s] = best_action(mixed, available, s)
            out[s, 0] = vbar[s]
        v, out = out, v
    models.side[0] = (models.side[0] + sweeps) % 2


@njit(**EXACT_INLINE)
def repeat_rows(models, sweeps):
    """`repeat`, of an expected MDP in compressed rows."""
    mmbi_sweeps_rows(models, sweeps, 0.0)


@by_class({ExpectedModel: repeat_dense, ExpectedRows: repeat_rows}, 0)
def repeat(models, sweeps):
    """So many sweeps over an expected MDP; `actions` are those of the last one."""


@njit(**EXACT_INLINE)
def values_dense(models, s):
    """`action_values`, dense."""
    return models.mixed[s]


@njit(**EXACT_INLINE)
def values_rows(models, s):
    """`action_values`, of an expected MDP in compressed rows: once more from the values before the last sweep."""
    return values_expected(models, models.odd if models.side[0] == 0 else models.even, s)


@by_class({ExpectedModel: values_dense, ExpectedRows: values_rows}, 0)
def action_values(models, s):
    """`Q(s, ·)` of the last sweep over an expected MDP, `[a]`."""


@out_of_line
@njit(**EXACT)
def expect_dense(models, prior_p, prior_r):
    """`expect_first`, dense."""
    n_states, n_actions = prior_r.shape
    for s in range(n_states):
        for a in range(n_actions):
            models.r[s, a, 0] = prior_r[s, a]
            for t in range(n_states):
                models.p[s, a, t, 0] = prior_p[s, a, t]


@out_of_line
@njit(**EXACT)
def expect_rows(models, prior_p, prior_r):
    """`expect_first`, in compressed rows."""
    see_nothing(models)
    for s in range(prior_r.shape[0]):
        for a in range(prior_r.shape[1]):
            models.r[s, a, 0] = prior_r[s, a]


@by_class({ExpectedModel: expect_dense, ExpectedRows: expect_rows}, 0)
def expect_first(models, prior_p, prior_r):
    """The expected MDP of the prior, `prior_p[s,a,t]` and `prior_r[s,a]`."""


@njit(inline="always", **EXACT)
def expect_pair(posterior, models, pair):
    """The expected row of a pair, dense."""
    s, a = pair // models.available.shape[1], pair % models.available.shape[1]
    models.r[s, a, 0] = expected(posterior, pair, models.p[s, a, :, 0])


@njit(**EXACT)
def expect_all(posterior, models):
    """The expected MDP of the counts as they are, dense."""
    for pair in range(models.available.size):
        expect_pair(posterior, models, pair)


@out_of_line
@njit(**EXACT)
def expect_tied(posterior, models, s, a):
    """`expect_again` where rows are tied, dense: the rows of all pairs that share the parameters of one."""
    pair = s * models.available.shape[1] + a
    for other in range(models.available.size):
        if posterior.row[other] == posterior.row[pair]:
            expect_pair(posterior, models, other)


@njit(**EXACT_INLINE)
def expect_again_dense(posterior, models, s, a, t):
    """`expect_again`, dense: `expected`, of a row that nobody shares."""
    pair, alpha = s * models.available.shape[1] + a, posterior.alpha
    total = 0.0
    for j in range(alpha.shape[1]):
        total += alpha[pair, j]
    for j in range(alpha.shape[1]):
        models.p[s, a, j, 0] = alpha[pair, j] / total
    models.r[s, a, 0] = mean_reward(posterior, pair, models.p[s, a, :, 0])


@out_of_line
@njit(**EXACT)
def expect_again_rows(posterior, models, s, a, t):
    """`expect_again`, in compressed rows, whose rewards do not depend on the arrival."""
    pair = s * models.available.shape[1] + a
    see(models, posterior.alpha, pair, t)
    models.r[s, a, 0] = mean_reward(posterior, pair, models.vbar)


@by_class({ExpectedModel: expect_again_dense, ExpectedRows: expect_again_rows}, 1)
def expect_again(posterior, models, s, a, t):
    """The expected MDP after an arrival in `t` from `(s, a)`: that row; where rows are tied, `expect_tied`."""
