"""`MDP`s from and to other libraries: gymnasium's `P` tables, pymdptoolbox arrays, QuantEcon's `DiscreteDP`."""

from beliefbound.models.convert.gym_table import from_gymnasium, gymnasium_table
from beliefbound.models.convert.mdptoolbox import from_mdptoolbox, to_mdptoolbox
from beliefbound.models.convert.quantecon import from_quantecon, to_quantecon

__all__ = [
    "from_gymnasium",
    "from_mdptoolbox",
    "from_quantecon",
    "gymnasium_table",
    "to_mdptoolbox",
    "to_quantecon",
]
