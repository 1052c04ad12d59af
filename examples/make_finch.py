"""Make `examples/finch.pomdpx`: a threatened bird, three experts who disagree on what helps. Invented numbers.

python examples/make_finch.py
"""

from pathlib import Path

import numpy as np

import beliefbound as bb

ACTIONS = ("wait", "burn", "graze_less", "nest_boxes")
EXPERTS = ("fire", "cattle", "hollows")
# Chance that the population is large next year: by expert, for a small and a large population, by action.
LARGE = np.array(
    [
        [[0.05, 0.45, 0.15, 0.10], [0.60, 0.85, 0.65, 0.60]],
        [[0.10, 0.05, 0.50, 0.15], [0.55, 0.40, 0.90, 0.60]],
        [[0.10, 0.15, 0.15, 0.40], [0.65, 0.60, 0.65, 0.85]],
    ]
)
COST = np.array([0.0, 4.0, 5.0, 3.0])

belief = bb.FiniteBelief(
    np.stack([1.0 - LARGE, LARGE], axis=-1),
    np.array([[0.0], [20.0]]) - COST,
    weights=[0.5, 0.25, 0.25],
    initial=0,
    states=("small", "large"),
    actions=ACTIONS,
    model_names=EXPERTS,
)
bb.write_models(Path(__file__).parent / "finch.pomdpx", belief, discount=0.95, overwrite=True)
