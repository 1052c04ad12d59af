"""Steps of Markov chains over rewards, dynamics and rationality, against a plain twin.

The twin is what one writes first: the same proposals in NumPy, `Q*` by value iteration from the last one, to 1e-6 of
the values' range; the kernel keeps the optimum by rank-one updates, exactly. Per step, one core.
"""

from functools import partial

import numpy as np

from beliefbound import MDP, optimal_values
from beliefbound.planning.inverse.chains import Problem, run_chains
from beliefbound.planning.inverse.hypotheses import log_choices
from beliefbound.planning.inverse.rewards import reward_form
from benchmarks.timing import race, show

SIZES = ((8, 3, 10_000, 100), (100, 4, 10_000, 20))  # states, actions, our steps, the twin's
DISCOUNT = 0.95


def problem(S: int, A: int, shown: int = 200) -> Problem:
    """A softmax demonstrator's steps in a random MDP."""
    rng = np.random.default_rng(1)
    p, r = rng.dirichlet(np.full(S, 0.3), size=(S, A)), rng.random(S) ** 4
    q = optimal_values(MDP(p, np.repeat(r[:, None], A, axis=1), normalize=True), discount=DISCOUNT).q[0]
    chances = np.exp(10.0 * (q - q.max(axis=1, keepdims=True)))
    chances /= chances.sum(axis=1, keepdims=True)
    visits, counts, s = np.zeros((1, S, A), dtype=np.int64), np.full((S, A, S), 0.3), 0
    for _ in range(shown):
        a = int(rng.choice(A, p=chances[s]))
        t = int(rng.choice(S, p=p[s, a]))
        visits[0, s, a] += 1
        counts[s, a, t] += 1.0
        s = t
    form = reward_form("state", None, A, np.zeros(S, dtype=bool))
    return Problem(DISCOUNT, counts, p, np.arange(S * A), visits, form, (2.0, 2.0, 0.0))


def twin(asked: Problem, steps: int) -> float:
    """The same chain in NumPy; the last log likelihood."""
    rng = np.random.default_rng(2)
    _, S, A = asked.visits.shape
    p = np.stack([rng.dirichlet(row) for row in asked.alpha.reshape(-1, S)]).reshape(S, A, S)
    r, eta, v = rng.random(S), 4.0, np.zeros(S)

    def solve(p, r, v):
        while True:
            q = r[:, None] + DISCOUNT * p @ v
            new = q.max(axis=1)
            if np.abs(new - v).max() < 1e-6:
                return q, new
            v = new

    q, v = solve(p, r, v)
    like = float(log_choices(q, asked.visits[0], eta))
    for _ in range(steps):
        kind, new_p, new_r, new_eta, ratio = rng.random(), p, r, eta, 0.0
        if kind < 0.4:
            new_r = r.copy()
            new_r[rng.integers(S)] = rng.random()
        elif kind < 0.8:
            s, a = rng.integers(S), rng.integers(A)
            new_p = p.copy()
            new_p[s, a] = rng.dirichlet(asked.alpha[s, a])
        else:
            new_eta = eta * np.exp(rng.normal())
            ratio = 2.0 * np.log(new_eta / eta) - (new_eta - eta) / 2.0
        new_q, new_v = solve(new_p, new_r, v)
        new_like = float(log_choices(new_q, asked.visits[0], new_eta))
        if np.log(rng.random()) < ratio + new_like - like:
            p, r, eta, q, v, like = new_p, new_r, new_eta, new_q, new_v, new_like
    return like


def compiled(asked: Problem, steps: int) -> None:
    """A chain of so many steps, a fifth of them thrown away."""
    run_chains(asked, chains=1, draws=1, steps=steps * 4 // 5, seed=1, threads=1)


def main() -> None:
    for S, A, ours, theirs in SIZES:
        asked = problem(S, A)
        runs = {"compiled chain": partial(compiled, asked, ours), "plain twin": partial(twin, asked, theirs)}
        times = race(runs, 5)
        print(f"{ours} steps of {S} states, {A} actions: {times['compiled chain']:.3f} s")
        times = {"compiled chain": times["compiled chain"] / ours, "plain twin": times["plain twin"] / theirs}
        show(f"a step, {S} states, {A} actions", times, "compiled chain", "at least 50 x")


if __name__ == "__main__":
    main()
