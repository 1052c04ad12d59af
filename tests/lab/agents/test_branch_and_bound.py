"""Branch and bound: brackets at every expansion, leaves that are the bounds they are named after."""

import numpy as np
import pytest

from support.every_agent import EveryAgent
from support.searches import FOREVER, check_a_search_leaves_the_belief_as_it_was, searched


class TestBranchAndBound(EveryAgent):
    name = "branch-and-bound"
    small = "branch-and-bound:n=2,depth=5"
    variants = ("branch-and-bound:n=2,depth=3,leaves=cadp", "branch-and-bound:n=2,depth=3,leaves=pairs")
    mistakes = (
        ("branch-and-bound:leaves=none", "leaves is 'none'; give one of original, mmbi, cadp, pairs"),
        ("branch-and-bound:leaves=pairs,n=1", "leaves=pairs needs two models"),
        ("branch-and-bound:sweeps=3", "sweeps has no effect with leaves=original"),
        ("branch-and-bound:n=1000000,leaves=cadp,depth=1000", "need .* GB"),
        ("branch-and-bound:expansions=100000,n=1000", "2000000 leaves at every step are 1e[+]13 operations; take"),
    )


@pytest.mark.parametrize("leaves", ["original", "mmbi", "cadp", "pairs"])
def test_branch_and_bound_brackets_the_exact_value_at_every_expansion(leaves):
    """A leaf's estimates have a deviation of about 2.3/√n: the allowance is twice that."""
    widths = []
    for expansions in (1, 2, 4, 8):
        tree = searched(f"branch-and-bound:leaves={leaves},n=1000,depth=100,expansions={expansions}").tree
        assert tree.lower[0] <= FOREVER + 0.15
        assert tree.upper[0] >= FOREVER - 0.15
        assert (tree.lower <= tree.upper + 1e-12).all()
        assert tree.upper[0] - tree.lower[0] < tree.first[1] - tree.first[0] + 0.15
        widths.append(tree.upper[0] - tree.lower[0])
    assert widths[-1] < widths[0]


def test_leaves_of_branch_and_bound_are_the_bounds_they_are_named_after():
    """A leaf: always safe or always toss earns ½ a pull; E max ⅝; QMDP tosses once and is then told."""
    pulls = 0.95 / (1 - 0.95**2)
    for leaves, upper in (("original", 0.625 * pulls), ("mmbi", 0.95 / 2 + 0.95**2 * 0.625 * pulls)):
        state = searched(f"branch-and-bound:n=4096,depth=300,tolerance=1e-7,expansions=1,leaves={leaves}")
        np.testing.assert_allclose(state.tree.first, [0.5 * pulls, upper], atol=0.1)


def test_a_search_leaves_the_belief_as_it_was():
    check_a_search_leaves_the_belief_as_it_was("branch-and-bound:n=2")
