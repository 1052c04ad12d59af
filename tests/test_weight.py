"""What is loaded: bounds of beliefs need no table library, no pictures, no environments."""

import subprocess
import sys

HEAVY = ("polars", "pandas", "matplotlib", "gymnasium", "jinja2", "typer")
CODE = """
import sys
import beliefbound as bb
belief = bb.FiniteBelief([[[[1.0], [1.0]]]] * 2, [[[0.0, 1.0]], [[1.0, 0.0]]], reward_signal="unobserved")
found = bb.bracket(belief, discount=0.9, effort=2, rng=1)
found.summary()
bb.certify(bb.StationaryPolicy([0]), belief, discount=0.9, upper=found.upper)
bb.bracket(bb.DirichletBelief(2, 1), discount=0.9, horizon=2, effort=2, rng=1)
print(*(name for name in {heavy!r} if name in sys.modules))
"""


def test_a_bracket_loads_nothing_that_it_does_not_need():
    done = subprocess.run([sys.executable, "-c", CODE.format(heavy=HEAVY)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
