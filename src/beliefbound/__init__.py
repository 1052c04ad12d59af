"""beliefbound: beliefs over Markov decision processes in, policies and proven bounds out.

>>> import numpy as np, beliefbound as bb
>>> belief = bb.DirichletBelief(5, 2).sample(16, np.random.default_rng(0))
>>> plan = bb.mmbi(belief, discount=0.95, horizon=100)
>>> bool((plan.values <= bb.qmdp(belief, discount=0.95, horizon=100)).all())
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Public names and the module each lives in, imported when first used so that `import beliefbound` is instant.
_HOME = {
    "MDP": "mdp",
    "StationaryPolicy": "policy",
    "MemorylessPolicy": "policy",
    "evaluate": "evaluation",
    "FiniteBelief": "beliefs.finite",
    "DirichletBelief": "beliefs.dirichlet",
    "BetaRewards": "beliefs.rewards",
    "NormalRewards": "beliefs.rewards",
    "KnownRewards": "beliefs.rewards",
    "Plan": "planning.plan",
    "value_iteration": "planning.optimal",
    "policy_iteration": "planning.optimal",
    "modified_policy_iteration": "planning.optimal",
    "backward_induction": "planning.optimal",
    "optimal_values": "planning.optimal",
    "mmbi": "planning.mmbi",
    "msbi": "planning.msbi",
    "expected_mdp_policy": "planning.expected",
    "cadp": "planning.cadp",
    "best_memoryless": "planning.exact",
    "BestMemoryless": "planning.exact",
    "best_memoryless_milp": "planning.milp",
    "compare_memoryless": "planning.compare",
    "read_models": "beliefs.folder",
    "write_models": "beliefs.folder",
    "ModelFolder": "beliefs.folder",
    "Bound": "bounds.bound",
    "lower_bound": "bounds.basic",
    "upper_bound": "bounds.basic",
    "e_max": "bounds.basic",
    "policy_gap": "bounds.basic",
    "qmdp": "bounds.basic",
    "pair_bound": "bounds.finite.pairs",
    "belief_distance": "bounds.distance",
    "truncation_stages": "planning.lemmas",
    "lemma2_models": "planning.lemmas",
    "uniform_deviation": "bounds.theory",
    "uniform_models": "bounds.theory",
    "theorem1_gap": "bounds.theory",
    "cost_estimate": "bounds.theory",
    "bracket": "bounds.bracket",
    "Bracket": "bounds.bracket",
    "value_of_information": "bounds.information.value",
    "relaxation": "bounds.finite.relaxation",
    "lookahead_lower": "bounds.finite.lookahead",
    "lookahead_upper": "bounds.finite.lookahead",
    "make_env": "envs.registry",
    "make_agent": "agents.registry",
    "play": "agents.play",
    "Environment": "envs.environment",
    "from_gymnasium": "convert.gym_table",
    "BeliefboundError": "errors",
}

# Plain results of functions: documented by their attributes, shown in the examples of the functions that return them.
_RESULTS = {"Bracket", "BestMemoryless", "ModelFolder", "Plan"}

__all__ = sorted(_HOME)
__version__ = "0.1.0"

if TYPE_CHECKING:
    from beliefbound.agents.play import play as play
    from beliefbound.agents.registry import make_agent as make_agent
    from beliefbound.beliefs.dirichlet import DirichletBelief as DirichletBelief
    from beliefbound.beliefs.finite import FiniteBelief as FiniteBelief
    from beliefbound.beliefs.folder import ModelFolder as ModelFolder
    from beliefbound.beliefs.folder import read_models as read_models
    from beliefbound.beliefs.folder import write_models as write_models
    from beliefbound.beliefs.rewards import BetaRewards as BetaRewards
    from beliefbound.beliefs.rewards import KnownRewards as KnownRewards
    from beliefbound.beliefs.rewards import NormalRewards as NormalRewards
    from beliefbound.bounds.basic import e_max as e_max
    from beliefbound.bounds.basic import lower_bound as lower_bound
    from beliefbound.bounds.basic import policy_gap as policy_gap
    from beliefbound.bounds.basic import qmdp as qmdp
    from beliefbound.bounds.basic import upper_bound as upper_bound
    from beliefbound.bounds.bound import Bound as Bound
    from beliefbound.bounds.bracket import Bracket as Bracket
    from beliefbound.bounds.bracket import bracket as bracket
    from beliefbound.bounds.distance import belief_distance as belief_distance
    from beliefbound.bounds.finite.lookahead import lookahead_lower as lookahead_lower
    from beliefbound.bounds.finite.lookahead import lookahead_upper as lookahead_upper
    from beliefbound.bounds.finite.pairs import pair_bound as pair_bound
    from beliefbound.bounds.finite.relaxation import relaxation as relaxation
    from beliefbound.bounds.information.value import value_of_information as value_of_information
    from beliefbound.bounds.theory import cost_estimate as cost_estimate
    from beliefbound.bounds.theory import theorem1_gap as theorem1_gap
    from beliefbound.bounds.theory import uniform_deviation as uniform_deviation
    from beliefbound.bounds.theory import uniform_models as uniform_models
    from beliefbound.convert.gym_table import from_gymnasium as from_gymnasium
    from beliefbound.envs.environment import Environment as Environment
    from beliefbound.envs.registry import make_env as make_env
    from beliefbound.errors import BeliefboundError as BeliefboundError
    from beliefbound.evaluation import evaluate as evaluate
    from beliefbound.mdp import MDP as MDP
    from beliefbound.planning.cadp import cadp as cadp
    from beliefbound.planning.compare import compare_memoryless as compare_memoryless
    from beliefbound.planning.exact import BestMemoryless as BestMemoryless
    from beliefbound.planning.exact import best_memoryless as best_memoryless
    from beliefbound.planning.expected import expected_mdp_policy as expected_mdp_policy
    from beliefbound.planning.lemmas import lemma2_models as lemma2_models
    from beliefbound.planning.lemmas import truncation_stages as truncation_stages
    from beliefbound.planning.milp import best_memoryless_milp as best_memoryless_milp
    from beliefbound.planning.mmbi import mmbi as mmbi
    from beliefbound.planning.msbi import msbi as msbi
    from beliefbound.planning.optimal import backward_induction as backward_induction
    from beliefbound.planning.optimal import modified_policy_iteration as modified_policy_iteration
    from beliefbound.planning.optimal import optimal_values as optimal_values
    from beliefbound.planning.optimal import policy_iteration as policy_iteration
    from beliefbound.planning.optimal import value_iteration as value_iteration
    from beliefbound.planning.plan import Plan as Plan
    from beliefbound.policy import MemorylessPolicy as MemorylessPolicy
    from beliefbound.policy import StationaryPolicy as StationaryPolicy


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'beliefbound' has no attribute {name!r}")
    value = getattr(import_module(f"beliefbound.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
