"""Lemmas 1 and 2 of the paper: the stages and the models planning asks for. `theory` says what they prove."""

import math

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import check_discount, check_positive


def truncation_stages(epsilon: float, *, discount: float, r_max: float) -> int:
    """Lemma 1: the least number of decisions whose neglected tail is worth at most `epsilon`.

    >>> truncation_stages(0.1, discount=0.9, r_max=1.0)
    44
    """
    scale = value_scale(discount, r_max)
    epsilon = check_positive(epsilon, "epsilon")
    discount = check_discount(discount, None)
    if discount == 0.0:
        return 1
    share = epsilon / scale
    logarithm = math.log(share) if share > 0.0 else math.log(epsilon) - math.log(scale)  # the share may underflow
    stages = logarithm / math.log(discount)
    if stages > 2**53:
        raise ParameterError(f"epsilon is {epsilon:g}, which asks for {stages:.1g} decisions; give a larger one")
    return math.ceil(max(1.0, stages - 1e-12))


def stages_until(share: float, discount: float, *, most: int) -> int:
    """Decisions after which what follows has at most a `share` of the weight of everything; `most`, if that is fewer.

    >>> stages_until(0.05, 0.9, most=1000), stages_until(0.05, 1.0, most=1000)
    (29, 1000)
    """
    if discount == 1.0:
        return most
    return max(1, min(most, math.ceil(math.log(share) / math.log(max(discount, 1e-6)))))


def lemma2_models(epsilon: float, *, discount: float, r_max: float) -> int:
    """Lemma 2 as printed: sampled models for an expected loss of at most `epsilon`. See `uniform_models`.

    >>> lemma2_models(3.0, discount=0.9, r_max=1.0)
    1000
    """
    epsilon = check_positive(epsilon, "epsilon")
    ratio = 3.0 * value_scale(discount, r_max) / epsilon
    if ratio > 1e100:
        raise ParameterError(f"epsilon is {epsilon:g}, which asks for {ratio:.1g}³ models; give a larger one")
    return max(1, math.ceil(ratio**3 - 1e-9))


def value_scale(discount: float, r_max: float) -> float:
    """`r_max / (1 − γ)`, the largest value there can be."""
    r_max = check_positive(r_max, "r_max")
    scale = r_max / (1.0 - check_discount(discount, None))
    if not math.isfinite(scale):
        raise ParameterError(f"r_max is {r_max:g}; values as large as that over 1 − discount overflow: rescale rewards")
    return scale
