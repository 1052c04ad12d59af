"""If the prior is right, is the statement that says so? Truths drawn from the priors of `plan_log`, starts too.

    python -m benchmarks.right_prior [logs of each kind, default 1000]

*uniform*: rows from Dirichlet(1/S). *few successors*: about how many successors a row has and how even they are is
drawn from the grid of `beliefs.few_successors`, then rows. Starts are drawn from Dirichlet(1/S), rewards of pairs are
known. Behaviour, drawn without regard to the truth, makes 3 or 12 episodes of 8 steps; every second log is planned for
the mean, the others with `safe:0.05`. *False* is a log whose 95% statement – that of the prior that was right – is
above what the chosen policy earns in the truth; of `n` logs it would be `5% ± 1.96 √(5% · 95%/n)` if the statement were
exact. *Least* counts the same of the least favourable statement.
"""

import math
import sys
from collections.abc import Callable

import numpy as np

from beliefbound import plan_log
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.few_successors import CENTRES, CONCENTRATIONS, FEW, sizes_about
from beliefbound.beliefs.kinds.sparse import SparseDirichletBelief
from beliefbound.logs import Log, log_of
from beliefbound.planning.safe.bounded import value_of

STATES, ACTIONS, STEPS, DISCOUNT = 6, 3, 8, 0.9
EPISODES = (3, 12)


def uniform(rng: np.random.Generator) -> FloatArray:
    """Rows `[s,a,t]` of the uniform prior."""
    return np.asarray(rng.dirichlet(np.full(STATES, 1.0 / STATES), (STATES, ACTIONS)))


def sparse(rng: np.random.Generator) -> FloatArray:
    """Rows with few successors."""
    alpha, centre = rng.choice(CONCENTRATIONS), rng.choice(CENTRES)
    drawn = SparseDirichletBelief(STATES, ACTIONS, concentration=alpha, sizes=sizes_about(centre, STATES))
    return np.asarray(drawn.sample(1, rng).models.dense()[0])


TRUTHS: dict[str, Callable[[np.random.Generator], FloatArray]] = {"uniform": uniform, FEW: sparse}


def logged(rows: FloatArray, paid: FloatArray, start: FloatArray, episodes: int, rng: np.random.Generator) -> Log:
    """Episodes of a behaviour that knows nothing."""
    behaviour = rng.dirichlet(np.ones(ACTIONS), STATES)
    steps = []
    for episode in range(episodes):
        s = int(rng.choice(STATES, p=start))
        for _ in range(STEPS):
            a = int(rng.choice(ACTIONS, p=behaviour[s]))
            t = int(rng.choice(STATES, p=rows[s, a]))
            steps.append((s, a, paid[s, a], t, episode))
            s = t
    states, actions, rewards, after, episode_of = map(np.array, zip(*steps, strict=True))
    return log_of(states, actions, rewards, after, episodes=episode_of, n_states=STATES, n_actions=ACTIONS)


def one(kind: str, episodes: int, number: int) -> tuple[bool, bool]:
    """Whether the statement of the prior that is right, and the least favourable one, are false of one log."""
    rng = np.random.default_rng((2, list(TRUTHS).index(kind), episodes, number))
    rows, paid = TRUTHS[kind](rng), rng.choice([0.0, 0.3, 1.0], (STATES, ACTIONS))
    start = rng.dirichlet(np.full(STATES, 1.0 / STATES))
    log = logged(rows, paid, start, episodes, rng)
    found = plan_log(
        log,
        discount=DISCOUNT,
        prior="uniform",
        known=paid,
        objective=("mean", "safe:0.05")[number % 2],
        n_models=399,
        time_limit=0,
        measure=False,
        seed=number,
    )
    true = float(start @ value_of(found.policy.chances(ACTIONS), rows, paid, DISCOUNT))
    own = next(row for row in found.reliance.table if row.prior == kind)
    return true < own.credible, true < min(own.credible, found.reliance.least.credible)


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    within = 196.0 * math.sqrt(0.05 * 0.95 / many)
    print(f"| truth | episodes | logs | false (5% ± {within:.1f}%) | least: false |")
    print("|---|---|---|---|---|")
    for kind in TRUTHS:
        for episodes in EPISODES:
            found = np.array([one(kind, episodes, number) for number in range(many)])
            own, least = 100.0 * found.mean(axis=0)
            print(f"| {kind} | {episodes} | {many} | {own:.1f}% | {least:.1f}% |", flush=True)


if __name__ == "__main__":
    main()
