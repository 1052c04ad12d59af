"""Draws docs/experts.png: what the expert of examples/make_demos.py wants, beside what is learnt of it.

    python docs/experts.py

The rewards that nobody wrote down; mean and spread of what 100 and 1000 steps leave possible (uniform prior).
"""

import sys
from pathlib import Path

import numpy as np

from beliefbound import from_demonstrations
from beliefbound.logs.demonstrations import read_demonstrations
from beliefbound.report.figures import figure

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "examples"))
from make_demos import DISCOUNT, NAMES, SIDE, garden, walks  # noqa: E402

STEPS = (100, 1000)


def learnt(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread `[s]` after so many steps."""
    columns = ("episode", "t", "state", "action", "next_state")
    rows = walks(steps, np.random.default_rng(7))
    table = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    demos = read_demonstrations(table, states=SIDE * SIDE, actions=NAMES)
    found = from_demonstrations(demos, discount=DISCOUNT, steps=1_000_000, rng=1)
    print(found.summary())
    return found.reward_mean[:, 0], found.reward_spread[:, 0]


def main() -> None:
    maps = [("the truth", garden()[1], "viridis")]
    for steps in STEPS:
        mean, spread = learnt(steps)
        maps += [(f"{steps} steps: mean", mean, "viridis"), (f"{steps} steps: spread", spread, "magma")]
    with figure(figsize=(11.0, 2.6)) as (drawn, axes):
        axes.set_axis_off()
        for i, (title, values, colours) in enumerate(maps):
            part = drawn.add_subplot(1, len(maps), i + 1)
            limit = 1.0 if colours == "viridis" else 0.3
            image = part.imshow(values.reshape(SIDE, SIDE), cmap=colours, vmin=0.0, vmax=limit)
            drawn.colorbar(image, ax=part, shrink=0.7)
            part.set_title(title, fontsize=9)
            part.set_axis_off()
        drawn.savefig(HERE / "experts.png", bbox_inches="tight", metadata={"Software": None})


if __name__ == "__main__":
    main()
