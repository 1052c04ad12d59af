"""The paper's conjecture, tried: is MSBI better than the expected MDP where rewards and dynamics are to be learnt from
demonstrations?

Random problems of 8 states and 3 actions: rows Dirichlet(0.3), state rewards `U⁴`, γ = 0.95. A demonstrator, softmax
with η = 10, walks from a random state; the first 20, 60 and 200 steps are shown. What is believed: rewards uniform on
[0, 1] (not as they were drawn), η ~ Gamma(2, 2) (its mean is 4), rows Dirichlet(0.3) (as they were drawn); 128 draws of
the joint posterior. Loss: `V* − V^π` of the true problem, mean over start states.

    expected MDP      optimal in the mean of the draws
    MMBI, CADP        on the draws
    imitation         the most frequent action of each state
    policy walk       rewards learnt as if the dynamics were the mean of their posterior; optimal for the mean reward
    told dynamics     rewards learnt with the true dynamics; optimal for the mean reward
    demonstrator      itself

Problems are numbered, and a number is a seed: blocks of them are kept as they are finished, and the same command
continues.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from beliefbound.base.executors import ThreadExecutor
from beliefbound.base.io.atomic import check_writable, write_aside
from beliefbound.base.io.paths import as_path
from beliefbound.base.tables import pl
from beliefbound.base.validation import FloatArray, check_count
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.lab.experiments.statistics import bootstrap_mean
from beliefbound.logs.demonstrations import Demonstrations, read_demonstrations
from beliefbound.models.evaluation import evaluate
from beliefbound.models.mdp import MDP
from beliefbound.planning.cadp import cadp
from beliefbound.planning.expected import expected_mdp_policy
from beliefbound.planning.inverse.imitation import imitation
from beliefbound.planning.inverse.posterior import from_demonstrations
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import optimal_values, policy_iteration
from beliefbound.policy import StationaryPolicy

N_STATES, N_ACTIONS, DISCOUNT, RATIONALITY, CONCENTRATION = 8, 3, 0.95, 10.0, 0.3
SHOWN = (20, 60, 200)  # demonstrated steps
PROBLEMS = 600
METHODS = ("expected MDP", "MMBI", "CADP", "imitation", "policy walk", "told dynamics", "demonstrator")
PAIRED = (("expected MDP", "MMBI"), ("expected MDP", "CADP"), ("policy walk", "MMBI"), ("imitation", "MMBI"))
_CHAINS, _DRAWS, _STEPS = 2, 128, 40_000
_BLOCK = 10  # problems


def losses_of(problem: int, seed: int) -> dict[str, list[float]]:
    """The losses of one problem: a row for each number of steps."""
    rng = np.random.default_rng([seed, problem])
    S, A = N_STATES, N_ACTIONS
    p, r = rng.dirichlet(np.full(S, CONCENTRATION), size=(S, A)), rng.random(S) ** 4
    true = MDP(p, np.repeat(r[:, None], A, axis=1), normalize=True)
    solved = optimal_values(true, discount=DISCOUNT)
    best, q = solved.values[0], solved.q[0]
    chances = np.exp(RATIONALITY * (q - q.max(axis=1, keepdims=True)))
    expert = StationaryPolicy(probabilities=chances / chances.sum(axis=1, keepdims=True))
    rows = _walk(expert.chances(A), p, rng)
    rows_of: dict[str, list[float]] = {name: [] for name in ("problem", "steps", *METHODS)}
    for n in SHOWN:
        shown = {name: column[:n] for name, column in rows.items()}
        demos = read_demonstrations(shown, states=S, actions=A)
        counts = demos.log.transition_counts() + CONCENTRATION
        mean = counts / counts.sum(axis=-1, keepdims=True)
        joint = _learnt(demos, None, rng)
        policies = {
            "expected MDP": expected_mdp_policy(joint, discount=DISCOUNT).policy,
            "MMBI": mmbi(joint, discount=DISCOUNT).policy,
            "CADP": cadp(joint, discount=DISCOUNT).policy,
            "imitation": imitation(demos.visits[0]),
            "policy walk": policy_iteration(_learnt(demos, mean, rng).mean(), discount=DISCOUNT).policy,
            "told dynamics": policy_iteration(_learnt(demos, p, rng).mean(), discount=DISCOUNT).policy,
            "demonstrator": expert,
        }
        rows_of["problem"].append(problem)
        rows_of["steps"].append(n)
        for name in METHODS:
            lost = best - evaluate(policies[name], true, discount=DISCOUNT)
            rows_of[name].append(float(lost.mean()))
    return rows_of


def _learnt(demos: Demonstrations, dynamics: FloatArray | None, rng: np.random.Generator) -> FiniteBelief:
    """Draws of the posterior."""
    return from_demonstrations(
        demos,
        discount=DISCOUNT,
        dynamics=dynamics,
        prior=CONCENTRATION,
        initial=np.full(N_STATES, 1.0 / N_STATES),
        draws=_DRAWS,
        chains=_CHAINS,
        steps=_STEPS,
        rng=int(rng.integers(2**60)),
        threads=1,
    ).belief


def _walk(chances: FloatArray, p: FloatArray, rng: np.random.Generator) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {"state": [], "action": [], "next_state": []}
    s = int(rng.integers(len(p)))
    for _ in range(max(SHOWN)):
        a = int(rng.choice(chances.shape[1], p=chances[s]))
        t = int(rng.choice(len(p), p=p[s, a]))
        for name, x in zip(rows, (s, a, t), strict=True):
            rows[name].append(x)
        s = t
    return rows


def discussion(
    out: Path | str,
    *,
    problems: int = PROBLEMS,
    seed: int = 1,
    threads: int | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> pl.DataFrame:
    """Losses of so many problems: `losses.csv`, a row per problem and number of steps, and the table (`table_of`),
    `discussion.csv`, which is returned. Finished blocks, under `blocks`, are not computed again."""
    folder, n = as_path(out), check_count(problems, "problems", least=2)
    check_writable(folder)
    (folder / "blocks").mkdir(parents=True, exist_ok=True)
    files = {
        (first, last): folder / "blocks" / f"{seed}-{first}-{last}.csv"
        for first, last in ((first, min(first + _BLOCK, n)) for first in range(0, n, _BLOCK))
    }
    missing = [numbers for numbers, file in files.items() if not file.exists()]
    done = n - sum(last - first for first, last in missing)

    def block(numbers: tuple[int, int]) -> pl.DataFrame:
        return pl.concat([pl.DataFrame(losses_of(i, seed)) for i in range(*numbers)])

    for numbers, frame in ThreadExecutor(threads).map(block, missing):
        write_aside(files[numbers], frame.write_csv)
        done += numbers[1] - numbers[0]
        say(f"{done} of {n} problems")
    losses = pl.concat([pl.read_csv(file) for file in files.values()])
    write_aside(folder / "losses.csv", losses.write_csv)
    table = table_of(losses)
    write_aside(folder / "discussion.csv", table.write_csv)
    return table


def table_of(losses: pl.DataFrame) -> pl.DataFrame:
    """Means with standard errors and 95% bootstrap intervals, and paired differences: `name, steps, mean, error, low,
    high`."""
    rows = []
    for n in SHOWN:
        own = losses.filter(pl.col("steps") == n)
        samples = {name: own[name].to_numpy() for name in METHODS}
        samples |= {f"{one} − {two}": own[one].to_numpy() - own[two].to_numpy() for one, two in PAIRED}
        rows += [{"name": name, "steps": n, **bootstrap_mean(x)._asdict()} for name, x in samples.items()]
    return pl.DataFrame(rows)


def table_rows(table: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """The table to print: a line per method, a column per number of steps; mean ± standard error, 95% interval."""
    lines: dict[str, list[str]] = {}
    for row in table.iter_rows(named=True):
        cell = f"{row['mean']:.3f} ± {row['error']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        lines.setdefault(row["name"], []).append(cell)
    return ["loss after demonstrated steps", *map(str, SHOWN)], [[name, *cells] for name, cells in lines.items()]
