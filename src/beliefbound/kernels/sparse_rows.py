"""Rows with unknown small supports in the compiled posterior (`beliefs.kinds.sparse` has the law).

A row of n possible outcomes has a support of size k with the chance `w_k`, every support of that size alike, and
`Dirichlet(c, …, c)` on it. After T tries that showed k₀ outcomes, a size k gives an outcome that was seen N times the
chance `(c + N) / (kc + T)`, and each that was not seen `c (k − k₀) / (n − k₀) / (kc + T)`. So to learn is to multiply
`w_k` by `1 / (kc + T)`, and by `k − k₀` if the outcome is new.

`alpha[row]` holds counts whose shares are the predictive, so that whatever takes expected rows from a posterior, or
draws from the predictive, works as it is: `c + N` where seen, and where not, with `E` over `w`,

    c E[(k − k₀) / (kc + T)] / E[1 / (kc + T)] / (n − k₀),       at most c.

Their sum is `1 / E[1 / (kc + T)]`, the harmonic mean of `kc + T`: what agents that count tries call α0. Variances that
an agent computes from counts are those of a Dirichlet with these. Models are drawn with the right law: a size, the
rest of the support, a Dirichlet on it.

What is here is called by `kernels.posterior` and `kernels.planning.urn` where they are given these classes, and is not
compiled otherwise.
"""

from collections import namedtuple
from typing import Any

from numba import njit

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.random import uniform
from beliefbound.kernels.reference import by_reference

kernel = njit(**EXACT)

LEAST = 1e-290  # a size that is possible has no smaller chance, so that a surprise is no division by zero
SEEN, TRIES = range(2)  # of a row


def with_fields(name: str, fields: tuple[str, ...], more: tuple[str, ...]) -> Any:
    """A NamedTuple with the fields of another, and more."""
    cls = namedtuple(name, fields + more)  # type: ignore[misc]
    return by_reference(cls)


MORE = (
    "sizes",  # [row,k−1]: w
    "prior_sizes",
    "seen",  # [row,2]: k₀ and T
    "prior_seen",
    "unseen",  # [row]: what `alpha` is where nothing was seen
    "prior_unseen",
    "possible",  # [row]: n
    "concentration",  # c
)


@kernel
def restart_sparse(posterior):
    """`forget`, of what is more than counts."""
    for row in range(posterior.unseen.size):
        posterior.unseen[row] = posterior.prior_unseen[row]
        for i in range(2):
            posterior.seen[row, i] = posterior.prior_seen[row, i]
        for i in range(posterior.sizes.shape[1]):
            posterior.sizes[row, i] = posterior.prior_sizes[row, i]


@out_of_line
@kernel
def settle_sparse(posterior, row, j):
    """Learn outcome `j` of a row, to whose count one has been added already."""
    alpha, sizes, c = posterior.alpha, posterior.sizes, posterior.concentration
    k0, tries, n = posterior.seen[row, SEEN], posterior.seen[row, TRIES], int(posterior.possible[row])
    new = alpha[row, j] <= c + 1.0
    total = 0.0
    for i in range(n):
        k = i + 1.0
        sizes[row, i] *= (max(k - k0, 0.0) if new else 1.0) / (k * c + tries)
        total += sizes[row, i]
    if new:
        alpha[row, j] = c + 1.0
        k0 += 1.0
    tries += 1.0
    posterior.seen[row, SEEN], posterior.seen[row, TRIES] = k0, tries
    more, one = 0.0, 0.0
    for i in range(int(k0) - 1, n):
        k = i + 1.0
        if posterior.prior_sizes[row, i] > 0.0:
            sizes[row, i] = max(sizes[row, i] / total, LEAST)
        more += sizes[row, i] * (k - k0) / (k * c + tries)
        one += sizes[row, i] / (k * c + tries)
    set_unseen(posterior, row, min(c * more / one / (n - k0), c) if n > k0 else 0.0)


@kernel
def set_unseen(posterior, row, x):
    """The count of every outcome of a row that was not seen."""
    alpha, c = posterior.alpha, posterior.concentration
    posterior.unseen[row] = x
    for j in range(alpha.shape[1]):
        if alpha[row, j] <= c and posterior.prior_alpha[row, j] > 0.0:
            alpha[row, j] = x


@out_of_line
@kernel
def draw_row_sparse(posterior, stream, row, theta):
    """One draw of a row, to `theta[j]`: a size, which of the unseen, and a Dirichlet."""
    alpha, sizes, c = posterior.alpha, posterior.sizes, posterior.concentration
    held = posterior.scratch[: alpha.shape[1]]
    k0, n = posterior.seen[row, SEEN], int(posterior.possible[row])
    u, size, total = uniform(stream), n, 0.0
    for i in range(n):
        total += sizes[row, i]
    u *= total
    for i in range(n):
        u -= sizes[row, i]
        if u < 0.0:
            size = i + 1
            break
    wanted, left = size - k0, n - k0
    for j in range(held.size):
        held[j] = 0.0
        if alpha[row, j] > c:
            held[j] = alpha[row, j]
        elif posterior.prior_alpha[row, j] > 0.0:
            if wanted > 0.0 and uniform(stream) * left < wanted:
                held[j] = c
                wanted -= 1.0
            left -= 1.0
    dirichlet_row(stream, held, theta)


@out_of_line
@kernel
def draw_transitions_sparse(posterior, stream, p, scratch):
    """Transitions `p[s,a,t,m]` of independent models."""
    n_states, n_actions, _, n = p.shape
    theta = posterior.scratch[n_states : 2 * n_states]
    for pair in range(n_states * n_actions):
        for m in range(n):
            draw_row_sparse(posterior, stream, pair, theta)
            for t in range(n_states):
                p[pair // n_actions, pair % n_actions, t, m] = theta[t]


@kernel
def draw_size_sparse(posterior, urn, row, u):
    """Draw the size k of a row's support with the quantile `u`, unless it is drawn; what is left of `u`, a quantile
    again. Given k, what was not seen has the count `c (k − k₀)` in all, whatever T is: to count is then to add one, and
    more only where an outcome is new. So simulations draw sizes as they meet rows, which is the same law."""
    if urn.drawn[row] > 0:
        return u
    sizes, c, n = posterior.sizes, posterior.concentration, int(posterior.possible[row])
    k0 = posterior.seen[row, SEEN]
    i = max(int(k0) - 1, 0)
    while i < n - 1 and u >= sizes[row, i]:
        u -= sizes[row, i]
        i += 1
    k = i + 1
    urn.drawn[row] = k
    urn.met[urn.met_size[0]] = row
    urn.met_size[0] += 1
    urn.root_unseen[row], urn.root_total[row] = posterior.unseen[row], urn.total[row]
    urn.total[row] = k * c + posterior.seen[row, TRIES]
    set_unseen(posterior, row, c * (k - k0) / (n - k0) if n > k0 else 0.0)
    return min(max(u, 0.0) / max(sizes[row, i], LEAST), 1.0)


@kernel
def note_sparse(posterior, urn, i, row, j):
    """Keep what a row was, as entry `i` of the journal, and learn outcome `j`, to whose count one was added."""
    k, c, n = urn.drawn[row], posterior.concentration, posterior.possible[row]
    urn.unseen[i] = posterior.unseen[row]
    if k == 0:
        for size in range(int(n)):
            urn.sizes[i, size] = posterior.sizes[row, size]
        settle_sparse(posterior, row, j)
        k0, tries = posterior.seen[row, SEEN], posterior.seen[row, TRIES]
        urn.total[row] = k0 * c + tries + (n - k0) * posterior.unseen[row]
    elif urn.before[i] <= c:
        posterior.alpha[row, j] = c + 1.0
        posterior.seen[row, SEEN] += 1.0
        k0 = posterior.seen[row, SEEN]
        set_unseen(posterior, row, c * (k - k0) / (n - k0) if n > k0 else 0.0)


@kernel
def take_back_sparse(posterior, urn, i):
    """A row as it was before entry `i` of the journal, whose count and total are back already."""
    row = urn.row[i]
    new, whole = urn.before[i] <= posterior.concentration, urn.drawn[row] == 0
    if new:
        posterior.seen[row, SEEN] -= 1.0
    if whole:
        posterior.seen[row, TRIES] -= 1.0
        for k in range(int(posterior.possible[row])):
            posterior.sizes[row, k] = urn.sizes[i, k]
    if new or whole:
        set_unseen(posterior, row, urn.unseen[i])


@kernel
def forget_sizes_sparse(posterior, urn):
    """Nothing is drawn any more of the rows that a simulation met, all of whose outcomes are taken back."""
    for i in range(urn.met_size[0]):
        row = urn.met[i]
        urn.drawn[row] = 0
        urn.total[row] = urn.root_total[row]
        set_unseen(posterior, row, urn.root_unseen[row])
    urn.met_size[0] = 0
