"""Bayesian Q-learning (Dearden, Friedman & Russell, AAAI 1998).

The return R of a pair – the discounted sum of rewards that follows – is taken for normal, with unknown mean μ and
precision τ: `τ ~ Gamma(a, rate b)`, `μ | τ ~ N(μ0, 1/(λτ))`, independent between pairs. A transition with scaled reward
x to state t shows a sample of `x + γR'`, R' being the return of the action of largest `μ0` in t, which is not seen but
believed to be Student-t. Two ways to learn from it:

* `update=moment`: as if one sample with the moments `M1 = x + γ E R'` and `M2 = E (x + γR')²` had been seen,
  `E R' = μ0'` and `E R'² = (λ'+1)/λ' · b'/(a'−1) + μ0'²`:
  `μ0 ← (λμ0 + M1)/(λ+1)`, `b ← b + (M2 − M1²)/2 + λ(M1 − μ0)²/(2(λ+1))`, `λ ← λ+1`, `a ← a + ½`. It becomes certain
  too fast, says the paper.
* `update=mixture`: the posteriors of every possible R' are averaged, and replaced by the Normal-Gamma nearest in
  relative entropy, which has the same `E τ`, `E μτ`, `E μ²τ` and `E ln τ`; R' by quadrature.

And two ways to choose: `choose=sample` draws μ of every action and takes the largest (Q-value sampling);
`choose=vpi` takes the largest `μ0 + VPI`, the myopic value of perfect information: what one expects to gain by being
told μ, `E (μ̄₂ − μ)⁺` for the best action and `E (μ − μ̄₁)⁺` for others, with `μ̄₁, μ̄₂` the two largest means. μ is
Student-t with 2a degrees of freedom, so both are closed forms.

The paper's priors are not known to us. Here `μ0` is a share of the largest return `1/(1 − γ)`, λ = `strength`,
a = `shape`, and b such that the deviation of a return is a share of the largest: `b = (a − 1)(deviation/(1 − γ))²`. The
defaults are the best of 27 on random MDPs outside the leagues (`benchmarks/defaults.py`), and results depend on them
much. It learns no model, so it can use no belief about transitions, and no guarantee is known to us.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Choice, Number
from beliefbound.base.validation import FloatArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.random import gamma, load, normal, save
from beliefbound.kernels.special import digamma, shape_of, student_cdf, student_density
from beliefbound.lab.agents.common.sampling import no_stream
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

LEAST_SHAPE = 1.001  # a return has a variance for a > 1 only
NEGLIGIBLE = math.log(1e12)  # how far below its largest weight a quadrature node is left out, in logarithms


class Law(NamedTuple):
    """The Normal-Gamma law of a return."""

    mean: float  # μ0
    strength: float  # λ
    shape: float  # a
    rate: float  # b


class State(NamedTuple):
    """Normal-Gamma parameters of every pair, and parameters."""

    mean: FloatArray  # [s,a] μ0
    strength: FloatArray  # [s,a] λ
    shape: FloatArray  # [s,a] a
    rate: FloatArray  # [s,a] b
    worth: FloatArray  # [s,a]: what the choice compares
    stream: np.ndarray  # uint64 [4]
    lists: ActionLists
    prior: Law
    mixes: bool
    samples: bool
    low: float
    width: float
    discount: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    mean, strength, shape, rate = state.prior
    state.mean.fill(mean)
    state.strength.fill(strength)
    state.shape.fill(shape)
    state.rate.fill(rate)


@njit(**EXACT)
def gain(law, other, best):
    """Expected gain from being told μ of an action; `other` is the mean it competes with, `best` whether it leads."""
    mean, strength, shape, rate = law
    freedom, scale = 2.0 * shape, math.sqrt(rate / (strength * shape))
    z = (other - mean) / scale
    spread = scale * (freedom + z * z) / (freedom - 1.0) * student_density(z, freedom)
    below = student_cdf(z, freedom) if best else student_cdf(-z, freedom)
    return max(0.0, spread - abs(other - mean) * below)


@njit(**EXACT)
def law_of(state, s, a):
    """The parameters `(μ0, λ, a, b)` of a pair."""
    return state.mean[s, a], state.strength[s, a], state.shape[s, a], state.rate[s, a]


@njit(**EXACT)
def value_information(state, s):
    """`worth[s,a] = μ0 + VPI` of every action offered."""
    lists, mean = state.lists, state.mean
    best = best_offered(lists, mean, s)
    second = -np.inf
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        if a != best:
            second = max(second, mean[s, a])
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        other = second if a == best else mean[s, best]
        state.worth[s, a] = mean[s, a] + (gain(law_of(state, s, a), other, a == best) if other > -np.inf else 0.0)


@njit(**EXACT)
def sample_values(state, s):
    """`worth[s,a]`: a draw of μ for every action offered."""
    for i in range(state.lists.counts[s]):
        a = state.lists.offered[s, i]
        mean, strength, shape, rate = law_of(state, s, a)
        precision = gamma(state.stream, shape) / rate
        state.worth[s, a] = mean + normal(state.stream) / math.sqrt(strength * precision)


@njit(**EXACT_INLINE)
def act(state, s):
    """The action of largest worth."""
    if state.samples:
        sample_values(state, s)
    else:
        value_information(state, s)
    return best_offered(state.lists, state.worth, s)


@njit(**EXACT)
def moment_update(law, first, second):
    """The law after one sample with the moments `first` and `second`."""
    mean, strength, shape, rate = law
    distance = first - mean
    rate += 0.5 * (second - first * first) + 0.5 * strength * distance * distance / (strength + 1.0)
    return (strength * mean + first) / (strength + 1.0), strength + 1.0, shape + 0.5, rate


@njit(**EXACT)
def quadrature(freedom, centre, width):
    """Steps for integrals over w of `cosh(w)^−freedom` times a function that changes over `width` about `centre`.

    Nodes are `w = i·step`, or, where these would be more, `w = centre + width · sinh(i·step)`, dense about the centre.
    The trapezoidal rule converges exponentially on both. Returns the largest |w|, the step and whether nodes are dense.
    """
    limit = math.acosh(math.exp(NEGLIGIBLE / freedom))
    core = 0.5 / math.sqrt(freedom)
    even = min(core, 0.35)
    if abs(centre) < limit:
        dense = min(0.25, core / math.hypot(width, centre))
        if math.asinh(limit / width) / dense < limit / min(even, 0.2 * width):
            return limit, dense, True
        even = min(even, 0.2 * width)
    return limit, even, False


@njit(**EXACT)
def mixture_update(law, reward, discount, following):
    """The law nearest to the mixture of posteriors given `reward + discount R'`, R' a return of the law `following`.

    `R' = μ0' + scale √ν sinh(w)` with ν = 2a' has a density in w proportional to `cosh(w)^−ν`; the posterior given R'
    changes where `reward + discount R'` is near the present mean, over `own`.
    """
    mean, strength, shape, rate = law
    next_mean, next_strength, next_shape, next_rate = following
    freedom = 2.0 * next_shape
    reach = max(discount * math.sqrt(2.0 * next_rate * (next_strength + 1.0) / next_strength), 1e-150)  # γ scale √ν
    own = math.sqrt(2.0 * rate * (strength + 1.0) / strength)
    offset = reward + discount * next_mean - mean  # of the middle of the sample from the mean; so is x below
    centre = math.asinh(-offset / reach)
    width = max(own / (reach * math.cosh(centre)), 1e-6)
    limit, step, dense = quadrature(freedom, centre, width)
    first_node = -np.int64((math.asinh((limit + centre) / width) if dense else limit) / step)
    last_node = np.int64((math.asinh((limit - centre) / width) if dense else limit) / step)
    weights, tau, first, second, log_tau = 0.0, 0.0, 0.0, 0.0, 0.0
    new_shape = shape + 0.5
    for i in range(first_node, last_node + 1):
        u = i * step
        w = centre + width * math.sinh(u) if dense else u
        weight = math.exp(-freedom * math.log(math.cosh(w))) * (math.cosh(u) if dense else 1.0)
        x = offset + reach * math.sinh(w)
        new_rate = rate + 0.5 * strength * x * x / (strength + 1.0)
        new_mean, precision = x / (strength + 1.0), new_shape / new_rate
        weights += weight
        tau += weight * precision
        first += weight * new_mean * precision
        second += weight * new_mean * new_mean * precision
        log_tau -= weight * math.log(new_rate)
    tau, first, second, log_tau = tau / weights, first / weights, second / weights, log_tau / weights
    shift = first / tau
    spread = 1.0 / (strength + 1.0) + second - first * shift
    gap = math.log(tau) - log_tau - digamma(new_shape)
    fitted = max(LEAST_SHAPE, shape_of(max(gap, 1e-12)))
    return mean + shift, 1.0 / spread, fitted, fitted / tau


@njit(**EXACT)
def observe(state, s, a, r, t):
    """One update."""
    x = (r - state.low) / state.width
    following = law_of(state, t, best_offered(state.lists, state.mean, t))
    if state.mixes:
        law = mixture_update(law_of(state, s, a), x, state.discount, following)
    else:
        mean, strength, shape, rate = following
        square = (strength + 1.0) / strength * rate / (shape - 1.0) + mean * mean
        first = x + state.discount * mean
        second = x * x + 2.0 * state.discount * x * mean + state.discount * state.discount * square
        law = moment_update(law_of(state, s, a), first, second)
    state.mean[s, a], state.strength[s, a], state.shape[s, a], state.rate[s, a] = law


@agent(
    "bayes-q",
    summary="Normal-Gamma beliefs about returns, value of information or sampling (Dearden et al. 1998)",
    parameters=(
        Choice("choose", "vpi", ("vpi", "sample"), "by value of information, or by sampled values", always=True),
        Choice("update", "mixture", ("mixture", "moment"), "average of posteriors, or moments", always=True),
        Number("optimism", 0.5, 0.0, 1.0, "prior mean as a fraction of the largest return"),
        Number("strength", 0.5, 1e-9, 1e6, "λ, samples that the prior mean is worth"),
        Number("shape", 2.0, LEAST_SHAPE, 1e6, "a, half the samples that the prior deviation is worth"),
        Number("deviation", 0.5, 1e-9, 1e3, "prior deviation of a return as a fraction of the largest"),
        DISCOUNT,
    ),
)
def bayes_q(
    setting: Setting,
    *,
    choose: str,
    update: str,
    optimism: float,
    strength: float,
    shape: float,
    deviation: float,
    discount: float,
) -> Machine:
    """The machine."""
    pairs = (setting.n_states, setting.n_actions)
    largest = 1.0 / (1.0 - discount)
    state = State(
        mean=np.zeros(pairs),
        strength=np.zeros(pairs),
        shape=np.zeros(pairs),
        rate=np.zeros(pairs),
        worth=np.zeros(pairs),
        stream=no_stream(),
        lists=action_lists(setting.available),
        prior=Law(optimism * largest, float(strength), float(shape), (shape - 1.0) * (deviation * largest) ** 2),
        mixes=update == "mixture",
        samples=choose == "sample",
        low=setting.low,
        width=setting.width,
        discount=float(discount),
    )
    return Machine(state, reset, act, observe)
