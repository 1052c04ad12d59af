"""The paper's Table 1, a row at a time."""

import numpy as np

from beliefbound.lab.agents import make_agent, play
from support.environments import CHAIN


def check_published(name, total, error, utility):
    """Means of 2000 runs within four joint standard errors of the published ones, which are means of 10⁴ runs.

    `error` is the standard error of the published `total`, from its 95% interval. False alarms, if the laws agree: 6e-5
    for each of the two figures.
    """
    runs = play(make_agent(name, CHAIN), CHAIN, seed=1, runs=range(2000), steps=1000, accounting="paper")
    assert abs(runs.total.mean() - total) < 4 * np.hypot(runs.total.std() / np.sqrt(2000), error)
    assert abs(runs.utility.mean() - utility) < 4 * runs.utility.std() * np.sqrt(1 / 2000 + 1 / 10_000)
