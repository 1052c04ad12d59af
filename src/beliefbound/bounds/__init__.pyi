"""The public names of this room and where each lives: read by type checkers and, at run time, by `__init__.py`."""

from .basic import policy_regret as policy_regret
from .bound import Kind as Kind
from .bound import Regret as Regret
from .check_policy import check_policy as check_policy
from .distance import belief_distance as belief_distance
from .finite.alp import ApproximateLP as ApproximateLP
from .finite.alp import alp as alp
from .finite.lookahead import lookahead_lower as lookahead_lower
from .finite.lookahead import lookahead_upper as lookahead_upper
from .finite.pairs import pair_bound as pair_bound
from .finite.relaxation import relaxation as relaxation
from .information.value import evpi as evpi
from .information.value import evppi as evppi
from .information.value import evsi as evsi
from .memoryless.branch_and_bound import BestMemoryless as BestMemoryless
from .memoryless.branch_and_bound import best_memoryless as best_memoryless
from .sensitivity import Sensitivity as Sensitivity
from .sensitivity import sensitivity as sensitivity
