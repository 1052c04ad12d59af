"""Inventory and equipment replacement, as in Puterman (*Markov Decision Processes*, 1994)."""

from math import comb

import numpy as np

from beliefbound.base.grammar import Number
from beliefbound.lab.envs.environment import Environment, check_size, from_outcomes
from beliefbound.lab.envs.registry import env

FIXED_COST, UNIT_COST, HOLDING_COST, PRICE = 4.0, 2.0, 1.0, 8.0
INCOME, REPLACEMENT_COST = 10.0, 8.0
WEAR = (0.3, 0.4, 0.2, 0.1)  # probability of wearing by 0, 1, 2, 3 classes in one period


@env(
    "inventory",
    summary="order stock before a random demand (Puterman 1994)",
    parameters=(Number("capacity", 3, 1, 1000, "units that fit the warehouse", whole=True, by_position=True),),
)
def inventory(name: str, *, capacity: int) -> Environment:
    """Inventory: order, then meet a random demand; unmet demand is lost. Puterman's stochastic inventory model.

    State: units in stock, 0 … `capacity`; start empty. Action: units ordered, 0 … `capacity`; an order is cut to what
    fits the warehouse, and only what is delivered is paid. (Puterman lets state `s` offer orders up to `capacity − s`
    only; cutting gives the same values and all actions everywhere.) With `u = s + delivered` units and demand `D` the
    step pays

        8 · min(D, u)  −  4 · 1{delivered > 0}  −  2 · delivered  −  1 · u

    (revenue, fixed and unit ordering cost, holding cost) and leads to `max(u − D, 0)`. Demand is Binomial(n, ½) with
    `n = ⌈2 · capacity / 3⌉`: for the default capacity 3 it is 0, 1, 2 with probability ¼, ½, ¼ and this is
    Puterman's own example.
    """
    check_size(name, capacity**3)
    n = -(-2 * capacity // 3)
    demand = np.arange(n + 1)
    chance = np.array([comb(n, k) / 2**n for k in range(n + 1)])
    stock, order = np.arange(capacity + 1)[:, None, None], np.arange(capacity + 1)[None, :, None]
    delivered = np.minimum(order, capacity - stock)
    units = stock + delivered
    cost = FIXED_COST * (delivered > 0) + UNIT_COST * delivered + HOLDING_COST * units
    reward = PRICE * np.minimum(demand, units) - cost
    target = np.maximum(units - demand, 0)
    return from_outcomes(name, np.broadcast_to(chance, target.shape), target, reward)


@env(
    "replacement",
    summary="keep a machine that wears or pay for a new one (Puterman 1994)",
    parameters=(Number("states", 10, 2, 100_000, "conditions of the machine", whole=True, by_position=True),),
)
def replacement(name: str, *, states: int) -> Environment:
    """Equipment replacement: operate a machine that wears, or pay for a new one. Puterman's replacement model.

    State: condition, 0 (new) … `states − 1` (worst); start new. Each period the machine in use wears by 0, 1, 2 or 3
    classes with probability .3, .4, .2, .1, but not beyond the worst. Operating (action 0) in condition `s` pays
    `10 − s`: an income of 10 less an operating cost that rises with wear. Replacing (action 1) costs 8, then the new
    machine is operated for the period: it pays `10 − 8` and the wear starts from condition 0. An optimal policy is a
    control limit: replace from some condition on.
    """
    s = np.arange(states)
    wear = np.arange(len(WEAR))
    used = np.stack([s, np.zeros_like(s)], axis=1)  # condition of the machine operated, [s,a]
    target = np.minimum(used[:, :, None] + wear, states - 1)
    reward = INCOME - used - np.array([0.0, REPLACEMENT_COST])
    return from_outcomes(
        name,
        np.broadcast_to(WEAR, target.shape),
        target,
        np.repeat(reward[:, :, None], len(WEAR), axis=2),
        actions=("operate", "replace"),
    )
