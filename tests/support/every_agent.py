"""What holds for every agent, said of one agent in that agent's own file, so that one process compiles it, once:

class TestExploit(EveryAgent):
    name = "exploit"
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba.core.runtime import rtsys

from beliefbound.base.errors import BeliefboundError
from beliefbound.kernels.play import agent_stream
from beliefbound.lab.agents import CompiledAgent, check_agent, make_agent, play, run_episode
from beliefbound.lab.envs import gymnasium_env, make_env
from support.tiers import tiers


class EveryAgent:
    """Give `name`, and what else differs. Variants are for the full tier."""

    name = ""  # as it is registered
    small = ""  # with parameters that make a step cheap, where it takes milliseconds
    variants: tuple[str, ...] = ()  # with parameters that choose other ways through the code
    mistakes: tuple[tuple[str, str], ...] = ()  # names that are refused on the chain, and what the answer has in it
    environments = ("chain", "garnet:7,3,4,seed=2")  # the first is where blocks and allocations are looked at
    one_action = "garnet:6,1,3,seed=1"
    tried_on: tuple[str, ...] = ()  # by check_agent, in place of its own small environments
    chooses = True  # whether its runs depend on the agent's own random numbers

    def pytest_generate_tests(self, metafunc):
        """Parametrise by what the class says."""
        played = [self.small or self.name, *self.variants]
        for argument, values in (
            ("tried", tiers([self.name, *self.variants], self.name)),
            ("played", tiers(played, *played[:1])),
            ("where", self.environments),
        ):
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, values)
        if "mistake" in metafunc.fixturenames:
            metafunc.parametrize(("mistake", "message"), self.mistakes or [(f"{self.name}:no-such=1", "no-such")])

    def made(self, name, environment):
        """The agent of that name."""
        return make_agent(name, environment)

    def test_it_keeps_the_protocol(self, tried):
        on = [make_env(name) for name in self.tried_on]
        check_agent(lambda environment: self.made(tried, environment), on=on, steps=12 if self.small else 60)

    def test_playing_runs_equals_stepping_by_hand_through_gymnasium(self, played, where):
        environment = make_env(where)
        agent = self.made(played, environment)
        batch = play(agent, environment, seed=9, runs=range(3, 6), steps=200, discount=0.9, curve_every=50, visits=True)
        for i, run in enumerate(range(3, 6)):
            episode = run_episode(agent, gymnasium_env(environment), steps=200, seed=9, run=run)
            total, utility, weight = 0.0, 0.0, 1.0
            for reward in episode.rewards:
                total += reward
                utility += weight * reward
                weight *= 0.9
            assert batch.total[i] == total
            assert batch.utility[i] == utility
            visits = np.bincount(episode.states[:-1], minlength=environment.n_states)
            np.testing.assert_array_equal(batch.visits[i], visits)
            np.testing.assert_array_equal(batch.curve[i], np.cumsum(episode.rewards)[49::50])

    def test_blocks_and_threads_change_nothing(self, played):
        environment = make_env(self.environments[0])

        def part(runs):
            agent = self.made(played, environment)  # plain Python ones are not to be shared
            return play(agent, environment, seed=2, runs=runs, steps=150, curve_every=30, visits=True)

        whole = part(range(24))
        blocks = [range(1), range(1, 10), range(10, 11), range(11, 24)]
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(part, blocks))
        for field in ("total", "utility", "curve", "visits"):
            np.testing.assert_array_equal(np.concatenate([getattr(p, field) for p in parts]), getattr(whole, field))
        assert len(np.unique(whole.utility)) > 12 or not self.chooses

    def test_steps_allocate_nothing(self, played):
        """Whether they plan or not."""
        environment = make_env(self.environments[0])
        agent = self.made(played, environment)
        assert isinstance(agent, CompiledAgent)
        assert allocations(agent, environment, 40) == allocations(agent, environment, 80) > 0

    def test_it_faces_the_same_noise_as_everybody(self, played):
        """With one action there is nothing to decide, so every agent has the runs of one that does not think."""
        environment = make_env(self.one_action)
        common = {"seed": 3, "runs": range(10), "steps": 100}
        total = play(self.made(played, environment), environment, **common).total
        np.testing.assert_array_equal(total, play(First(), environment, **common).total)
        assert len(np.unique(total)) > 1

    def test_mistakes_are_answered(self, mistake, message):
        with pytest.raises(BeliefboundError, match=message):
            make_agent(mistake, make_env("chain"))


class First:
    """Always the first action."""

    def reset(self, seed):
        pass

    def act(self, state):
        return 0

    def observe(self, state, action, reward, next_state):
        pass


def allocations(agent, environment, steps):
    """Of one run, without what is made when the loop is loaded, and of one stream: that shows that they are counted."""
    play(agent, environment, seed=1, runs=1, steps=2)
    before = rtsys.get_allocation_stats().alloc
    agent_stream(1, 0, 0)
    play(agent, environment, seed=1, runs=1, steps=steps)
    return rtsys.get_allocation_stats().alloc - before
