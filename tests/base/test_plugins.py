"""What a person adds in one file of their own, outside the package, runs through the command line like ours."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beliefbound import DirichletBelief, KnownRewards, write_models
from beliefbound.base.plugins import load_plugin, loaded_plugins
from beliefbound.lab.agents import check_agent, make_agent, play
from beliefbound.lab.engine.registry import AGENTS
from beliefbound.lab.envs import make_env
from beliefbound.lab.experiments.spec import Spec
from support.command_line import beliefbound, command

COMPILED = '''
"""Least tried: the action of the present state that was played least often."""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.lab.agents import PRIOR, Machine, Setting, agent, posterior_for
from beliefbound.base.grammar import Number
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.posterior import Posterior, forget, learn


class State(NamedTuple):
    posterior: Posterior
    score: np.ndarray  # [s,a]: minus the visits
    lists: ActionLists
    weight: float


@njit(**EXACT)
def reset(state, stream):
    forget(state.posterior)
    state.score.fill(0.0)


@njit(**EXACT)
def act(state, s):
    return best_offered(state.lists, state.score, s)


@njit(**EXACT)
def observe(state, s, a, r, t):
    learn(state.posterior, s, a, r, t)
    state.score[s, a] -= state.weight


@agent(
    "least-tried",
    summary="the action played least often",
    parameters=(Number("weight", 1.0, 0.0, 10.0, "of a visit", above=True), *PRIOR),
)
def least_tried(setting: Setting, *, weight, **values):
    shape = (setting.n_states, setting.n_actions)
    state = State(posterior_for(setting, values), np.zeros(shape), action_lists(setting.available), weight)
    return Machine(state, reset, act, observe)
'''

PLAIN = '''
"""Least tried, in plain Python."""

from beliefbound.lab.agents import Setting, agent


@agent("least-tried-plain", summary="the action played least often, slowly")
class LeastTried:
    def __init__(self, setting: Setting) -> None:
        self.available = setting.available

    def reset(self, seed):
        self.visits = {}

    def act(self, state):
        offered = [a for a, there in enumerate(self.available[state]) if there]
        return min(offered, key=lambda a: self.visits.get((state, a), 0))

    def observe(self, state, action, reward, next_state):
        self.visits[state, action] = self.visits.get((state, action), 0) + 1
'''

ENVIRONMENT = '''
"""A coin with two sides to bet on."""

import numpy as np

from beliefbound.lab.envs import env, from_outcomes
from beliefbound.base.grammar import Number


@env("bet", summary="bet on a coin", parameters=(Number("heads", 0.5, 0.0, 1.0, "probability of heads"),))
def bet(name, *, heads):
    probability = np.array([[[heads, 1 - heads]] * 2])
    return from_outcomes(name, probability, np.zeros((1, 2, 2), int), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
'''

PRIOR = '''
"""Sure of one thing: every action leads on, as in a row."""

import numpy as np

from beliefbound import BetaRewards, DirichletBelief
from beliefbound.lab.agents import prior


@prior("in-a-row", summary="each action leads to the next state or the first")
def in_a_row(environment):
    S, A = environment.n_states, environment.n_actions
    concentration = np.zeros((S, A, S))
    for s in range(S):
        concentration[s, :, [0, min(s + 1, S - 1)]] = 1.0
    low, high = environment.reward_range
    return DirichletBelief(S, A, concentration=concentration, rewards=BetaRewards(low=low, high=high))
'''


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with one file of each kind, and a model folder."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in (("compiled", COMPILED), ("plain", PLAIN), ("coin", ENVIRONMENT), ("row", PRIOR)):
        (folder / f"own_{name}.py").write_text(text)
    chain = make_env("chain")
    belief = DirichletBelief(5, 2, concentration=2.0, rewards=KnownRewards(chain.mdp.rewards), initial=0)
    write_models(folder / "models", belief.sample(3, np.random.default_rng(0)), discount=0.9)
    return folder


@pytest.mark.full
def test_agents_and_an_environment_of_ones_own_run_from_a_spec(files):
    (files / "own.toml").write_text(
        'agents = ["least-tried", "least-tried-plain", "random"]\n'
        'environments = ["chain", "bet:0.75", "folder:models,model=1", "gym:FrozenLake-v1,is_slippery=False"]\n'
        "runs = 6\nsteps = 40\n"
    )
    plugins = [x for name in ("compiled", "plain", "coin") for x in ("--plugin", f"own_{name}.py")]
    done = beliefbound("run", "own.toml", *plugins, "--threads", 2, "--block", 2, cwd=files)
    assert done.returncode == 0, done.stderr
    runs = pl.read_parquet(files / "own" / "runs.parquet")
    assert runs["environment"].unique().sort().to_list() == [
        "bet:heads=0.75",
        "chain",
        "folder:models,model=1",
        "gym:FrozenLake-v1,is_slippery=False",
    ]
    compiled = runs.filter(agent="least-tried").drop("agent")
    plain = runs.filter(agent="least-tried-plain").drop("agent")
    assert compiled["total"].to_list() == plain["total"].to_list()  # the same rule, against the same noise
    assert compiled["total"].n_unique() > 3
    without = beliefbound("run", "own.toml", "--out", "other", cwd=files)
    assert without.returncode == 1
    assert "$.agents[0]: 'least-tried': there is no agent 'least-tried'" in without.stderr
    assert not (files / "other").exists()


@pytest.mark.full
def test_a_prior_of_ones_own_runs_from_a_spec(files):
    (files / "prior.toml").write_text(
        'agents = ["thompson:prior=in-a-row", "thompson"]\nenvironments = ["chain"]\nruns = 40\nsteps = 60\n'
    )
    done = beliefbound("run", "prior.toml", "--plugin", "own_row.py", cwd=files)
    assert done.returncode == 0, done.stderr
    totals = pl.read_parquet(files / "prior" / "runs.parquet").group_by("agent").agg(pl.col("total").mean())
    means = dict(totals.iter_rows())
    assert means["thompson:prior=in-a-row"] > means["thompson"]  # 40 paired runs, fixed seed: knowing more earns more


@pytest.mark.full
def test_listings_show_what_a_plugin_adds(files):
    assert "least-tried" in beliefbound("agents", "--plugin", "own_compiled.py", cwd=files).stdout
    assert "least-tried" not in beliefbound("agents", cwd=files).stdout
    assert "bet:heads=0.5" in beliefbound("envs", "--plugin", "own_coin.py", cwd=files).stdout


def test_what_was_added_keeps_the_protocol(files):
    for name in ("compiled", "plain", "coin", "row"):
        load_plugin(files / f"own_{name}.py")
        load_plugin(files / f"own_{name}.py")
    assert str(files / "own_row.py") in loaded_plugins()
    for name in ("least-tried:weight=2", "least-tried-plain"):
        check_agent(lambda environment, name=name: make_agent(name, environment))
    bet, folder = make_env("bet:heads=0.25"), make_env(f"folder:{files / 'models'},model=0")
    for environment in (bet, folder):
        check_agent(lambda _, environment=environment: make_agent("least-tried", environment), on=[environment])
    assert bet.mdp.rewards.tolist() == [[0.25, 0.75]]
    assert folder.discount == 0.9
    agent = make_agent("exploit:prior=in-a-row", make_env("chain"))
    assert (agent.machine.state.posterior.prior_alpha[2] > 0).tolist() == [True, False, True, False, False]
    assert play(make_agent("oracle", bet), bet, seed=1, runs=50, steps=100).total.mean() == pytest.approx(75, abs=3)


def test_a_spec_alone_makes_nothing_be_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bait.py").write_text("open('imported', 'w').close()")
    for name, text in (("agents", "bait"), ("agents", "bait:LeastTried"), ("environments", "gym:bait:X-v0")):
        named = {"agents": "random", "environments": "chain"} | {name: text}
        (tmp_path / "s.toml").write_text(
            "".join(f'{k} = ["{v}"]\n' for k, v in named.items()) + "runs = 2\nsteps = 2\n"
        )
        done = command("run", "s.toml", cwd=tmp_path)
        assert done.returncode == 1
        assert f"$.{name}[0]" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "imported").exists()


def test_a_plugin_that_cannot_be_loaded_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("x = 1\ny = z\n")
    (tmp_path / "twice.py").write_text(PLAIN.replace("least-tried-plain", "exploit"))
    for plugin, message in (
        ("broken.py", "broken.py cannot be loaded: NameError: name 'z' is not defined (broken.py, line 2)"),
        ("missing.py", "missing.py does not exist"),
        ("no.such.module", "cannot be loaded: ModuleNotFoundError"),
        ("twice.py", "registers the agent 'exploit', which beliefbound.lab.agents.exploit already has"),
    ):
        done = command("agents", "--plugin", plugin, cwd=tmp_path)
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_installed_packages_are_found_by_their_entry_points_and_a_broken_one_is_only_warned_about(tmp_path):
    """A package as pip would leave it: modules and a dist-info folder with entry points."""
    (tmp_path / "site" / "own-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "site" / "own-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: own\nVersion: 1.0\n"
    )
    (tmp_path / "site" / "own-1.0.dist-info" / "entry_points.txt").write_text(
        "[beliefbound.agents]\nfine = own_agents\nbad = own_bad\n\n[beliefbound.envs]\nfine = own_envs\n"
    )
    (tmp_path / "site" / "own_agents.py").write_text(PLAIN)
    (tmp_path / "site" / "own_envs.py").write_text(ENVIRONMENT)
    (tmp_path / "site" / "own_bad.py").write_text("raise RuntimeError('out of order')")
    script = (
        "import sys, warnings\n"
        "from beliefbound.lab.agents import canonical_agent, make_agent\nfrom beliefbound.lab.envs import make_env\n"
        "canonical_agent('mcbrl'); make_env('chain')\n"
        "assert not {'own_agents', 'own_envs', 'own_bad'} & set(sys.modules)\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    print(make_env('bet'), type(make_agent('least-tried-plain', make_env('chain'))).__name__)\n"
        "print([str(w.message) for w in seen])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 0, done.stderr
    assert "Environment('bet', 1 states, 2 actions) LeastTried" in done.stdout
    assert "the plugin 'bad' (own_bad) cannot be loaded and is left out: RuntimeError: out of order" in done.stdout


def test_an_agent_whose_file_was_edited_is_another_experiment(tmp_path):
    path = tmp_path / "still.py"
    path.write_text(PLAIN.replace("least-tried-plain", "still"))
    load_plugin(str(path))
    spec = Spec(agents=["still"], environments=["chain"], runs=2, steps=3)
    before, family = spec.digest(), AGENTS.parse("still").family
    path.write_text(path.read_text() + "\n# edited\n")
    assert spec.digest() == before  # what was loaded still runs
    assert replace(family).edition != family.edition != ""  # as a new process finds it
    assert AGENTS.parse("exploit").family.edition == ""
