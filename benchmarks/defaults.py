"""Settings of agents for which their authors publish none: the best on random MDPs that no league plays.

Each candidate plays 20 Garnets (20 states, 4 actions, 3 successors), five runs of 1000 steps on the same noise, with
the prior and the discount that are every agent's default; what counts is the mean total. The default of the agent is
the winner, and `docs/league.md` says so. No league has any part in this.
"""

from itertools import product

import numpy as np

from beliefbound.lab.engine.play import play
from beliefbound.lab.engine.registry import canonical_agent, make_agent
from beliefbound.lab.envs import make_env

MDPS, RUNS, STEPS = 20, 5, 1000
_LEARNT = product((0.0, 0.5, 1.0), (0.1, 0.5, 2.0), (0.05, 0.2, 0.5))
CANDIDATES = {
    "bolt": [f"bolt:eta={eta}" for eta in (0.5, 1, 2, 5, 10, 20)],
    "vbrb": [f"vbrb:rewards={r},transitions={p}" for r, p in product((0.25, 1, 4), repeat=2)],
    "dither": [f"dither:explore=softmax,temperature={x}" for x in (0.01, 0.03, 0.1, 0.3, 1.0)],
    "bbi": [f"bbi:bandwidth={x}" for x in (0, 0.1, 0.3, 1, 3)],
    "bayes-q": [f"bayes-q:optimism={o},strength={s},deviation={d}" for o, s, d in _LEARNT],
}


def main() -> None:
    places = [make_env(f"garnet:seed={seed}") for seed in range(1, MDPS + 1)]
    for name, candidates in CANDIDATES.items():
        totals = []
        for spec in candidates:
            each = [play(make_agent(spec, place), place, seed=1, runs=RUNS, steps=STEPS).total for place in places]
            totals.append(np.concatenate(each))
        order = np.argsort([-own.mean() for own in totals], kind="stable")
        print(f"{name}: now {canonical_agent(name)}")
        for i in order[:6]:
            behind = totals[order[0]] - totals[i]
            print(f"  {totals[i].mean():8.2f}  −{behind.mean():.2f} ± {1.96 * behind.std() / 10:.2f}  {candidates[i]}")
