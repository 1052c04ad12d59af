"""`beliefbound certify`: policies as people have them – a table of states and actions, a class of their own."""

import numpy as np
import pytest

from beliefbound import FiniteBelief, StationaryPolicy, evaluate, write_models
from beliefbound.base.errors import BeliefboundError, FileError, PluginError
from beliefbound.jobs.bound import BoundOptions, certify_folder
from beliefbound.jobs.certify import CertifyOptions, certify_policy
from support.oracles import random_models
from support.tiers import tiers

STATES, ACTIONS = ("low", "medium", "high"), ("wait", "treat")
QUICK = CertifyOptions(target_gap=0.5, time_limit=2.0, samples=50)


@pytest.fixture
def models(tmp_path):
    p, r, _, _ = random_models(np.random.default_rng(3), 2, 3, 2)
    belief = FiniteBelief(p, r, initial=0, states=STATES, actions=ACTIONS, reward_signal="deterministic")
    return belief, write_models(tmp_path / "models", belief, discount=0.9)


@pytest.mark.parametrize(
    "text",
    [
        "state,action\nmedium,treat\nlow,wait\nhigh,treat\n",
        "idstate,idaction\n1,1\n0,0\n2,1\n",
        "state,action,probability\nlow,wait,1\nmedium,treat,1\nhigh,treat,1\nhigh,wait,0\n",
        "idstate,state,action,why\n0,low,wait,x\n1,medium,treat,x\n2,high,treat,x\n",
    ],
)
def test_a_table_of_states_and_actions_is_a_policy(tmp_path, models, text):
    belief, folder = models
    (tmp_path / "rule.csv").write_text(text)
    found = certify_policy(tmp_path / "rule.csv", folder, tmp_path / "out.json", QUICK).found
    values = evaluate(StationaryPolicy([0, 1, 1]), belief, discount=0.9)
    assert found.exact
    assert found.value == pytest.approx(float(belief.weights @ values @ belief.initial))


def test_states_where_nothing_happens_any_more_need_no_row(tmp_path):
    """They are filled in, at every stage; all others are asked for."""
    rows = "idstatefrom,idaction,idstateto,idoutcome,probability,reward\n"
    rows += "ill,treat,well,good,0.9,-2\nill,treat,ill,good,0.1,-2\nill,wait,ill,good,1,-1\n"
    for name, text in {
        "training": rows + rows.split("\n", 1)[1].replace("good", "bad"),
        "initial": "idstate,probability\nill,1\n",
        "parameters": "parameter,value\ndiscount,0.5\n",
        "states": "idstate,name\n0,ill\n1,well\n",
    }.items():
        (tmp_path / f"{name}.csv").write_text(text)
    for text in ("state,action\nill,treat\n", "stage,state,action\n0,ill,treat\n1,ill,treat\n"):
        (tmp_path / "rule.csv").write_text(text)
        found = certify_policy(tmp_path / "rule.csv", tmp_path, tmp_path / "out.json", QUICK).found
        assert found.value == pytest.approx(-2.0 - 0.5 * 0.1 * 2.0 if "stage" in text else -2.0 / (1.0 - 0.05))
    (tmp_path / "rule.csv").write_text("state,action\nwell,treat\n")
    with pytest.raises(FileError, match="no row for ill; give every state"):
        certify_policy(tmp_path / "rule.csv", tmp_path, tmp_path / "out.json", QUICK)


@pytest.mark.parametrize("horizon", tiers([None, 3], 3))
def test_our_own_memoryless_csv_is_certified(tmp_path, models, horizon):
    _, folder = models
    made = certify_folder(folder, tmp_path / "b", BoundOptions(horizon=horizon, target_gap=0.5, effort=50))
    found = certify_policy(tmp_path / "b" / "memoryless.csv", folder, tmp_path / "out.json", QUICK).found
    assert found.value == pytest.approx(made.memoryless.plan.value(made.folder.initial))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state,action\nlow,wait\nmedum,wait\nhigh,wait\n", "line 3: there is no state 'medum'.*'medium'"),
        ("state,action\nlow,wait\nhigh,wait\n", "no row for medium; give every state"),
        ("state,action\nlow,wait\nlow,treat\nmedium,wait\nhigh,wait\n", "line 3: this state has an action already"),
        ("idstate,idaction\n0,0\n1,2\n2,0\n", "line 3: idaction is 2; the models have 2 actions"),
        ("idstate,state,action\n0,medium,wait\n1,low,wait\n2,high,wait\n", "line 2: idstate is 0, but state is"),
        ("state,act\nlow,wait\n", "neither a column 'idaction' nor 'action'"),
        ("state,action,probability\nlow,wait,1\nhigh,wait,1\nmedium,wait,0.4\n", "probabilities.*sums to 0.4"),
        ("a,b\n1,2\n", "none of the columns"),
        ("stage,state,action\n0,low,wait\n0,medium,wait\n0,high,wait\n1,low,wait\n", "no row for medium at stage 1"),
        ("stage,state,action\n999999,low,wait\n", "stages go up to 999999"),
    ],
)
def test_a_faulty_table_is_an_error_that_names_the_place(tmp_path, models, text, said):
    (tmp_path / "rule.csv").write_text(text)
    with pytest.raises(FileError, match=said):
        certify_policy(tmp_path / "rule.csv", models[1], tmp_path / "out.json", QUICK)
    assert not (tmp_path / "out.json").exists()


AGENT = """
class Last:
    def __init__(self, n_actions, start=1): self.n = n_actions
    def reset(self, seed): pass
    def act(self, state): return self.n - 1
    def observe(self, state, action, reward, next_state): pass

class Broken(Last):
    def act(self, state): raise RuntimeError("lost")
"""


def test_a_class_of_a_python_file_is_certified(tmp_path, models):
    belief, folder = models
    (tmp_path / "my_rule.py").write_text(AGENT)
    found = certify_policy(tmp_path / "my_rule.py:Last", folder, tmp_path / "out.json", QUICK).found
    truth = float(belief.weights @ evaluate(StationaryPolicy([1, 1, 1]), belief, discount=0.9) @ belief.initial)
    assert not found.exact
    assert found.lower.value <= truth <= found.upper.value
    assert (tmp_path / "out.json").exists()
    with pytest.raises(FileError, match="has no class 'Lst'.*Last"):
        certify_policy(tmp_path / "my_rule.py:Lst", folder, tmp_path / "out.json", QUICK)
    with pytest.raises(PluginError, match=r"lost \(my_rule.py, line 9\)"):
        certify_policy(tmp_path / "my_rule.py:Broken", folder, tmp_path / "out.json", QUICK)
    with pytest.raises(BeliefboundError, match="agent.py:Class"):
        certify_policy(tmp_path / "other", folder, tmp_path / "out.json", QUICK)
