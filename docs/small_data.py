"""Draws docs/small_data.png: the policy that `plan` chooses against the expected MDP's, on logs of simulated steps.

    python docs/small_data.py [logs per point, default 200]

Three worlds: Chain and RiverSwim, each one known MDP; and MDPs drawn from the uniform prior. Random behaviour in
episodes of 20 steps is logged; everything is then as `plan` has it by default – the prior that suits the log, untried
actions left alone by both policies – except that rewards are known; both policies are valued on the true MDP. The two
are compared log by log: means and 95% intervals of the difference.
"""

import sys
from pathlib import Path

import numpy as np

from beliefbound import MDP, KnownRewards, evaluate, make_env, policy_iteration
from beliefbound.beliefs.from_log import learn
from beliefbound.bounds.posterior.candidates import choose
from beliefbound.bounds.posterior.risk import Objective
from beliefbound.logs import log_of
from beliefbound.planning.task import Task
from beliefbound.report.figures import COLOURS, figure

DISCOUNT, EPISODE = 0.95, 20
SIZES = (20, 40, 80, 160, 320)


def chain(rng: np.random.Generator) -> MDP:
    """The same MDP every time."""
    return make_env("chain").mdp


def riverswim(rng: np.random.Generator) -> MDP:
    """The same MDP every time."""
    return make_env("riverswim").mdp


def drawn(rng: np.random.Generator) -> MDP:
    """Five states, two actions, rows from Dirichlet(1/5), rewards uniform."""
    return MDP(rng.dirichlet(np.full(5, 0.2), size=(5, 2)), rng.random((5, 2)), initial=0, normalize=True)


def logged(mdp: MDP, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """States, actions and next states of random behaviour."""
    rows = mdp.models.dense()[0]
    s, found = 0, []
    for k in range(steps):
        a = int(rng.integers(mdp.n_actions))
        t = int(rng.choice(mdp.n_states, p=rows[s, a]))
        found.append((s, a, t))
        s = t if (k + 1) % EPISODE else 0
    return tuple(np.array(found).T)


def shares(world, steps: int, seed: int) -> tuple[float, float]:
    """True values of the chosen policy and of the expected MDP's, as shares of the optimum."""
    rng = np.random.default_rng((steps, seed))
    mdp = world(rng)
    s, a, t = logged(mdp, steps, rng)
    log = log_of(s, a, mdp.rewards[s, a], t, n_states=mdp.n_states, n_actions=mdp.n_actions)
    learnt = learn(log, rewards=KnownRewards(mdp.rewards), initial=0)
    task = Task.of(learnt.tried(), discount=DISCOUNT)
    found = choose(task, Objective.parse("mean"), rng, behaviour=log.behaviour())
    best = policy_iteration(mdp, discount=DISCOUNT).value(0)
    chosen, expected = (float(evaluate(x.policy, mdp, discount=DISCOUNT)[0]) for x in (found.chosen, found.expected))
    return chosen / best, expected / best


def main() -> None:
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with figure(figsize=(6.4, 3.6)) as (canvas, axes):
        worlds = {"Chain": chain, "RiverSwim": riverswim, "MDPs drawn from the prior": drawn}
        for (name, world), colour in zip(worlds.items(), ("ours", "mmbi", "upper"), strict=True):
            means, ends = [], []
            for steps in SIZES:
                found = np.array([shares(world, steps, seed) for seed in range(logs)])
                gain = 100.0 * (found[:, 0] - found[:, 1])
                means.append(gain.mean())
                ends.append(1.96 * gain.std(ddof=1) / np.sqrt(logs))
                values = ", ".join(f"{100 * x:.1f}" for x in found.mean(axis=0))
                print(
                    f"{world.__name__}, {steps} steps: {values}% of the optimum, gain {means[-1]:.2f} ± {ends[-1]:.2f}"
                )
            axes.errorbar(
                SIZES, means, yerr=ends, color=COLOURS[colour], marker="o", markersize=4, capsize=3, label=name
            )
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks(SIZES, [str(n) for n in SIZES])
        axes.minorticks_off()
        axes.set_xlabel("steps in the log")
        axes.set_ylabel("gain over the expected MDP's policy,\n% of the optimal value")
        axes.legend()
        canvas.savefig(Path(__file__).parent / "small_data.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
