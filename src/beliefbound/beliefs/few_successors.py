"""Rows with few successors, nobody knows which or how few: the posterior of a log, hyperparameters integrated.

Each row is one of `SparseDirichletBelief`: k successors with probability `∝ 1/10^|k − c|`, Dirichlet(α) on them. How
many there are about (c), and how even they are (α), is not known either: a grid of both, evenly likely beforehand, each
weighed by the probability that it gives to all rows of the log. The likelihood of a pair's rows given all others is
then `Σ_h w_h p_h(rows of the pair)` with weights `w_h` of all other pairs: rows are independent given h.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.kinds.mixture import MixtureBelief
from beliefbound.beliefs.kinds.sparse import SparseDirichletBelief
from beliefbound.logs.log import Log

FEW = "few successors"
CONCENTRATIONS, CENTRES = (0.3, 1.0, 3.0), (1, 2, 3, 4, 5, 7, 10)
_LEAST = 1e-3  # of the weight of the grid: less is left out


class FewSuccessors(NamedTuple):
    """A posterior; and the log probability of the rows of every pair, each from all others."""

    belief: MixtureBelief
    foretold: float


def sizes_about(centre: float, n_states: int) -> FloatArray:
    """Weights `[k]` of 1, 2, … successors, about so many."""
    return np.asarray(0.1 ** np.abs(np.arange(1, n_states + 1) - float(centre)))


def few_successors(log: Log, like: DirichletBelief) -> FewSuccessors:
    """The posterior of a log's transitions; rewards, terminal states, actions and start are those of another one."""
    counts = log.transition_counts() * ~like.terminal[:, None, None]
    parts, evidence = [], []
    for alpha in CONCENTRATIONS:
        for centre in CENTRES:
            blank = SparseDirichletBelief(
                log.n_states,
                log.n_actions,
                concentration=alpha,
                sizes=sizes_about(centre, log.n_states),
                rewards=like.rewards,
                terminal=like.terminal,
                available=like.available,
                initial=like.initial,
            )
            held = blank.counts
            after = held._with(held.concentration + counts, held.rewards, held.observed + log.visits)
            parts.append(blank._with(after))
            evidence.append(parts[-1]._evidence[log.visits > 0])
    found = np.array(evidence)  # [h, pair]
    total = found.sum(axis=1)
    others = total[:, None] - found
    each = np.logaddexp.reduce(others + found, axis=0) - np.logaddexp.reduce(others, axis=0)
    weights = np.exp(total - np.logaddexp.reduce(total))
    kept = np.flatnonzero(weights >= _LEAST)
    mixed = MixtureBelief([parts[h] for h in kept], weights=weights[kept] / weights[kept].sum())
    return FewSuccessors(mixed, float(each.sum()))
