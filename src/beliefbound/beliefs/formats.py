"""Hidden-model problems from and to single files: POMDPX, Cassandra's `.pomdp`, arrays of draws (`base.io.formats`).

What is seen of rewards is what the caller says, else what the file says. Else, in the formats of POMDP solvers, whose
agents do not see rewards: `known` where all models pay the same, `unobserved` where they do not. Else, in archives of
draws: `known` or `deterministic`.
"""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.base.io.formats.hidden_model import HiddenModel
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.rows import FileRows
from beliefbound.beliefs.signals import RewardSignal

FORMATS = (".pomdpx", ".pomdp", ".npz")


def is_format(path: Path) -> bool:
    """Whether the name is that of a single file in one of the formats, rather than of a folder."""
    return path.suffix.lower() in FORMATS and not path.is_dir()


def read_format(path: Path, reward_signal: RewardSignal | None) -> tuple[FiniteBelief, float, tuple[str, ...]]:
    """`(belief, discount, notes)` of a file."""
    kind = path.suffix.lower()
    if kind == ".npz":
        from beliefbound.base.io.formats.draws import read_draws

        problem = read_draws(path)
    elif kind == ".pomdpx":
        from beliefbound.base.io.formats.pomdpx import read_pomdpx

        problem = read_pomdpx(path)
    else:
        from beliefbound.base.io.formats.cassandra import read_flat
        from beliefbound.base.io.formats.flat import hidden_model_of

        problem = hidden_model_of(read_flat(path))
    notes = list(problem.notes)
    signal: Any = reward_signal or problem.reward_signal
    if signal is None:
        same = _pays_alike(problem)
        signal = "known" if same else "deterministic" if kind == ".npz" else "unobserved"
        if not same and kind == ".npz":
            notes.append("models pay different rewards, so a reward seen tells: the signal is taken as 'deterministic'")
        elif not same:
            notes.append(
                "models pay different rewards, which agents of this format do not see: the reward signal is taken as "
                "'unobserved'; pass another where they do"
            )
    try:
        belief = FiniteBelief(
            problem.transitions,
            problem.rewards,
            problem.weights,
            reward_signal=signal,
            reward_range=problem.reward_range if signal == "bernoulli" else None,
            initial=problem.initial,
            states=problem.states,
            actions=problem.actions,
            model_names=problem.models,
        )
    except BeliefError as fault:
        raise FileError(f"{path}: {fault}") from None
    return belief, problem.discount, tuple(notes)


def write_format(path: Path, belief: FiniteBelief, initial: FloatArray, discount: float) -> tuple[str, ...]:
    """Write a belief in the format that the name of the file asks for; returns what could not be kept as it was."""
    kind = path.suffix.lower()
    arrival = belief.signal.on_arrival
    rewards = belief.rewards if arrival is None else np.broadcast_to(arrival, belief.models.dense().shape)
    if kind != ".npz" and belief.signal.name not in ("known", "unobserved"):
        raise ParameterError(
            f"rewards are {belief.signal.name}: they tell models apart, and agents of POMDP formats do not see them; "
            f"write .npz or a folder, or read the models with reward_signal='unobserved'"
        )
    if not belief.available.all():
        s, a = (int(i) for i in np.argwhere(~belief.available)[0])
        raise ParameterError(f"action {a} is not offered in state {s}; the format has no unavailable actions")
    problem = HiddenModel(
        belief.models.dense(),
        np.ascontiguousarray(rewards),
        belief.weights,
        initial,
        discount,
        belief.states,
        belief.actions,
        belief.model_names,
        belief.signal.name if kind == ".npz" else None,
        belief.reward_range if belief.signal.name == "bernoulli" else None,
    )
    if kind == ".npz":
        from beliefbound.base.io.formats.draws import write_draws

        return write_draws(path, problem)
    from beliefbound.base.io.formats.write import write_cassandra, write_pomdpx

    return (write_pomdpx if kind == ".pomdpx" else write_cassandra)(path, problem)


def part_of(belief: FiniteBelief) -> FileRows:
    """The models as rows that can happen, as if they had been read from a folder."""
    dense, arrival = belief.models.dense(), belief.signal.on_arrival
    m, s, a, t = np.nonzero(dense)
    paid = belief.rewards[m, s, a] if arrival is None else arrival[m if len(arrival) > 1 else 0, s, a, t]
    pair = (m * belief.n_states + s) * belief.n_actions + a
    return FileRows(dense, belief.rewards, belief.n_models, arrival is None, pair, t, dense[m, s, a, t], paid, arrival)


def _pays_alike(problem: HiddenModel) -> bool:
    """Whether all models that can get somewhere are paid the same there."""
    paid = problem.rewards
    possible = problem.transitions > 0.0 if paid.ndim == 4 else np.ones(paid.shape, dtype=np.bool_)
    low, high = np.where(possible, paid, np.inf).min(axis=0), np.where(possible, paid, -np.inf).max(axis=0)
    return bool((low >= high).all())
