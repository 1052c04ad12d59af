"""Make `examples/chain8`: eight models of the Chain task that fit 30 random steps, as a model folder.

python examples/make_models.py
"""

from pathlib import Path

import numpy as np

import beliefbound as bb
from beliefbound.lab.agents import make_agent, run_episode
from beliefbound.lab.envs import gymnasium_env, make_env

chain = make_env("chain")
seen = run_episode(make_agent("random", chain), gymnasium_env(chain), steps=30, seed=0)
prior = bb.DirichletBelief(5, 2, rewards=bb.KnownRewards(chain.mdp.rewards), initial=0)
posterior = prior.update(seen.states[:-1], seen.actions, None, seen.states[1:])
models = posterior.sample(8, np.random.default_rng(0))
bb.write_models(Path(__file__).parent / "chain8", models, true=chain.mdp, discount=0.95, overwrite=True)
