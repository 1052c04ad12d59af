"""Does a plan improve on what was done, and never the reverse? Ours against the safe-policy-improvement family.

    python -m benchmarks.improvement FOLDER [MDPs per cell, default 100]

Worlds, behaviour and logs are those of the papers (`benchmarks.improvement_worlds`), with behaviour known, as there, to
everyone. Gains are shares of the way from behaviour to optimal value. Peers at several settings, of which each cell
shows the best. Ours is `safe:0.05` as `plan_log` has it; *false* counts logs of which a 95% statement was not true of
the policy that it is about: without a prior, the written one; by held-out episodes, that which the others chose. Every
world and log has its own seed, `(cell, number)`; what is in the folder is not made again.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound import StationaryPolicy
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.from_log import learn
from beliefbound.bounds.posterior.held_out import held_out
from beliefbound.bounds.posterior.prior_free import prior_free
from beliefbound.bounds.posterior.safe import choose_safe
from beliefbound.planning.safe.adjusted import reward_adjusted, robust_l1
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.safe.soft_spibb import soft_spibb
from beliefbound.planning.safe.spibb import spibb
from beliefbound.planning.task import Task
from benchmarks.improvement_worlds import DISCOUNT, World, behaviour_at, gridworld, logged, random_mdp

WORLDS: dict[str, Callable[[np.random.Generator], World]] = {"random": random_mdp, "grid": gridworld}
SHARES, TRAJECTORIES = (0.1, 0.5, 0.9), (10, 50, 200, 1000)
CELLS = [(world, share, n) for world in WORLDS for share in SHARES for n in TRAJECTORIES]
_NONE = 1e-9  # of the way: less is no loss


def peers(data: Frequencies) -> dict[str, FloatArray]:
    """Policies `[s,a]` of everyone else, by family and setting."""
    found = {}
    for least in (2, 3, 5, 7, 10, 20, 50):
        found[f"Π≤b-SPIBB, {least}"] = spibb(data, least=least, discount=DISCOUNT)
        found[f"Π_b-SPIBB, {least}"] = spibb(data, least=least, bound="equal", discount=DISCOUNT)
    for budget in (0.1, 0.2, 0.5, 1.0, 2.0):
        found[f"Soft-SPIBB, {budget:g}"] = soft_spibb(data, budget=budget, discount=DISCOUNT)
    for penalty in (0.0, 0.003, 0.01, 0.03, 0.1, 0.3):
        name = f"reward-adjusted, {penalty:g}" if penalty else "best model"
        found[name] = reward_adjusted(data, penalty=penalty, discount=DISCOUNT)
    for distance in (0.3, 1.0):
        found[f"robust L1, {distance:g}"] = robust_l1(data, distance=distance, discount=DISCOUNT)
    return found


def one(world: str, share: float, n: int, number: int) -> dict[str, Any]:
    """What everyone makes of one log."""
    rng = np.random.default_rng((1, CELLS.index((world, share, n)), number))
    true = WORLDS[world](rng)
    behaviour = behaviour_at(true, share, rng)
    log = logged(true, behaviour, n, rng)
    now, best = true.value(behaviour), true.value(true.optimum())
    began = time.process_time()
    learnt = learn(log)
    task = Task.of(learnt.tried(), discount=DISCOUNT)
    data = Frequencies.of(log, behaviour, learnt.belief.available, learnt.terminal)
    choice, safety = choose_safe(task, data, 0.05, rng, behaviour=StationaryPolicy(probabilities=behaviour))
    policy = choice.chosen.policy.chances(data.n_actions)
    free = prior_free(data, log.starts, policy, discount=DISCOUNT, horizon=None, error=0.05)
    seconds, own = time.process_time() - began, true.value(policy)
    held = held_out(log, data, given=True, start=None, discount=DISCOUNT, horizon=None, error=0.05)
    told = None if isinstance(held, str) else true.value(held.policy.policy.chances(data.n_actions))
    gains = {name: (true.value(policy) - now) / (best - now) for name, policy in peers(data).items()}
    return {
        "ours": (own - now) / (best - now),
        "kept": safety.kept,
        "policy": choice.chosen.name,
        "peers": gains,
        "free": None if free.vacuous else free.value / own,
        "free_false": own < free.value,
        "held": None if isinstance(held, str) or told is None or held.vacuous else held.value / told,
        "held_false": not (isinstance(held, str) or told is None) and (told < held.value or told - now < held.gain),
        "seconds": seconds,
    }


def table(folder: Path) -> str:
    """Everything in the folder, a row a cell."""
    rows = [
        "| world, trajectories | behaviour | logs | ours: mean / worst | worse | best peer: mean / worst | its setting "
        "| worse | no prior: false | of the value | held out: false | of the value |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for world, share, n in CELLS:
        file = folder / f"{world}-{share:g}-{n}.jsonl"
        if not file.exists():
            continue
        found = [json.loads(line) for line in file.read_text().splitlines()]
        own = np.array([row["ours"] for row in found])
        others = {name: np.array([row["peers"][name] for row in found]) for name in found[0]["peers"]}
        best = max(others, key=lambda name: float(others[name].mean()))
        rows.append(
            f"| {world}, {n} | {100 * share:g}% | {len(own)} | {own.mean():.2f} / {own.min():+.2f} | {_worse(own)} | "
            f"{others[best].mean():.2f} / {others[best].min():+.2f} | {best} | {_worse(others[best])} | "
            f"{_rate(found, 'free_false')} | {_share(found, 'free')} | {_rate(found, 'held_false')} | "
            f"{_share(found, 'held')} |"
        )
    return "\n".join(rows)


def _worse(gains: FloatArray) -> str:
    return f"{100 * float((gains < -_NONE).mean()):.0f}%"


def _share(found: list[dict[str, Any]], name: str) -> str:
    told = float(np.mean([row[name] or 0.0 for row in found]))
    return f"{told:.2f}" if told >= 0.005 else "nothing"


def _rate(found: list[dict[str, Any]], name: str) -> str:
    return f"{100 * np.mean([row[name] for row in found]):.0f}%"


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("python -m benchmarks.improvement FOLDER [MDPs per cell]")
    folder, many = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(many):
        for world, share, n in CELLS:
            file = folder / f"{world}-{share:g}-{n}.jsonl"
            done = len(file.read_text().splitlines()) if file.exists() else 0
            if done == number:
                line = json.dumps(one(world, share, n, number))
                with file.open("a") as out:
                    out.write(f"{line}\n")
    print(table(folder))


if __name__ == "__main__":
    main()
