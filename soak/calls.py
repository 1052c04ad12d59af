"""Calls of every public function, good ones, to be spoilt: `{name: (function, arguments)}` of a small problem.

Everything takes well under a second. What is wrong with a call is decided in `soak.fuzz`; what a call may take is
decided here: some arguments, such as a time limit, may be as large as anybody likes and are left alone.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import scipy.sparse as sp

import beliefbound as bb
from beliefbound.beliefs import (
    DirichletRewards,
    FiniteValues,
    MixedRewards,
    MixtureBelief,
    NormalRewards,
    PopulationBelief,
    SparseDirichletBelief,
    belief_kind,
    belief_of,
    capabilities_of,
    entries_of,
    learn_population,
)
from beliefbound.bounds import (
    Regret,
    alp,
    belief_distance,
    best_memoryless,
    evpi,
    evppi,
    evsi,
    lookahead_lower,
    lookahead_upper,
    pair_bound,
    policy_regret,
    relaxation,
    sensitivity,
)
from beliefbound.bounds.policy_files import load_policy
from beliefbound.planning.compare import compare_memoryless

# Arguments of which any value is allowed, or which only cost time: never made huge, and some never touched.
MODEST = {
    "time_limit",
    "node_limit",
    "max_sweeps",
    "evaluation_sweeps",
    "draws",
    "scenarios",
    "nodes",
    "max_nodes",
    "steps",
    "chains",
    "most",
}
FUNCTIONS = {"watch", "stop", "prior", "progress", "say", "features"}
UNTOUCHED = {"time_limit", "target_gap", "overwrite", "path"}


class Call(NamedTuple):
    """A function and good arguments for it."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


@cache
def things() -> dict[str, Any]:
    """One of each kind: what arguments are made of, and what stands where something else belongs."""
    rng = np.random.default_rng(1)
    p, r = rng.dirichlet(np.ones(3), size=(3, 3, 2)), rng.random((3, 3, 2))
    finite = bb.FiniteBelief(p, r, reward_signal="bernoulli", initial=0)
    sparse = bb.FiniteBelief([sp.csr_array(x.reshape(6, 3)) for x in p], r, reward_signal="unobserved", initial=0)
    env = bb.make_env("chain")
    return {
        "finite": finite,
        "sparse": sparse,
        "known": bb.FiniteBelief(p, r[0], [0.2, 0.3, 0.5], initial=0),
        "continuous": bb.FiniteBelief(p, r, reward_signal="continuous", initial=0),
        "dirichlet": bb.DirichletBelief(3, 2, initial=0).update(0, 1, 1.0, 2),
        "normal": bb.DirichletBelief(3, 2, rewards=NormalRewards(), initial=0),
        "mdp": bb.MDP(p[0], r[0], initial=0),
        "sparse mdp": bb.MDP(sp.csr_array(p[0].reshape(6, 3)), r[0]),
        "table": bb.StationaryPolicy([0, 1, 0]),
        "staged": bb.MemorylessPolicy([[0, 1, 0], [1, 1, 0], [0, 0, 0]]),
        "drawn": bb.StationaryPolicy(probabilities=np.full((3, 2), 0.5)),
        "bound": bb.upper_bound(finite, discount=0.9, horizon=3),
        "plan": bb.mmbi(finite, discount=0.9, horizon=3),
        "bracket": bb.bracket(finite, discount=0.9, horizon=3, time_limit=1.0, rng=0),
        "env": env,
        "agent": bb.make_agent("exploit", env),
        "rewards": bb.BetaRewards(1.0, 1.0),
        "lake": gymnasium.make("FrozenLake-v1"),
        "generator": np.random.default_rng(3),
    }


def calls() -> dict[str, Callable[[], Call]]:
    """Every public callable, its good arguments made afresh."""
    x = things()
    rng = np.random.default_rng(2)
    p, r = rng.dirichlet(np.ones(3), size=(3, 3, 2)), rng.random((3, 3, 2))
    task = {"discount": 0.9, "horizon": 3, "initial": np.array([1.0, 0.0, 0.0])}
    plain = {"discount": 0.9, "horizon": 3}
    theory = {"n_states": 3, "n_actions": 2, "discount": 0.9, "r_max": 1.0}
    log = {
        "state": np.array([0, 1]), "action": np.array([1, 0]),
        "reward": np.array([1.0, 0.0]), "next_state": np.array([1, 2]),
    }  # fmt: skip
    shown = {"state": [0, 1, 2, 0], "action": [1, 0, 1, 1], "next_state": [1, 2, 0, 1]}
    steps = {"state": 0, "action": 1, "reward": 1.0, "next_state": 0}
    alpha = np.ones((3, 2, 3))
    made: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "MDP": (bb.MDP, {"transitions": p[0], "rewards": r[0], "initial": p[0, 0, 0], "available": r[0] >= 0.0,
                         "states": ["a", "b", "c"], "actions": ["x", "y"], "normalize": False}),
        "MDP sparse": (bb.MDP, {"transitions": sp.csr_array(p[0].reshape(6, 3)), "rewards": r[0], "initial": 1}),
        "FiniteBelief": (bb.FiniteBelief, {"transitions": p, "rewards": r, "weights": np.full(3, 1 / 3),
                         "reward_signal": "bernoulli", "reward_range": (0.0, 1.0), "initial": p[0, 0, 0],
                         "available": r[0] >= 0.0, "states": ["a", "b", "c"], "actions": ["x", "y"],
                         "model_names": ["k", "l", "m"]}),
        "FiniteBelief arrival": (bb.FiniteBelief, {"transitions": p, "reward_signal": "known",
                                 "rewards": np.round(p[:1]).repeat(3, axis=0)}),
        "from_mdps": (bb.FiniteBelief.from_mdps, {"mdps": [x["mdp"], x["mdp"]], "weights": np.array([0.5, 0.5]),
                      "reward_signal": "known", "initial": 0}),
        "DirichletBelief": (bb.DirichletBelief, {"n_states": 3, "n_actions": 2, "concentration": alpha,
                            "rewards": x["rewards"], "support": alpha > 0, "terminal": np.array([2]),
                            "available": r[0] >= 0.0, "initial": 0}),
        "tied": (bb.DirichletBelief.tied, {"row": np.array([[0, 1], [0, 1]]), "concentration": np.ones((2, 2)),
                 "arrive": np.array([[[0, 1], [1, 0]], [[1, 0], [0, 1]]]), "initial": 0}),
        "BetaRewards": (bb.BetaRewards, {"alpha": r[0], "beta": r[0], "low": 0.0, "high": 1.0}),
        "KnownRewards": (bb.KnownRewards, {"rewards": r[0]}),
        "NormalRewards": (NormalRewards, {"mean": r[0], "strength": r[0], "shape": 2.0, "rate": r[0]}),
        "DirichletRewards": (DirichletRewards, {"values": np.array([0.0, 1.0]), "counts": np.ones((3, 2, 2))}),
        "MixedRewards": (MixedRewards, {"known": [[1.0, np.nan]] * 3, "learnt": DirichletRewards([0.0, 1.0])}),
        "StationaryPolicy": (bb.StationaryPolicy, {"actions": np.array([0, 1, 0])}),
        "StationaryPolicy drawn": (bb.StationaryPolicy, {"probabilities": np.full((3, 2), 0.5)}),
        "MemorylessPolicy": (bb.MemorylessPolicy, {"actions": np.array([[0, 1, 0], [1, 1, 1]])}),
        "Regret": (Regret, {"value": 1.0, "method": "x", "exact": True, "confidence": 1.0}),
        "FiniteValues": (FiniteValues, {"values": np.array([0.0, 1.0]), "chances": np.full((3, 3, 2, 2), 0.5)}),
        "Bound": (bb.Bound, {"value": 1.0, "side": "lower", "method": "x", "exact": True, "confidence": 1.0}),
        "make_env": (bb.make_env, {"name": "chain"}),
        "make_agent": (bb.make_agent, {"spec": "mcbrl:n=2", "environment": x["env"], "discount": 0.9}),
        "play": (bb.play, {"agent": x["agent"], "environment": x["env"], "seed": 1, "runs": range(2), "steps": 5,
                 "discount": 0.9, "accounting": "standard", "cell": 0, "curve_every": 2, "visits": True}),
        "from_gymnasium": (bb.from_gymnasium, {"source": x["lake"]}),
        "evaluate": (bb.evaluate, {"policy": x["table"], "models": x["finite"], **plain}),
        "lower_bound": (bb.lower_bound, {"policy": x["table"], "belief": x["dirichlet"], **task, "confidence": 0.9,
                        "n_models": 5, "interval": "t", "rng": 0}),
        "upper_bound": (bb.upper_bound, {"belief": x["dirichlet"], **task, "method": "qmdp", "confidence": 0.9,
                        "n_models": 5, "interval": "bernstein", "rng": 0}),
        "policy_regret": (policy_regret, {"policy": x["table"], "belief": x["finite"], "upper": x["bound"], **task}),
        "lookahead_lower": (lookahead_lower, {"belief": x["finite"], "depth": 1, **task, "policies": [x["table"]]}),
        "lookahead_upper": (lookahead_upper, {"belief": x["finite"], "depth": 1, **task}),
        "pair_bound": (pair_bound, {"belief": x["finite"], **task}),
        "relaxation": (relaxation, {"belief": x["finite"], **task, "nodes": 20, "max_nodes": 50, "scenarios": 64,
                       "pairs": True, "confidence": 0.9, "rng": 0, "threads": 1}),
        "bracket": (bb.bracket, {"belief": x["finite"], **task, "confidence": 0.9, "target_gap": 0.1,
                    "time_limit": 0.05, "rng": 0, "threads": 1, "watch": None, "stop": None}),
        "bracket dirichlet": (bb.bracket, {"belief": x["dirichlet"], **task, "confidence": 0.9, "target_gap": 0.1,
                              "time_limit": 0.05, "rng": 0, "threads": 1}),
        "certify": (bb.certify, {"policy": x["table"], "belief": x["finite"], **task, "upper": x["bound"],
                    "confidence": 0.9, "samples": 5, "rng": 0}),
        "robust_bracket": (bb.robust_bracket, {"models": x["finite"], "priors": "cvar:0.5", "discount": 0.9,
                           "initial": 0, "confidence": 0.9, "target_gap": 0.1, "time_limit": 0.05, "rng": 0,
                           "threads": 1}),
        "belief_distance": (belief_distance, {"first": x["finite"], "confidence": 0.9,
                            "second": x["finite"].reweight([0.2, 0.3, 0.5]),
                            "n_models": 10, "rng": 0}),
        "value_of_information": (bb.value_of_information, {"belief": x["finite"], **task, "tries": 2, "draws": 10,
                                 "confidence": 0.9, "bounds": None, "n_models": 20, "nodes": 20, "rng": 0}),
        "evpi": (evpi, {"belief": x["finite"], **task, "n_models": 20, "nodes": 20, "rng": 0}),
        "evppi": (evppi, {"belief": x["finite"], "pairs": [(0, 0)], **task, "n_models": 20, "nodes": 20, "rng": 0}),
        "evsi": (evsi, {"belief": x["finite"], "pair": (0, 0), "tries": 2, **task, "n_models": 20, "nodes": 20,
                           "rng": 0}),
        "best_memoryless": (best_memoryless, {"belief": x["finite"], **task, "target_gap": 0.0, "time_limit": 1.0,
                            "node_limit": 100}),
        "sensitivity": (sensitivity, {"policies": {"table": x["table"], "drawn": x["drawn"]}, "belief": x["finite"],
                        **task}),
        "cadp": (bb.cadp, {"belief": x["finite"], **task, "start": x["staged"], "restarts": True}),
        "mmbi": (bb.mmbi, {"belief": x["finite"], **plain}),
        "mmbi epsilon": (bb.mmbi, {"belief": x["finite"], "discount": 0.9, "epsilon": 0.1}),
        "msbi": (bb.msbi, {"belief": x["dirichlet"], "rng": 0, **plain, "n_models": 4, "n_evaluate": 5}),
        "compare_memoryless": (compare_memoryless, {"training": x["finite"], "test": x["known"], "discount": 0.9,
                               "horizons": [2, 3], "initial": 0, "expected": x["mdp"], "restarts": False}),
        "update finite": (x["finite"].update, {**log, "reward": np.array([1.0, 0.0])}),
        "update dirichlet": (x["dirichlet"].update, dict(log)),
        "evidence": (x["dirichlet"].log_marginal_likelihood, dict(log)),
        "credible_intervals": (x["dirichlet"].credible_intervals, {"mass": 0.9}),
        "sample finite": (x["finite"].sample, {"n": 2, "rng": 0}),
        "sample dirichlet": (x["dirichlet"].sample, {"n": 2, "rng": 0}),
        "reweight": (x["finite"].reweight, {"weights": np.full(3, 1 / 3)}),
        "predictive": (x["finite"].predictive, {"state": 0, "action": 1}),
        "predictive dirichlet": (x["dirichlet"].predictive, {"state": 0, "action": 1}),
        "relabel": (x["mdp"].relabel, {"order": np.array([2, 0, 1])}),
        "plan.value": (x["plan"].value, {"initial": np.array([1.0, 0.0, 0.0])}),
        "write_models": (bb.write_models, {"path": scratch() / "models", "training": x["finite"], "discount": 0.9,
                         "initial": 0, "test": x["finite"], "true": x["mdp"], "overwrite": True}),
        "write_models file": (bb.write_models, {"path": scratch() / "models.pomdpx", "training": x["known"],
                              "discount": 0.9, "initial": 0, "overwrite": True}),
        "read_models": (bb.read_models, {"path": scratch() / "models", "reward_signal": "bernoulli"}),
        "load_policy": (load_policy, {"path": "missing"}),
        "load_actor": (bb.load_actor, {"path": "missing"}),
        "load_belief": (bb.load_belief, {"path": "missing"}),
        "SparseDirichletBelief": (SparseDirichletBelief, {"n_states": 3, "n_actions": 2, "concentration": 0.5,
                                  "sizes": np.array([0.5, 0.3, 0.2]), "support": alpha > 0, "rewards": x["rewards"],
                                  "terminal": np.array([2]), "available": r[0] >= 0.0, "initial": 0}),
        "MixtureBelief": (MixtureBelief, {"parts": [x["dirichlet"], x["dirichlet"]], "weights": np.array([0.5, 0.5])}),
        "PopulationBelief": (PopulationBelief, {"weight": np.ones((3, 2, 2, 3)), "rewards": np.ones((3, 2, 2, 2)),
                             "reward_range": (0.0, 1.0), "terminal": np.array([2]), "available": r[0] >= 0.0,
                             "initial": 0}),
        "learn_population": (learn_population, {"logs": [_log(), _log()], "n_states": 3, "n_actions": 2, "draws": 8,
                             "reward_range": (0.0, 1.0), "concentration": 0.5, "strength": (1.0, 2.0), "initial": 0,
                             "rng": 0}),
        "from_demonstrations": (bb.from_demonstrations, {"demonstrations": shown, "discount": 0.9, "reward": "state",
                                "reward_prior": "uniform", "rationality": 2.0, "dynamics": p[0], "draws": 8,
                                "chains": 2, "steps": 64, "initial": 0, "rng": 0, "threads": 1}),
        "from_demonstrations exact": (bb.from_demonstrations, {"demonstrations": shown, "discount": 0.9,
                                      "hypotheses": x["finite"], "rationality": np.array([1.0, 2.0])}),
        "alp": (alp, {"belief": x["finite"], **task, "features": None, "most": 200, "rng": 0}),
        "save_belief": (bb.save_belief, {"path": scratch() / "belief.npz", "belief": x["dirichlet"],
                        "states": ["a", "b", "c"], "actions": ["x", "y"]}),
        "entries_of": (entries_of, {"belief": x["dirichlet"], "prefix": "own_", "states": ["a", "b", "c"],
                       "actions": ["x", "y"]}),
        "belief_of": (belief_of, {"entries": entries_of(x["dirichlet"]), "prefix": ""}),
        "belief_kind": (belief_kind, {"name": "of-calls", "summary": "nothing"}),
        "capabilities_of": (capabilities_of, {"belief": x["finite"]}),
        "read_log": (bb.read_log, {"path": scratch() / "log.csv", "columns": {"state": "s"}, "states": 3, "actions": 2,
                     "names": False, "keep_suspicious": False, "progress": None}),
        "from_log": (bb.DirichletBelief.from_log, {"log": _log(), "prior": 0.5, "rewards": "values", "known": None,
                     "terminal": [2], "only_tried": False, "initial": 0}),
        "plan_log": (bb.plan_log, {"log": _log(), "discount": 0.9, "horizon": 2, "initial": np.array([1.0, 0.0, 0.0]),
                     "prior": 0.5, "rewards": "suggest", "known": r[0], "terminal": [2], "only_tried": False,
                     "try_untried": False, "objective": "mean", "confidence": 0.9, "n_models": 50, "time_limit": 0.0,
                     "effort": None, "measure": False, "seed": 1, "threads": 1, "watch": None,
                     "stop": None, "say": None}),
        "repeat": (x["table"].repeat, {"horizon": 3}),
        "drop": (x["staged"].drop, {"stages": 1}),
        "chances": (x["table"].chances, {"n_actions": 2}),
        "theorem1_regret": (bb.theory.theorem1_regret, {"distance": 0.1, "discount": 0.9, "r_max": 1.0}),
        "truncation_stages": (bb.theory.truncation_stages, {"epsilon": 0.1, "discount": 0.9, "r_max": 1.0}),
        "lemma2_models": (bb.theory.lemma2_models, {"epsilon": 0.1, "discount": 0.9, "r_max": 1.0}),
        "cost_estimate": (bb.theory.cost_estimate, {"epsilon": 0.1, **theory, "n_models": 3}),
        "uniform_deviation": (bb.theory.uniform_deviation, {"n_models": 9, **theory, "horizon": 3, "delta": 0.1}),
        "uniform_models": (bb.theory.uniform_models, {"epsilon": 0.1, **theory, "horizon": 3, "delta": 0.1}),
    }  # fmt: skip
    for name in ("table", "staged", "drawn", "bracket"):
        policy = x[name].policy if name == "bracket" else x[name]
        made[f"{name}.act"] = (_walked(policy, "act"), {"state": 0})
        made[f"{name}.observe"] = (_walked(policy, "observe"), dict(steps))
        made[f"{name}.reset"] = (policy.fresh().reset, {"seed": 1})
    for name in ("e_max", "qmdp", "expected_mdp_policy", "optimal_values"):
        first = "models" if name == "optimal_values" else "belief"
        made[name] = (getattr(bb, name), {first: x["finite"], **plain})
    for name in ("policy_iteration", "value_iteration"):
        made[name] = (getattr(bb, name), {"mdp": x["mdp"], "discount": 0.9})
    made["value_iteration"][1].update(epsilon=1e-3, max_sweeps=50, evaluation_sweeps=3)
    made["backward_induction"] = (bb.backward_induction, {"mdp": x["mdp"], **plain})
    made["Environment"] = (
        bb.Environment,
        {name: getattr(x["env"], name) for name in ("name", "mdp", "outcomes", "reward_range", "discount")},
    )
    return {name: (lambda f=f, a=a: Call(f, dict(a))) for name, (f, a) in made.items()}


@cache
def _log() -> bb.Log:
    """A small log, and the file that it is read from."""
    rows = ["s,action,reward,next_state", "0,0,0,1", "1,1,1,0", "0,1,0,2", "0,0,1,1", "1,0,0,1"]
    file = scratch() / "log.csv"
    file.write_text("\n".join(rows))
    return bb.read_log(file, columns={"state": "s"})


def use(found: Any) -> None:
    """Do with a result what one does with it: what was accepted must also work."""
    if getattr(found, "n_states", 0) > 100:
        return
    if isinstance(found, bb.FiniteBelief):
        bb.qmdp(found, discount=0.9, horizon=2)
        bb.mmbi(found, discount=0.9, horizon=2).value()
    if isinstance(found, bb.FiniteBelief | bb.DirichletBelief):
        found.mean()
        found.sample(2, 0)
        found.predictive(0, 0)
    elif isinstance(found, bb.MDP):
        bb.policy_iteration(found, discount=0.9).value()
    elif isinstance(found, bb.Plan):
        found.value()
        found.stationary()
    elif isinstance(found, bb.Bracket):
        found.summary()
        found.policy.act(0)
    elif isinstance(found, bb.Environment):
        bb.play(bb.make_agent("random", found), found, seed=1, runs=1, steps=3)
    elif isinstance(found, bb.StationaryPolicy | bb.MemorylessPolicy):
        found.reset(0)
        found.act(0)
        hash(found)
    elif isinstance(found, bb.BetaRewards | NormalRewards | bb.KnownRewards | DirichletRewards):
        use(bb.DirichletBelief(3, 2, rewards=found))
    elif isinstance(found, Path | bb.ModelFolder):
        use(bb.read_models(found).training if isinstance(found, Path) else found.training)
    repr(found)


@cache
def scratch() -> Path:
    """A folder for what calls write; gone when the process ends (`soak.fuzz.supervise` sees to killed ones)."""
    folder = Path(tempfile.mkdtemp(prefix="beliefbound-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _walked(policy: Any, method: str) -> Callable[..., Any]:
    """A method of a policy at its start, whatever was asked of it before."""

    def called(*values: Any, **named: Any) -> Any:
        own = policy.fresh()
        own.reset(0)
        return getattr(own, method)(*values, **named)

    return called
