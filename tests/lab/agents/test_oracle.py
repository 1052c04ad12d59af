"""The oracle earns what is optimal."""

import numpy as np
import pytest

from beliefbound.lab.agents import make_agent, play
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestOracle(EveryAgent):
    name = "oracle"
    chooses = False


def test_the_oracle_earns_the_optimal_average_on_chain():
    p, r = CHAIN.mdp.to_dense().transitions[:, 1], CHAIN.mdp.rewards[:, 1]
    stationary = np.linalg.matrix_power(p, 1000)[0]
    assert stationary @ r == pytest.approx(3.677, abs=5e-4)
    runs = play(make_agent("oracle", CHAIN), CHAIN, seed=1, runs=range(3000), steps=1100, curve_every=100)
    average = (runs.curve[:, -1] - runs.curve[:, 0]) / 1000
    assert abs(average.mean() - stationary @ r) < 4 * average.std() / np.sqrt(3000)  # false alarms: 6e-5
