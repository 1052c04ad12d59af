"""Information relaxation against a plain Python twin, on a Chain belief of 8 models."""

import heapq

import numpy as np

from beliefbound.base.executors.team import Team
from beliefbound.beliefs import DirichletBelief, FiniteBelief, KnownRewards
from beliefbound.bounds.bracket import bracket
from beliefbound.bounds.finite.relaxation import BLOCK, certifier_of
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.task import FiniteTask
from benchmarks.timing import race, show

DISCOUNT, HORIZON, DEPTH = 0.95, 150, 15


def chain_belief(n_models: int, steps: int) -> FiniteBelief:
    """Models from the Dirichlet(1/5) posterior after random steps in Chain, its expected rewards known."""
    forward = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    rewards = np.column_stack([0.8 * 2 + 0.2 * forward, 0.2 * 2 + 0.8 * forward])
    belief = DirichletBelief(5, 2, rewards=KnownRewards(rewards), initial=0)
    rng, s = np.random.default_rng(1), 0
    for _ in range(steps):
        a = int(rng.integers(2))
        t = min(s + 1, 4) if (a == 1) == (rng.random() < 0.8) else 0
        belief, s = belief.update(s, a, None, t), t
    return belief.sample(n_models, rng)


def plain_scenario(p: np.ndarray, r: np.ndarray, q: np.ndarray, weights: np.ndarray, u: list[float]) -> float:
    """The cheapest action sequence of one scenario; posteriors are kept with the nodes, NumPy does the sums."""
    queue, count = [(0.0, 0, 0, weights, 0)], 0
    while True:
        cost, _, k, b, s = heapq.heappop(queue)
        if k == DEPTH:
            return cost
        here = (b @ q[k, :, s]).max()
        for a in range(r.shape[2]):
            joint = b[:, None] * p[:, s, a]  # [m,t]
            masses = joint.sum(axis=0)
            later = np.einsum("mt,mta->ta", joint, q[k + 1]).max(axis=1).sum()
            loss = here - b @ r[:, s, a] - DISCOUNT * later
            t = int(np.searchsorted(np.cumsum(masses), u[k + 1] * masses.sum(), side="right"))
            t = min(t, len(masses) - 1)
            count += 1
            heapq.heappush(queue, (cost + DISCOUNT**k * loss, count, k + 1, joint[:, t] / masses[t], t))


def main() -> None:
    belief = chain_belief(8, 30)
    # A graph of one belief: the penalty is QMDP, as the twin's. Posteriors are shared within a block of 64 scenarios.
    pool = [mmbi(belief, discount=DISCOUNT, horizon=HORIZON).policy]
    certifier = certifier_of(
        FiniteTask.of(belief, discount=DISCOUNT, horizon=HORIZON), policies=pool, core_nodes=1, pairs=False
    )
    certifier.freeze_values()
    certifier.depth, certifier.tolerance = DEPTH, -1.0
    address = np.array([1], dtype=np.uint64)
    p, r, q = belief.transitions, belief.rewards, certifier.problem.q
    count = 32 * BLOCK

    def plain() -> list[float]:
        costs = []
        for i in range(count):
            stream = seed_stream(np.append(address, np.uint64(i)))
            costs.append(plain_scenario(p, r, q, belief.weights, [uniform(stream) for _ in range(DEPTH + 1)]))
        return costs

    def compiled(threads: int | None) -> object:
        with Team(threads) as team:
            return certifier.sample(address, 0, count, clip=np.inf, stop=-1.0, team=team)

    ours = "compiled, every core"
    contenders = {
        ours: lambda: compiled(None),
        "compiled, one thread": lambda: compiled(1),
        "plain Python and NumPy": plain,
    }
    title = f"information relaxation, {count} scenarios, depth {DEPTH}"
    show(title, race(contenders, repeats=3), ours, "50 x plain Python")
    for n_models, steps in ((8, 0), (8, 30), (16, 100)):
        found = bracket(
            chain_belief(n_models, steps), discount=DISCOUNT, horizon=HORIZON, target_gap=0.01, time_limit=10,
            rng=np.random.default_rng(2),
        )  # fmt: skip
        print(f"\nbracket of {n_models} Chain models after {steps} steps: {found}, {found.trace[-1].seconds:.2f} s")


if __name__ == "__main__":
    main()
