"""A saved policy among the agents."""

import pytest

from beliefbound import StationaryPolicy
from beliefbound.base.errors import BeliefboundError
from beliefbound.lab.agents import make_agent, play
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestPolicy(EveryAgent):
    """A table that takes the first action in every state but the last."""

    name = "policy"
    tried_on = ("chain",)
    chooses = False
    mistakes = (("policy", "file"), ("policy:no-such.json", "no-such.json"))
    test_steps_allocate_nothing = None  # a Policy, for which `play` makes the compiled agent

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def made(self, name, environment):
        """From a file of its own."""
        file = self.folder / f"{environment.n_states}.json"
        StationaryPolicy([0] * (environment.n_states - 1) + [environment.n_actions - 1]).save(file)
        return make_agent(f"policy:{file}", environment)


def test_a_policy_from_a_file_plays_as_the_policy_does(tmp_path):
    forward = StationaryPolicy([1] * 5)
    forward.save(tmp_path / "forward.json")
    totals = [
        play(agent, CHAIN, seed=1, runs=5, steps=50).total.tolist()
        for agent in (make_agent(f"policy:{tmp_path / 'forward.json'}", CHAIN), forward, make_agent("oracle", CHAIN))
    ]
    assert totals[0] == totals[1] == totals[2]


def test_a_policy_that_does_not_fit_is_refused(tmp_path):
    StationaryPolicy([1] * 4).save(tmp_path / "short.json")
    with pytest.raises(BeliefboundError, match="policy has 4 states, the model has 5"):
        make_agent(f"policy:{tmp_path / 'short.json'}", CHAIN)
