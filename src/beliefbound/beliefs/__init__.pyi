"""The public names of this room and where each lives: read by type checkers and, at run time, by `__init__.py`."""

from .belief import Belief as Belief
from .capabilities import Capability as Capability
from .capabilities import capabilities_of as capabilities_of
from .check import check_belief as check_belief
from .dirichlet import DirichletBelief as DirichletBelief
from .files import belief_kind as belief_kind
from .files import belief_of as belief_of
from .files import entries_of as entries_of
from .finite import FiniteBelief as FiniteBelief
from .kinds.mixture import MixtureBelief as MixtureBelief
from .kinds.population import PopulationBelief as PopulationBelief
from .kinds.sparse import SparseDirichletBelief as SparseDirichletBelief
from .population import Population as Population
from .population import learn_population as learn_population
from .rewards import BetaRewards as BetaRewards
from .rewards import DirichletRewards as DirichletRewards
from .rewards import KnownRewards as KnownRewards
from .rewards import MixedRewards as MixedRewards
from .rewards import NormalRewards as NormalRewards
from .rewards.check import check_rewards as check_rewards
from .signals import FiniteValues as FiniteValues
