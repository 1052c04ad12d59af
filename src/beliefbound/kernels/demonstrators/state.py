"""What a chain over demonstrators' rewards is given, where it is, and what is kept of it."""

from typing import NamedTuple

import numpy as np

from beliefbound.kernels.reference import by_reference

BETA, NORMAL = range(2)  # families of rewards


@by_reference
class Data(NamedTuple):
    """What is given: `F` parameters of rewards, `K` demonstrators."""

    discount: float
    alpha: np.ndarray  # [pair,t]: of each row, given all transitions
    rows: np.ndarray  # [i]: pairs whose row is unknown
    first: np.ndarray  # [j + 1]: where the column of each parameter begins
    pair: np.ndarray  # [i]: pairs of the columns
    times: np.ndarray  # [i]: what a pair has of the parameter
    level: bool  # whether all parameters raised by one raise all rewards by one
    visits: np.ndarray  # [k,pair]: how often each was chosen
    family: int  # BETA or NORMAL
    base: np.ndarray  # [j,2]: Beta(a, b), or Normal(mean, deviation), of a reward, or of the shared centre
    rational: np.ndarray  # [3]: shape and scale of η's Gamma; 1 where η is known and stays as it is
    shared: bool  # whether the prior of several demonstrators is unknown


@by_reference
class Walk(NamedTuple):
    """Where a chain is, what it tries, and its random numbers."""

    stream: np.ndarray
    p: np.ndarray  # [pair,t]
    w: np.ndarray  # [k,j]
    eta: np.ndarray  # [k]
    prior: np.ndarray  # [j,2]: as `base`, of the rewards as it is believed now
    centre: np.ndarray  # [j]: m
    hyper: np.ndarray  # [2]: h, and the log of the scale of η
    like: np.ndarray  # [2,k]: log likelihood of the choices, as it is and as tried
    r: np.ndarray  # [2,k,pair]
    q: np.ndarray  # [2,k,pair]
    v: np.ndarray  # [2,k,s]
    policy: np.ndarray  # [2,k,s]
    inverse: np.ndarray  # [2,k,s,t]
    side: np.ndarray  # [k]: which inverse holds
    moved: np.ndarray  # [k]: whether the other one is that of the trial
    wanted: np.ndarray  # [s], scratch, as the others
    d: np.ndarray  # [t]
    line: np.ndarray  # [t]
    old: np.ndarray  # [t]
    two: np.ndarray  # [2]
    tally: np.ndarray  # [kind,2]: steps tried and taken


@by_reference
class Kept(NamedTuple):
    """Draws of a chain, one in so many steps: `[i,…]`; of the dynamics, the last of every so many draws."""

    p: np.ndarray
    w: np.ndarray
    eta: np.ndarray
    like: np.ndarray
    prior: np.ndarray  # of the rewards of somebody new
    scale: np.ndarray  # and of their η
